"""The rows of a results file: one per rollout, scored or not, each with every key."""

import json
import math
import stat
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, Self

from starforge_rewards.conversation import Frozen, Rollout
from starforge_rewards.errors import InputError
from starforge_rewards.rollouts import Row
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import CriterionScore, Score, Unscored, evidence_of
from starforge_rewards.run import Outcome, ResultRow


class Result(Frozen):
    """One row of results; every row has every key."""

    id: str
    outcome: Literal["scored", "unscored"]
    total: float | None = None
    normalized: float | None = None
    raw: float | None = None
    cause: str | None = None
    detail: str = ""
    missing: tuple[str, ...] = ()
    decided: str | None = None
    criteria: dict[str, CriterionScore]
    unanswered: dict[str, str] = {}
    rubric: str | None
    """Its reference, or null for a rubric given inline or as a file."""
    rubric_digest: str
    unversioned: bool
    judge: str
    """Digest of the judge's identity."""


class Task(NamedTuple):
    """A row and the rubric that holds for it."""

    row: Row
    rubric: ResolvedRubric


def result_of(task: Task, result: Score | Unscored, judge: str) -> Result:
    """The row that is written for a result."""
    about = {
        "id": task.row.id,
        "rubric": str(task.rubric.ref) if task.rubric.ref else None,
        "rubric_digest": task.rubric.digest,
        "unversioned": task.rubric.unversioned,
        "judge": judge,
    }
    match result:
        case Score():
            return Result(
                **about,
                outcome="scored",
                total=result.total,
                normalized=result.normalized,
                raw=result.raw,
                decided=result.decided,
                criteria=result.criteria,
                unanswered=result.unanswered,
            )
        case Unscored():
            return Result(
                **about,
                outcome="unscored",
                cause=result.cause,
                detail=result.detail,
                missing=result.missing,
                criteria=result.answered,
            )


def recorded(
    key: str, position: int, rubric: ResolvedRubric, rollout: Rollout, result: Score | Unscored
) -> ResultRow:
    """The row as a registry keeps it with its run; the score itself is in the ledger."""
    versioned = not rubric.unversioned
    got: dict[str, object]
    match result:
        case Score():
            got = {"outcome": "scored", "total": result.total, "normalized": result.normalized}
        case Unscored():
            got = {"outcome": "unscored", "cause": result.cause, "detail": result.detail}
    return ResultRow(
        key=key,
        position=position,
        rubric=str(rubric) if versioned else None,
        evidence=evidence_of(rollout).digest.hex() if versioned else None,
        **got,
    )


class End(NamedTuple):
    """How one row ended: with numbers, or with a cause."""

    total: float | None = None
    normalized: float | None = None
    cause: str | None = None

    @classmethod
    def of(cls, result: Score | Unscored) -> Self:
        match result:
            case Score():
                return cls(result.total, result.normalized)
            case Unscored():
                return cls(cause=result.cause)


def outcome_of(ends: Iterable[End], rubrics: Iterable[ResolvedRubric]) -> Outcome:
    """What came of a run; totals on several rubrics' scales have no mean."""
    ends = list(ends)
    totals = [end.total for end in ends if end.total is not None]
    normalized = [end.normalized for end in ends if end.normalized is not None]
    alike = len({rubric.digest for rubric in rubrics}) == 1
    return Outcome(
        rows=len(ends),
        scored=len(totals),
        unscored=Counter(end.cause for end in ends if end.cause is not None),
        score=math.fsum(totals) / len(totals) if totals and alike else None,
        normalized=math.fsum(normalized) / len(normalized) if normalized else None,
    )


def refuse_foreign(out: Path) -> None:
    """Results may be replaced by new ones; any other file is left alone.

    Raises:
        InputError: something is there that holds no results.
    """
    try:
        # A device is no file, and would be replaced.
        if stat.S_ISREG(out.stat().st_mode) and _holds_results(out):
            return
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=out) from None
    raise InputError("exists and holds no results: name another file with --out", file=out)


def _holds_results(out: Path) -> bool:
    """Whether every line is a result: what somebody added to them is theirs."""
    with out.open("rb") as file:
        return all(_is_result(line) for line in file)


def _is_result(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and {"outcome", "rubric_digest", "judge"} <= row.keys()
