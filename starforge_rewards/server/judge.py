"""The one judge of this process: opened when the server starts, and closed when it stops.

A pool that is away, or a cluster that cannot be joined, does not keep the server down: rubrics and
runs are served on, and every scoring call tries again. A configuration that is refused does.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from starforge_rewards.errors import EngineFailed, NotFound, StarforgeError, Unavailable
from starforge_rewards.judge.config import AnyJudge, remembers
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.judge.open import open_judge
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import NoAnswer, Question, Reply

_PATIENCE = 10.0
"""Seconds after a failed attempt in which none is made: joining a cluster takes its time."""
_log = logging.getLogger(__name__)


class SharedJudge:
    """Opens a judge once for all requests."""

    def __init__(self, config: AnyJudge, timeout: float) -> None:
        """Opens nothing yet.

        Args:
            config: what to open.
            timeout: seconds for one call; then every question of it is a `timeout`.
        """
        self._config, self._timeout = config, timeout
        self._stack = AsyncExitStack()
        self._judge: Judge | None = None
        self._opening = asyncio.Lock()  # of several requests at once, one opens
        self._failed: tuple[float, str] | None = None

    @property
    def remembers(self) -> bool:
        """Whether what it said once may answer for it later."""
        return remembers(self._config)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The judge is open, or is tried again by each call, until the block ends.

        Raises:
            InputError: the configuration names something that is not there.
        """
        async with AsyncExitStack() as self._stack:
            try:
                await self.opened()
            except Unavailable as error:
                _log.warning("%s: tried again with the next scoring call", error)
            try:
                yield
            finally:
                self._judge = None

    async def opened(self) -> Judge:
        """The judge.

        Raises:
            Unavailable: its pool or cluster is not there.
        """
        async with self._opening:
            if self._judge is None:
                self._refuse_while_fresh()
                try:
                    opened = open_judge(self._config, tell=_log.info)
                    judge = await self._stack.enter_async_context(opened)
                except (NotFound, EngineFailed) as error:
                    said = f"the judge cannot be used: {error}"
                    self._failed = time.monotonic(), said
                    raise Unavailable(said) from error
                self._judge = TimedJudge(judge, self._timeout)
            return self._judge

    def _refuse_while_fresh(self) -> None:
        if self._failed is not None and time.monotonic() < self._failed[0] + _PATIENCE:
            raise Unavailable(self._failed[1])


class TimedJudge:
    """A judge that is waited for so long, and whose own failure is never taken for a caller's."""

    def __init__(self, judge: Judge, timeout: float) -> None:
        self._judge, self._timeout = judge, timeout

    @property
    def identity(self) -> JudgeIdentity:
        return self._judge.identity

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply for each question, in order.

        Raises:
            EngineFailed: the judge raised, and so answered nothing.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await self._judge.answer(questions)
        except TimeoutError:
            late = NoAnswer.because("timeout", f"no answer within {self._timeout:g} s")
            return [late] * len(questions)
        except StarforgeError as error:
            raise EngineFailed(f"the judge failed: {error}") from error
        except ExceptionGroup as group:
            ours, others = group.split(StarforgeError)
            if ours is None or others is not None:
                raise
            raise EngineFailed(f"the judge failed: {ours.exceptions[0]}") from group
