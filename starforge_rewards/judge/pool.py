"""A judge pool: replicas and fronts as named actors, and the handle that callers hold.

The handle is thin and picklable: it holds names, connects when first asked, and one of its calls
carries a batch.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starforge_rewards.engine import actors
from starforge_rewards.engine.actors import ActorLost, Address, Hosted, Placement
from starforge_rewards.engine.weights import identify
from starforge_rewards.errors import EngineFailed, InputError, NotFound
from starforge_rewards.judge.cache import SqliteStore
from starforge_rewards.judge.config import Deadlines, Pool, Ray, Role, VllmJudge
from starforge_rewards.judge.dispatch import Dispatcher, Lost
from starforge_rewards.judge.front import Front, PoolStatus
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.judge.model import JudgeModel
from starforge_rewards.question import Choice, NoAnswer, Question, Reply
from starforge_rewards.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NAMESPACE = "starforge"
_FRONT_TRIES = 10
_ENV = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else every engine takes the same cores
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}


@dataclass(frozen=True)
class Plan:
    """All that a pool is made from; picklable, since fronts and restarts are made from it too."""

    name: str
    factory: Callable[..., object]
    """Builds, in a replica's process, an object with `answer(questions, priority)`."""
    args: tuple[object, ...]
    identity: JudgeIdentity
    at: Address
    pool: Pool = field(default_factory=Pool)
    deadlines: Deadlines = field(default_factory=Deadlines)
    env: Mapping[str, str] = field(default_factory=dict)
    cache: Path | None = None
    """The verdict cache that the fronts share; None where the caller has its own."""
    cache_mb: int = 1024

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"{self.name!r} is no pool name: letters, digits, - and _, at most 64")

    def replica(self, number: int) -> str:
        return f"{self.name}.replica.{number}"

    def front(self, number: int) -> str:
        return f"{self.name}.front.{number}"


def vllm_replica(
    model: str,
    revision: str | None,
    options: Mapping[str, Any],
    identity: JudgeIdentity,
    reason_tokens: int,
) -> object:
    """A `SlotJudge` on an engine of this process.

    Raises:
        EngineFailed: no engine, or the model's files are no longer those that the identity names,
            as after a restart over a folder that a training run writes.
    """
    # Late: only a replica's process loads vllm, torch and transformers.
    from starforge_rewards.engine.tokenizer import ChatTokenizer
    from starforge_rewards.engine.vllm import Engine
    from starforge_rewards.judge.slot import SlotJudge

    tokenizer = ChatTokenizer(model, revision)
    judge = SlotJudge(Engine(model, options), tokenizer, identity, reason_tokens)
    if identify(model, revision, Settings.read().cache_dir).digest != identity.weights:
        raise EngineFailed(f"the files of {model} are not those that this judge was opened with")
    return judge


def plan_for(
    config: VllmJudge, model: JudgeModel, *, name: str, at: Address, cache: Path | None = None
) -> Plan:
    """The plan of a pool of vLLM engines."""
    args = (model.path_or_name, model.revision, model.options, model.identity, config.reason_tokens)
    return Plan(
        name=name,
        factory=vllm_replica,
        args=args,
        identity=model.identity,
        at=at,
        pool=config.pool,
        deadlines=config.deadlines,
        env={**_ENV, **config.env},
        cache=cache,
        cache_mb=config.cache_mb,
    )


def address_of(ray: Ray, *, detached: bool = False) -> Address:
    """Where a configuration's actors live."""
    return Address(namespace=_NAMESPACE, cluster=ray.address, detached=detached)


async def launch(plan: Plan) -> Callable[[], None]:
    """Start the pool's actors and wait until every replica can answer.

    Returns:
        What ends the pool, and the cluster where this started one. Unless the pool is detached it
        also ends when this is no longer held.

    Raises:
        EngineFailed: a replica did not start, or not in time; none is then left behind.
    """
    started = actors.join(plan.at)
    hosted: list[Hosted] = []

    def end() -> None:
        for actor in reversed(hosted):  # fronts first
            actors.stop(actor)
        if started:
            actors.leave()

    try:
        hosted += [_start_replica(plan, number) for number in range(plan.pool.replicas)]
        for number in range(plan.pool.fronts):
            place = Placement(restarts=plan.pool.restarts, here=True)
            hosted.append(
                actors.host(plan.front(number), build_front, (plan,), at=plan.at, placement=place)
            )
        async with asyncio.timeout(plan.pool.start_timeout):
            for actor in hosted:
                await actor.ready()
    except BaseException as error:
        end()
        raise _start_failure(error, plan) from error
    return end


def _start_failure(error: BaseException, plan: Plan) -> BaseException:
    match error:
        case TimeoutError():
            return EngineFailed(f"the judge did not start within {plan.pool.start_timeout:g} s")
        case ActorLost():
            return EngineFailed(f"the judge died while it started: {error.__cause__}")
    return error


