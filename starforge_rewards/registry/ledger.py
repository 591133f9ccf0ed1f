"""The score ledger as scoring sees it, and the run that keeps it.

A ledger is looked up before any judge: its key holds the rubric's version, so a new version always
misses and an edit can never leave an old score in place.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import ScoreKey
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Score
from starforge_rewards.run import Outcome, ResultRow, Run, Status


class Ledger(Protocol):
    """Scores that are there already, and where those of this run are kept."""

    @property
    def judge(self) -> str | None:
        """Digest of the identity of the judge whose scores these are."""
        ...

    async def find(self, keys: Sequence[ScoreKey]) -> Mapping[ScoreKey, Score]:
        """The scores under these keys that are there; each criterion's origin is `ledger`."""
        ...

    async def use(self, scores: Mapping[ScoreKey, Score]) -> None:
        """Keep what this run used, found or new."""
        ...


class RunLedger:
    """The ledger of one run; the run is recorded at its first scoring call, with what it cites."""

    def __init__(self, registry: Registry, run_id: str, run: Run, *, reuse: bool = True) -> None:
        """Records nothing yet.

        Args:
            registry: where, and as whom.
            run_id: made by the caller; the same run goes on under it.
            run: role, subject and judge; citations are added as they are used.
            reuse: False looks nothing up, and still keeps.
        """
        self.run_id = run_id
        self._registry, self._run, self._reuse = registry, run, reuse
        self._cited: set[str] = set()
        self._recording = asyncio.Lock()  # one citation is put once, whoever comes first

    @property
    def judge(self) -> str | None:
        return self._run.judge.digest if self._run.judge else None

    @property
    def cited(self) -> frozenset[str]:
        """The versions that were cited so far; none: the run is not recorded."""
        return frozenset(self._cited)

    async def find(self, keys: Sequence[ScoreKey]) -> Mapping[ScoreKey, Score]:
        await self._cite(keys)
        if not self._reuse or self.judge is None:
            return {}
        return await asyncio.to_thread(self._registry.scores.find, self.judge, keys)

    async def use(self, scores: Mapping[ScoreKey, Score]) -> None:
        if scores:
            await self._cite(list(scores))
            await asyncio.to_thread(self._registry.scores.add, self.run_id, scores)

    async def add_results(self, rows: Sequence[ResultRow]) -> None:
        """Keep what rows got, scored or not; nothing where the run cites no rubric."""
        if self._cited:
            await asyncio.to_thread(self._registry.runs.add_results, self.run_id, rows)

    async def finish(self, outcome: Outcome | None, status: Status = "finished") -> None:
        """Record how the run ended; nothing where it cites no rubric."""
        if self._cited:
            await self._put(status=status, outcome=outcome)

    async def newer(self) -> list[Ref]:
        """The current versions of cited rubrics that were edited since; they are not applied."""
        found = []
        for pinned in sorted(self._cited):
            ref = Ref.parse(pinned)
            current = await asyncio.to_thread(
                self._registry.rubrics.resolve, f"{ref.owner}/{ref.name}"
            )
            if current.ref is not None and current.ref.version != ref.version:
                found.append(current.ref)
        return found

    async def _cite(self, keys: Sequence[ScoreKey]) -> None:
        if (named := {key.rubric for key in keys}) <= self._cited:
            return
        async with self._recording:
            new = named | set(self._run.citations)
            await self._put(citations=tuple(sorted(new - self._cited)))
            self._cited |= new

    async def _put(self, **said: object) -> None:
        run = self._run.model_copy(update={"citations": (), **said})
        await asyncio.to_thread(self._registry.runs.put, self.run_id, run)
