"""Questions a second of eight replicas beside eight times those of one.

Replicas are real actors behind a real front; what they host is no engine but a wait, so that the
machine's cores do not decide. It shows what the front, the calls and the routing cost.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from starforge_rewards.engine.actors import Address
from starforge_rewards.judge import pool
from starforge_rewards.judge.config import Pool
from starforge_rewards.judge.dispatch import BATCH
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.question import Choice, Question, Reply, Tokens, weighed
from starforge_rewards.rubrics.weighted import Poser, evidence_of
from tests.performance import workload
from tests.performance.ratio import Ratio, at_least

_REPLICAS = 8
_BATCH_SECONDS = 0.5
_CRITERIA = 4
_CALL = 32 * _CRITERIA
"""Questions in one call of the caller: of 32 rollouts, as when a file is scored."""


class Size(NamedTuple):
    batches: int
    """Of each replica."""
    pairs: int


FULL = Size(40, 3)
QUICK = Size(6, 1)


class Paced:
    """Answers 64 questions in half a second, one batch at a time."""

    def __init__(self) -> None:
        self._busy = asyncio.Lock()  # one batch at a time, as if there were one processor

    async def answer(self, questions: Sequence[Question], _priority: int) -> list[Reply]:
        async with self._busy:
            await asyncio.sleep(_BATCH_SECONDS * len(questions) / BATCH)
        masses = (0.1, 0.1, 0.1, 0.1, 0.1, 0.4)
        tokens = Tokens(prompt=300, cached=200, generated=1)
        return [weighed(question, masses, min_mass=0, tokens=tokens) for question in questions]

    async def labels(self, _choices: tuple[Choice, ...]) -> str:
        return "none"


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    yield Ratio(
        what=f"questions/s of {_REPLICAS} replicas / {_REPLICAS} x one replica",
        size=f"{size.batches} batches of {BATCH} each",
        pairs=asyncio.run(_pairs(size)),
        target=at_least(0.9),
    )


async def _pairs(size: Size) -> tuple[float, ...]:
    ends: list[Callable[[], None]] = []
    try:
        many = await _open(_REPLICAS, ends)
        one = await _open(1, ends)
        ratios = []
        for pair in range(size.pairs):
            together = await _rate(many, size.batches * _REPLICAS, seed=2 * pair)
            alone = await _rate(one, size.batches, seed=2 * pair + 1)
            ratios.append(together / (_REPLICAS * alone))
        return tuple(ratios)
    finally:
        for end in reversed(ends):  # the first also ends the cluster
            end()


async def _open(replicas: int, ends: list[Callable[[], None]]) -> Judge:
    """A pool of that many, idle while the other one works."""
    identity = ScriptedJudge(lambda _question: "0", name="paced").identity
    at = Address(namespace="performance")
    plan = pool.Plan(
        name=f"paced-{replicas}",
        factory=Paced,
        args=(),
        identity=identity,
        at=at,
        pool=Pool(replicas=replicas, max_in_flight=2 * BATCH),
    )
    ends.append(await pool.launch(plan))
    judge = pool.PooledJudge(plan.name, identity, at, plan.pool.fronts)
    await _rate(judge, replicas, seed=-1)  # connections
    return judge


async def _rate(judge: Judge, batches: int, *, seed: int) -> float:
    """Questions a second; every rollout has a prompt of its own, so that all are spread."""
    poser = Poser(workload.rubric(_CRITERIA).rubric, "performance")
    made = workload.rollouts(batches * BATCH // _CRITERIA, seed=seed, group=1)
    questions = [question for rollout in made for question in poser.pose(evidence_of(rollout))]
    calls: list[Awaitable[list[Reply]]] = []
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for start in range(0, len(questions), _CALL):
            call = judge.answer(questions[start : start + _CALL])
            calls.append(group.create_task(_checked(call)))
    return len(questions) / (time.perf_counter() - began)


async def _checked(call: Awaitable[list[Reply]]) -> list[Reply]:
    replies = await call
    for reply in replies:
        if reply.tokens == Tokens():
            raise RuntimeError(f"not answered by a replica: {reply}")
    return replies
