"""Scores a whole file of rollouts: one result per row, in input order, resumable after a kill."""

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from starforge_rewards.errors import InputError, NotFound, StarforgeError
from starforge_rewards.journal import Journal, noted
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.registry.folder import RowRubrics
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.protocol import Resolver
from starforge_rewards.results import (
    End,
    Task,
    outcome_of,
    recorded,
    refuse_foreign,
    result_of,
)
from starforge_rewards.rollouts import Row
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.run import Outcome
from starforge_rewards.scoring import score

_MOST_TOGETHER = 32
"""Rollouts that are scored and kept together."""
_UNDER_WAY = 128
"""Such groups under way at a time: enough to keep engines busy, and bounded in memory."""

_MOST_PINS = 100


class Scored(NamedTuple):
    """How a file came out."""

    outcome: Outcome
    resumed: int
    """Rows that an earlier, interrupted run had scored."""
    run: str
    """The id of this job, under which a registry has it."""


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
    record: Callable[[str], RunLedger] | None = None,
) -> Scored:
    """Score rows into a JSONL file; what a killed run had scored is not asked again.

    Args:
        tasks: rows with their rubrics.
        judge: who answers.
        out: the results, written whole at the end; until then they are in `<out>.journal`.
        advance: told how many more rows are done.
        record: the ledger of the run with a given id; a resumed job goes on as the same run.

    Raises:
        InputError: `out` is another thing than results, or holds another job's unfinished ones.
        Unavailable: the registry cannot be used; the same command goes on later.
    """
    refuse_foreign(out)
    new = {"run": uuid.uuid4().hex[:16], "pins": _pins(tasks)}
    with Journal(_journal(out), _job(tasks, judge), new) as journal:
        run = str(journal.about.get("run", new["run"]))
        work = _Work(tasks, judge, journal, record(run) if record else None)
        ends = {i: _end(row) for i, row in journal.rows()}
        ends = {i: end for i, end in ends.items() if end.cause is None}
        resumed = len(ends)
        advance(resumed)
        try:
            await _score_missing(work, ends, advance)
            journal.finish(out)
        except BaseException:
            if work.ledger:
                with suppress(StarforgeError):  # told is what went wrong first
                    await work.ledger.finish(None, "failed")
            raise
    outcome = outcome_of(ends.values(), (task.rubric for task in tasks))
    if work.ledger:
        await work.ledger.finish(outcome)
    return Scored(outcome, resumed, run)


class _Work(NamedTuple):
    tasks: Sequence[Task]
    judge: Judge
    journal: Journal
    ledger: RunLedger | None


async def _score_missing(work: _Work, ends: dict[int, End], advance: Callable[[int], None]) -> None:
    places = asyncio.Semaphore(_UNDER_WAY)

    async def score_some(some: Sequence[int]) -> None:
        try:
            ends.update(await _score_group(work, some))
        finally:
            places.release()
        advance(len(some))

    async with asyncio.TaskGroup() as group:
        for some in _groups([i for i in range(len(work.tasks)) if i not in ends]):
            await places.acquire()
            group.create_task(score_some(some))


async def _score_group(work: _Work, indexes: Sequence[int]) -> dict[int, End]:
    """Recorded first and kept then: what a kill leaves between the two is recorded again."""
    some = [work.tasks[index] for index in indexes]
    rubrics, rollouts = [t.rubric for t in some], [t.row.rollout for t in some]
    scores = await score(rubrics, rollouts, work.judge, ledger=work.ledger)
    judge = work.judge.identity.digest
    results = [result_of(t, s, judge) for t, s in zip(some, scores, strict=True)]
    if work.ledger:
        rows = zip(indexes, some, scores, strict=True)
        kept = [recorded(t.row.id, i, t.rubric, t.row.rollout, s) for i, t, s in rows]
        await work.ledger.add_results(kept)
    lines = [result.model_dump_json() for result in results]
    work.journal.add(dict(zip(indexes, lines, strict=True)))
    return dict(zip(indexes, map(End.of, scores), strict=True))


def _end(line: str) -> End:
    row: dict[str, Any] = json.loads(line)
    scored = row.get("outcome") == "scored"
    return End(row.get("total"), row.get("normalized"), None if scored else "unscored")


class Resumed:
    """Resolves references as the unfinished job beside `out` did: its pins hold for its life."""

    def __init__(self, resolver: Resolver, out: Path) -> None:
        pins = noted(_journal(out)).get("pins")
        self._pins = pins if isinstance(pins, dict) else {}
        self._resolver = resolver

    def resolve(self, text: str) -> ResolvedRubric:
        """The rubric that a reference names.

        Raises:
            InputError: not a reference.
            NotFound: absent, or not readable to the asker.
        """
        pinned = self._pins.get(text)
        return self._resolver.resolve(f"{text}@{pinned}" if isinstance(pinned, int) else text)


def _pins(tasks: Sequence[Task]) -> dict[str, int]:
    """The versions of a job's rubrics; a job of very many is known by its digest alone."""
    refs = {task.rubric.ref for task in tasks if task.rubric.ref is not None}
    pins = {f"{ref.owner}/{ref.name}": ref.version for ref in refs if ref.version is not None}
    return pins if len(pins) <= _MOST_PINS else {}


def _journal(out: Path) -> Path:
    return out.with_name(out.name + ".journal")


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
