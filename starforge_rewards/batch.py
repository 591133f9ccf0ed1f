"""Scores a whole file of rollouts: one result per row, in input order, resumable after a kill."""

import asyncio
import hashlib
import json
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from starforge_rewards.conversation import Frozen
from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.journal import Journal
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.registry.folder import RowRubrics
from starforge_rewards.rollouts import Row
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import CriterionScore, Score, Unscored
from starforge_rewards.scoring import score

_MOST_TOGETHER = 32
"""Rollouts that are scored and kept together."""
_UNDER_WAY = 128
"""Such groups under way at a time: enough to keep engines busy, and bounded in memory."""


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


class Outcome(NamedTuple):
    """How a file came out."""

    rows: int
    scored: int
    unscored: dict[str, int]
    """Rows without a score, by cause."""
    resumed: int
    """Rows that an earlier, interrupted run had scored."""


def assign(
    rows: Sequence[Row], rubric: ResolvedRubric | None, own: RowRubrics, file: Path
) -> list[Task]:
    """The rubric of each row: its own, else the run's.

    Raises:
        InputError: a row's rubric is refused or absent, or it has none and the run neither.
    """
    tasks = []
    for row in rows:
        try:
            holds = rubric if row.rollout.rubric is None else own.of(row.rollout.rubric)
        except InputError as error:
            said = str(error) if error.file else error.problem  # of the rubric's own file
            field = "rubric" if error.file else error.field or "rubric"
            raise InputError(said, file=file, line=row.line, field=field) from None
        except NotFound as error:
            raise InputError(str(error), file=file, line=row.line, field="rubric") from None
        if holds is None:
            said = "the row has no rubric of its own: give one for the run with --rubric"
            raise InputError(said, file=file, line=row.line, field="rubric")
        tasks.append(Task(row, holds))
    return tasks


async def score_file(
    tasks: Sequence[Task],
    judge: Judge,
    out: Path,
    advance: Callable[[int], None] = lambda _rows: None,
) -> Outcome:
    """Score rows into a JSONL file; what a killed run had scored is not asked again.

    Args:
        tasks: rows with their rubrics.
        judge: who answers.
        out: the results, written whole at the end; until then they are in `<out>.journal`.
        advance: told how many more rows are done.

    Raises:
        InputError: `out` is another thing than results, or holds another job's unfinished ones.
    """
    refuse_foreign(out)
    with Journal(out.with_name(out.name + ".journal"), _job(tasks, judge)) as journal:
        kept = {i for i, row in journal.rows() if json.loads(row).get("outcome") == "scored"}
        causes: Counter[str] = Counter()
        advance(len(kept))
        places = asyncio.Semaphore(_UNDER_WAY)

        async def score_some(indexes: Sequence[int]) -> None:
            try:
                causes.update(await _score_group(tasks, indexes, judge, journal))
            finally:
                places.release()
            advance(len(indexes))

        async with asyncio.TaskGroup() as group:
            for some in _groups([i for i in range(len(tasks)) if i not in kept]):
                await places.acquire()
                group.create_task(score_some(some))
        journal.finish(out)
    return Outcome(len(tasks), len(tasks) - causes.total(), dict(causes), len(kept))


async def _score_group(
    tasks: Sequence[Task], indexes: Sequence[int], judge: Judge, journal: Journal
) -> list[str]:
    """The causes of those that have no score."""
    some = [tasks[index] for index in indexes]
    scores = await score([t.rubric for t in some], [t.row.rollout for t in some], judge)
    results = [result_of(t, s, judge.identity.digest) for t, s in zip(some, scores, strict=True)]
    rows = [result.model_dump_json() for result in results]
    journal.add(dict(zip(indexes, rows, strict=True)))
    return [result.cause for result in results if result.cause is not None]


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


def _job(tasks: Sequence[Task], judge: Judge) -> dict[str, str]:
    rows, rubrics = hashlib.sha256(), hashlib.sha256()
    for task in tasks:
        rows.update(task.row.id.encode() + task.row.rollout.model_dump_json().encode())
        rubrics.update(f"{task.rubric.digest} {task.rubric.ref}\n".encode())
    return {
        "rollouts": rows.hexdigest(),
        "rubrics": rubrics.hexdigest(),
        "judge": judge.identity.digest,
        "form": "1",
    }


def _groups(indexes: Sequence[int]) -> Iterator[Sequence[int]]:
    """Small enough that progress shows, large enough that a call carries a batch."""
    size = max(1, min(_MOST_TOGETHER, len(indexes) // 50))
    for start in range(0, len(indexes), size):
        yield indexes[start : start + size]
