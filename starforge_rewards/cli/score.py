"""`starforge score`: a file of rollouts against a rubric, on any judge."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from pydantic import ValidationError
from rich.table import Table

from starforge_rewards.batch import Resumed, Scored, assign, score_file
from starforge_rewards.cli import screen
from starforge_rewards.errors import InputError, first_problem
from starforge_rewards.judge.config import AnyJudge, load_judge, remembers
from starforge_rewards.judge.meter import Meter, Usage
from starforge_rewards.judge.open import open_judge
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.registry.folder import RowRubrics, rubric_from_file
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.open import open_resolver
from starforge_rewards.registry.protocol import Registry, Resolver
from starforge_rewards.results import Task, refuse_foreign
from starforge_rewards.rollouts import read_rollouts
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.run import Run
from starforge_rewards.settings import Settings


def score(
    rollouts: Annotated[Path, typer.Argument(help="A .jsonl or .parquet file of rollouts.")],
    out: Annotated[Path, typer.Option(help="The results, JSONL, one row per rollout.")],
    rubric: Annotated[
        str | None, typer.Option(help="A rubric file, or <owner>/<name>. Rows may have their own.")
    ] = None,
    judge: Annotated[
        str, typer.Option(help="A judge file, a shipped name such as embedded, or pool:NAME.")
    ] = "embedded",
    subject: Annotated[
        str, typer.Option(help="What made the rollouts, for the record of the run.")
    ] = "",
    as_owner: screen.AsOwner = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Score rollouts; a run that was killed goes on where it stopped.

    Exit code 1 where a rollout has no score.
    """
    if os.path.realpath(out) == os.path.realpath(rollouts):
        raise InputError("--out is the file of rollouts: name another", file=out)
    refuse_foreign(out)
    with open_resolver(Settings.read(), as_owner) as registry:
        found = registry.rubrics if isinstance(registry, Registry) else registry
        resolver = Resumed(found, out)
        held = resolve(rubric, resolver) if rubric else None
        tasks = assign(read_rollouts(rollouts), held, RowRubrics(resolver), rollouts)
        job = _Job(tasks, judge, load_judge(judge), out, _subject(subject, rollouts))
        began = time.monotonic()
        done = _run(job, registry if isinstance(registry, Registry) else None)
    _show(done, out, time.monotonic() - began, as_json=json)
    if done.scored.outcome.unscored:
        raise typer.Exit(1)


def resolve(named: str, resolver: Resolver) -> ResolvedRubric:
    """A rubric by file, or by reference."""
    path = Path(named)
    if path.suffix in {".yaml", ".yml", ".json"} or path.is_file():
        return rubric_from_file(path)
    return resolver.resolve(named)


def _subject(said: str, rollouts: Path) -> str:
    """What the run's record says of where the rollouts came from."""
    if not said:
        said = "".join(c if c.isprintable() else "?" for c in str(rollouts))
    try:
        return Run(role="adhoc_score", subject=said).subject
    except ValidationError as error:
        raise InputError(first_problem(error).said, field="--subject") from None


class _Job(NamedTuple):
    tasks: list[Task]
    judge_named: str
    judge: AnyJudge
    out: Path
    subject: str


class _Done(NamedTuple):
    scored: Scored
    usage: Usage
    run: str | None
    """Under which the registry has it; None where it has not."""
    newer: list[Ref]
    """Rubrics that were edited while the job went on."""


def _run(job: _Job, registry: Registry | None) -> _Done:
    try:
        return asyncio.run(_score(job, registry))
    except InputError as error:
        if error.file is not None:
            raise
        raise InputError(error.problem, file=job.judge_named, field=error.field) from error


async def _score(job: _Job, registry: Registry | None) -> _Done:
    ledgers: list[RunLedger] = []
    async with open_judge(job.judge, tell=screen.tell) as judge:
        meter = Meter(judge)
        record = _recorder(job, registry, judge, ledgers) if registry else None
        with screen.progress("Scoring", len(job.tasks)) as advance:
            scored = await score_file(job.tasks, meter, job.out, advance, record)
    ledger = ledgers[0] if ledgers else None
    newer = await ledger.newer() if ledger else []
    recorded = scored.run if ledger and ledger.cited else None
    return _Done(scored, meter.usage, recorded, newer)


def _recorder(
    job: _Job, registry: Registry, judge: Judge, ledgers: list[RunLedger]
) -> Callable[[str], RunLedger]:
    run = Run(role="adhoc_score", subject=job.subject, judge=judge.identity.record)

    def record(run_id: str) -> RunLedger:
        ledgers.append(RunLedger(registry, run_id, run, reuse=remembers(job.judge)))
        return ledgers[-1]

    return record


def _show(done: _Done, out: Path, seconds: float, *, as_json: bool) -> None:
    for ref in done.newer:
        screen.tell(f"{ref} is the current version by now; this run kept the one it began with")
    if not as_json:
        screen.out.print(_summary(done, seconds))
        screen.out.print(f"Results: {out}", markup=False)
        return
    facts = {
        "resumed": done.scored.resumed,
        "run": done.run,
        "out": str(out),
        "seconds": round(seconds, 3),
    }
    outcome = done.scored.outcome.model_dump(exclude={"metrics"})
    screen.print_json({**outcome, **done.usage.model_dump(), **facts})


def _summary(done: _Done, seconds: float) -> Table:
    outcome, usage = done.scored.outcome, done.usage
    table = Table(show_header=False, box=None)
    table.add_row("rollouts", str(outcome.rows))
    table.add_row("scored", str(outcome.scored))
    for cause, count in outcome.unscored.items():
        table.add_row(f"unscored: {cause}", str(count))
    if outcome.score is not None:
        table.add_row("mean total of the scored", f"{outcome.score:.4g}")
    if done.scored.resumed:
        table.add_row("scored by an earlier run", str(done.scored.resumed))
    table.add_row("questions asked", str(usage.asked))
    table.add_row("answers from the cache", str(usage.cached))
    table.add_row("prompt tokens", f"{usage.prompt_tokens} ({usage.computed_tokens} computed)")
    table.add_row("time", f"{seconds:.1f} s")
    if done.run:
        table.add_row("run", done.run)
    return table
