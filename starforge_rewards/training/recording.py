"""A training run's ledger: a registry that is away for a while costs a training run nothing.

From the first failure on nothing waits for the registry: a lookup finds nothing and the judge is
asked, scores are held, and a task beside the training tries again until they are delivered.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from starforge_rewards.errors import StarforgeError, Unavailable
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.records import ScoreKey
from starforge_rewards.rubrics.weighted import Score
from starforge_rewards.run import Outcome, Status

_log = logging.getLogger(__name__)
_MOST_HELD = 100_000
"""Scores; the oldest are given up first."""

Result = TypeVar("Result")


class HoldingLedger:
    """A `RunLedger` that holds on to what it cannot deliver; used on one event loop."""

    def __init__(
        self,
        ledger: RunLedger,
        *,
        patience: float = 10.0,
        pause: float = 15.0,
        look_every: float = 300.0,
    ) -> None:
        """Records nothing yet.

        Args:
            ledger: of the run.
            patience: seconds after which a registry that does not answer counts as away.
            pause: seconds between tries to deliver to a registry that is away.
            look_every: seconds between looks at whether a cited rubric was edited.
        """
        self._ledger = ledger
        self._patience, self._pause, self._look_every = patience, pause, look_every
        self._held: dict[ScoreKey, Score] = {}
        self._newer: set[str] = set()
        self._next_look: float | None = None
        self._beside: set[asyncio.Task[None]] = set()
        self._away = False

    @property
    def judge(self) -> str | None:
        return self._ledger.judge

    @property
    def held(self) -> int:
        """Scores that the registry does not have yet."""
        return len(self._held)

    @property
    def newer(self) -> list[str]:
        """Versions of cited rubrics that were written since the run began; it keeps its own."""
        return sorted(self._newer)

    async def find(self, keys: Sequence[ScoreKey]) -> Mapping[ScoreKey, Score]:
        """The scores that are there; nothing where the registry is away.

        Raises:
            StarforgeError: at its start a run says what it cites, or does not start.
        """
        if self._away:
            return {}
        try:
            return await self._soon(self._ledger.find(keys))
        except StarforgeError as error:
            if not self._ledger.cited:
                raise
            self._lost(error, "the judge is asked without looking there")
            return {}

    async def use(self, scores: Mapping[ScoreKey, Score]) -> None:
        """Keep scores, now or later."""
        self._hold(scores)
        if not self._away:
            try:
                await self._deliver()
            except StarforgeError as error:
                self._lost(error, f"{len(self._held)} scores are held and sent later")

    def announce(self) -> None:
        """Look beside the training for edits of cited rubrics; they are said, never applied."""
        now = asyncio.get_running_loop().time()
        if self._away or (self._next_look is not None and now < self._next_look):
            return
        self._next_look = now + self._look_every
        self._go(self._look())

    async def finish(self, outcome: Outcome, status: Status = "finished") -> None:
        """Deliver what is held, and record how the run ended.

        Raises:
            StarforgeError: the registry is away or refuses; what is held stays held.
        """
        await self._deliver()
        await self._look()
        await self._ledger.finish(outcome, status)

    def close(self) -> None:
        """End what goes on beside."""
        for task in self._beside:
            task.cancel()

    async def _soon(self, asked: Coroutine[Any, Any, Result]) -> Result:
        try:
            async with asyncio.timeout(self._patience):
                return await asked
        except TimeoutError:
            said = f"the registry did not answer within {self._patience:g} s"
            raise Unavailable(said) from None

    def _hold(self, scores: Mapping[ScoreKey, Score]) -> None:
        self._held |= scores
        while len(self._held) > _MOST_HELD:
            del self._held[next(iter(self._held))]

    async def _deliver(self) -> None:
        """What arrives stays held until it has; twice is as good as once."""
        if taken := dict(self._held):
            await self._soon(self._ledger.use(taken))
            self._held = {key: held for key, held in self._held.items() if key not in taken}

    def _lost(self, error: StarforgeError, so: str) -> None:
        _log.warning("%s: %s", error, so)
        if not self._away:
            self._away = True
            self._go(self._return())

    async def _return(self) -> None:
        """Try until the registry is there again; what it refuses for good stays held."""
        while self._away:
            await asyncio.sleep(self._pause)
            try:
                await self._deliver()
            except StarforgeError as error:
                _log.debug("still away: %s", error)
            else:
                self._away = False

    async def _look(self) -> None:
        try:
            newer = {str(ref) for ref in await self._ledger.newer()}
        except StarforgeError as error:
            _log.debug("cannot look for edits: %s", error)
            return
        for ref in sorted(newer - self._newer):
            _log.warning("%s is the current version by now; this run keeps its own", ref)
        self._newer |= newer

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)  # the loop itself holds on to none
        task.add_done_callback(self._beside.discard)