def _start_replica(plan: Plan, number: int) -> Hosted:
    pool = plan.pool
    threads = pool.threads or max(1, (os.cpu_count() or 1) // pool.replicas)
    env = {"OMP_NUM_THREADS": str(threads), **plan.env}
    place = Placement(
        cpus=pool.cpus_per_replica,
        gpus=pool.gpus_per_replica,
        resources=pool.resources,
        env=env,
        restarts=pool.restarts,
        concurrency=10_000,
    )
    return actors.host(plan.replica(number), plan.factory, plan.args, at=plan.at, placement=place)


def build_front(plan: Plan) -> Front:
    """The front's object, in its actor; made again after a restart."""
    replicas = [
        ActorReplica(actors.find(plan.replica(number), plan.at))
        for number in range(plan.pool.replicas)
    ]
    dispatcher = Dispatcher(
        replicas, max_in_flight=plan.pool.max_in_flight, resends=plan.pool.resends
    )
    store = SqliteStore(plan.cache, plan.cache_mb * 10**6) if plan.cache else None
    return Front(dispatcher, plan.identity, plan.deadlines, store)


class ActorReplica:
    """A replica in an actor."""

    def __init__(self, hosted: Hosted) -> None:
        self.name, self._hosted = hosted.name, hosted

    async def answer(self, questions: Sequence[Question], priority: int) -> list[Reply]:
        with _telling_losses():
            replies: list[Reply] = await self._hosted.call("answer", questions, priority)
            return replies

    async def labels(self, choices: tuple[Choice, ...]) -> str:
        with _telling_losses():
            return str(await self._hosted.call("labels", choices))

    async def ready(self) -> int:
        with _telling_losses():
            return await self._hosted.ready()


@contextmanager
def _telling_losses() -> Iterator[None]:
    """A lost actor in the dispatcher's words, which know no actors."""
    try:
        yield
    except ActorLost as lost:
        raise Lost(lost, permanent=lost.permanent) from lost


@dataclass
class PooledJudge:
    """A pool as its callers hold it: a `Judge` that pickles into any process of the cluster."""

    name: str
    identity: JudgeIdentity
    at: Address
    fronts: int
    role: Role = "evaluation"
    _found: dict[int, Hosted] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": {}}  # live connections stay here

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply per question, in order."""
        shards: dict[int, list[int]] = {}
        for place, question in enumerate(questions):
            shards.setdefault(self._shard(question), []).append(place)
        replies: dict[int, Reply] = {}
        async with asyncio.TaskGroup() as group:
            asks = [
                (places, group.create_task(self._ask(shard, [questions[p] for p in places])))
                for shard, places in shards.items()
            ]
        for places, ask in asks:
            replies.update(zip(places, ask.result(), strict=True))
        return [replies[place] for place in range(len(questions))]

    async def labels(self, choices: tuple[Choice, ...]) -> str:
        """How a question with these choices is shown, in words for the operator."""
        return str(await actors.find(f"{self.name}.front.0", self.at).call("labels", choices))

    def _shard(self, question: Question) -> int:
        digest = hashlib.blake2b(question.evidence.route, digest_size=8).digest()
        return int.from_bytes(digest) % self.fronts

    async def _ask(self, shard: int, questions: list[Question]) -> list[Reply]:
        """Ask one front; while it restarts, ask again with growing pauses."""
        said: object = ""
        for attempt in range(_FRONT_TRIES):
            try:
                if shard not in self._found:
                    self._found[shard] = actors.find(f"{self.name}.front.{shard}", self.at)
                replies: list[Reply] = await self._found[shard].call("answer", questions, self.role)
            except (ActorLost, NotFound) as error:
                said = error
                self._found.pop(shard, None)
                await asyncio.sleep(min(5.0, 0.2 * 2**attempt))
            else:
                return replies
        return [NoAnswer.because("unreachable", f"the pool does not answer: {said}")] * len(
            questions
        )


async def attach(name: str, at: Address, role: Role = "evaluation") -> PooledJudge:
    """The handle of a running pool.

    Raises:
        NotFound: no pool of that name runs there.
    """
    fronts = sum(actor.startswith(f"{name}.front.") for actor in actors.names(at))
    if not fronts:
        raise NotFound(f"no judge pool {name!r} runs")
    front = actors.find(f"{name}.front.0", at)
    identity: JudgeIdentity = await front.call("identity")
    return PooledJudge(name, identity, at, fronts, role)


async def status(name: str, at: Address) -> list[PoolStatus]:
    """How each front of a pool sees its replicas.

    Raises:
        NotFound: no pool of that name runs there.
    """
    judge = await attach(name, at)
    return [
        await actors.find(f"{name}.front.{shard}", at).call("status")
        for shard in range(judge.fronts)
    ]


def pools(at: Address) -> list[str]:
    """The names of the pools that run there."""
    return sorted({actor.split(".")[0] for actor in actors.names(at) if ".front." in actor})


def shut(name: str, at: Address) -> int:
    """End a pool's actors, fronts first; returns how many there were."""
    mine = [actor for actor in actors.names(at) if actor.startswith(f"{name}.")]
    for actor in sorted(mine):  # "front" sorts before "replica"
        actors.stop(actors.find(actor, at))
    return len(mine)
