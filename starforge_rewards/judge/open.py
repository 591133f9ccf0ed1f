"""`open_judge(config, role=...)`: the one place that stacks a judge from its configuration."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from starforge_rewards.judge.cache import CachingJudge, MemoryStore, SqliteStore
from starforge_rewards.judge.config import (
    AnyJudge,
    EndpointJudge,
    PoolJudge,
    Role,
    ScriptedConfig,
    VllmJudge,
)
from starforge_rewards.judge.endpoint import Endpoint
from starforge_rewards.judge.model import JudgeModel, resolve_model
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.judge.scripted import ScriptedJudge, load_function
from starforge_rewards.question import Choice, Question, Reply
from starforge_rewards.settings import Settings

if TYPE_CHECKING:
    from starforge_rewards.judge.pool import PooledJudge

Tell = Callable[[str], None]


@runtime_checkable
class Labelled(Protocol):
    """A judge that can say which labels a question is shown with, and their tokens."""

    async def labels(self, choices: tuple[Choice, ...]) -> str: ...


@asynccontextmanager
async def open_judge(
    config: AnyJudge,
    *,
    role: Role = "evaluation",
    settings: Settings | None = None,
    tell: Tell = lambda _said: None,
) -> AsyncIterator[Judge]:
    """A judge for the time of an `async with`; what it started ends with it.

    Args:
        config: what to open, as `load_judge` reads it.
        role: sets priority and deadline: training before evaluation.
        settings: where the cache lies; default: this process's environment.
        tell: told in a sentence when there is something to wait for.

    Raises:
        InputError: the configuration names something that is not there.
        EngineFailed: an engine or a cluster does not start; for our own engines at the first
            question that is not in the cache.
        NotFound: no such pool.
    """
    settings = settings or Settings.read()
    match config:
        case VllmJudge():
            own = OwnPool(config, resolve_model(config, settings, tell), role, tell)
            try:
                with _remembering(own, config, settings) as judge:
                    yield judge
            finally:
                await own.close()
        case EndpointJudge():
            endpoint = Endpoint(config, role=role)
            try:
                with _remembering(endpoint, config, settings) as judge:
                    yield judge
            finally:
                await endpoint.aclose()
        case PoolJudge():
            from starforge_rewards.judge import pool  # late: loads ray

            yield await pool.attach(config.name, pool.address_of(config.ray), role)
        case ScriptedConfig():
            # What a function answers may rest on more than its text: kept for this process only.
            scripted = ScriptedJudge(
                load_function(config.function), name=config.function, rules=config, keep=False
            )
            yield CachingJudge(scripted, MemoryStore()) if config.reuse else scripted


@contextmanager
def _remembering(
    judge: Judge, config: VllmJudge | EndpointJudge, settings: Settings
) -> Iterator[Judge]:
    if not config.reuse:
        yield judge
        return
    store = SqliteStore(settings.cache_dir / "verdicts.sqlite", config.cache_mb * 10**6)
    try:
        yield CachingJudge(judge, store)
    finally:
        store.close()


class OwnPool:
    """A pool of this process, started by the first question: what is all cached starts nothing."""

    def __init__(self, config: VllmJudge, model: JudgeModel, role: Role, tell: Tell) -> None:
        self.identity = model.identity
        self._config, self._model, self._role, self._tell = config, model, role, tell
        self._starting = asyncio.Lock()  # of several first questions, one starts the pool
        self._pool: PooledJudge | None = None
        self._end: Callable[[], None] = lambda: None

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        return await (await self._running()).answer(questions)

    async def labels(self, choices: tuple[Choice, ...]) -> str:
        return await (await self._running()).labels(choices)

    async def _running(self) -> "PooledJudge":
        async with self._starting:
            if self._pool is None:
                self._pool = await self._start()
        return self._pool

    async def close(self) -> None:
        self._end()

    async def _start(self) -> "PooledJudge":
        from starforge_rewards.judge import pool  # late: loads ray

        count, name = self._config.pool.replicas, self.identity.model
        self._tell(f"Starting {count} engine{'s' * (count > 1)} for {name}: about half a minute")
        at = pool.address_of(self._config.ray)
        own = f"own-{uuid.uuid4().hex[:12]}"
        plan = pool.plan_for(self._config, self._model, name=own, at=at)
        self._end = await pool.launch(plan)
        return pool.PooledJudge(own, self.identity, at, plan.pool.fronts, self._role)
