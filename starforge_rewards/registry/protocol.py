"""What a registry is, wherever it lies: a database, a server, or (to resolve only) a folder.

All calls are synchronous and may be made from any thread. Access follows who asks: what is not
readable is `NotFound`, exactly as what is not there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from starforge_rewards.registry.records import (
    Current,
    Listing,
    Revision,
    RubricQuery,
    RunListing,
    RunQuery,
    ScoreKey,
    ScorePage,
    Written,
)
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.rubrics.weighted import Rubric, Score
from starforge_rewards.run import ResultRow, Run, RunRecord, Usage


class Resolver(Protocol):
    """Finds the rubric that a reference names."""

    def resolve(self, text: str) -> ResolvedRubric:
        """The rubric, pinned.

        Raises:
            InputError: not a reference, or what it names is refused.
            NotFound: absent, or not readable to the asker.
        """
        ...


class Rubrics(Resolver, Protocol):
    """Rubrics, each with every version's text."""

    def put(
        self,
        ref: Ref,
        rubric: Rubric,
        *,
        expected_version: int | None = None,
        write_key: str | None = None,
    ) -> Written:
        """Create or replace; an equal body is no edit, absent `visibility` keeps the current one.

        Args:
            ref: owner and name; without a version.
            rubric: the whole body.
            expected_version: refuse the write where the current version is another; 0: where there
                is one at all.
            write_key: chosen by the caller: a write that is sent twice under it lands once.

        Raises:
            Forbidden: another's namespace.
            Conflict: `expected_version` does not match.
        """
        ...

    def show(self, ref: Ref) -> Current:
        """The current version, or the one that `ref` pins.

        Raises:
            NotFound: absent, or not readable to the asker.
        """
        ...

    def list(self, query: RubricQuery) -> Listing: ...

    def revisions(self, ref: Ref) -> Sequence[Revision]:
        """Every version with its full text, newest first.

        Raises:
            NotFound: absent, or not readable to the asker.
        """
        ...

    def usage(self, ref: Ref) -> Sequence[Usage]:
        """Which runs cited which version, newest first. Readers who do not own it see their own.

        Raises:
            NotFound: absent, or not readable to the asker.
        """
        ...

    def archive(self, ref: Ref, archived: bool) -> Current:
        """Hide from listings, or show again; no new version, and everything else works on.

        Raises:
            NotFound: absent, or not readable to the asker.
            Forbidden: another's rubric.
        """
        ...


class Runs(Protocol):
    """Runs, which record themselves."""

    def put(self, run_id: str, run: Run) -> RunRecord:
        """Record a run, or what is new of it; the same again changes nothing.

        Citations are added to those that are there.

        Raises:
            NotFound: a citation is absent or not readable to the asker.
            Conflict: the id is taken, or role, runner, subject or judge are other than before.
        """
        ...

    def show(self, run_id: str) -> RunRecord:
        """One run with its citations.

        Raises:
            NotFound: absent, or another's.
        """
        ...

    def list(self, query: RunQuery) -> RunListing: ...

    def add_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        """Keep rows; a row of the same key replaces the one before.

        Raises:
            NotFound: no such run of the asker's.
        """
        ...

    def results(self, run_id: str, *, after: int = -1, limit: int = 200) -> Sequence[ResultRow]:
        """Rows at positions beyond `after`, in order of position.

        Raises:
            NotFound: no such run, or another's.
        """
        ...


class Scores(Protocol):
    """The score ledger: each recorder finds only what was recorded under their own name."""

    def find(self, judge: str, keys: Sequence[ScoreKey]) -> dict[ScoreKey, Score]:
        """The complete scores that are there, of the judge with this identity digest."""
        ...

    def add(self, run_id: str, scores: Mapping[ScoreKey, Score]) -> None:
        """Keep the scores that a run used, and that it used them; the same again changes nothing.

        Raises:
            NotFound: no such run of the asker's.
            InputError: the run has no judge, or does not cite a score's rubric.
        """
        ...

    def of_run(self, run_id: str, *, cursor: str | None = None, limit: int = 200) -> ScorePage:
        """The scores that a run used.

        Raises:
            NotFound: no such run, or another's.
        """
        ...


@dataclass(frozen=True)
class Registry:
    """All of it, for one who asks."""

    rubrics: Rubrics
    runs: Runs
    scores: Scores
