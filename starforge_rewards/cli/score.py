"""`starforge score`: a file of rollouts against a rubric, on any judge."""

import asyncio
import os
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from starforge_rewards.batch import Outcome, Task, assign, refuse_foreign, score_file
from starforge_rewards.cli import screen
from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import AnyJudge, load_judge
from starforge_rewards.judge.meter import Meter, Usage
from starforge_rewards.judge.open import open_judge
from starforge_rewards.registry.folder import FolderRegistry, RowRubrics, rubric_from_file
from starforge_rewards.rollouts import read_rollouts
from starforge_rewards.rubrics.ref import ResolvedRubric


def score(
    rollouts: Annotated[Path, typer.Argument(help="A .jsonl or .parquet file of rollouts.")],
    out: Annotated[Path, typer.Option(help="The results, JSONL, one row per rollout.")],
    rubric: Annotated[
        str | None, typer.Option(help="A rubric file, or <owner>/<name>. Rows may have their own.")
    ] = None,
    judge: Annotated[
        str, typer.Option(help="A judge file, a shipped name such as embedded, or pool:NAME.")
    ] = "embedded",
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Score rollouts; a run that was killed goes on where it stopped.

    Exit code 1 where a rollout has no score.
    """
    if os.path.realpath(out) == os.path.realpath(rollouts):
        raise InputError("--out is the file of rollouts: name another", file=out)
    refuse_foreign(out)
    held = resolve(rubric) if rubric else None
    tasks = assign(read_rollouts(rollouts), held, RowRubrics(FolderRegistry()), rollouts)
    config = load_judge(judge)
    began = time.monotonic()
    try:
        outcome, usage = asyncio.run(_score(tasks, config, out))
    except InputError as error:
        if error.file is not None:
            raise
        raise InputError(error.problem, file=judge, field=error.field) from error  # what it names
    seconds = time.monotonic() - began
    if json:
        facts = {"out": str(out), "seconds": round(seconds, 3)}
        screen.print_json({**outcome._asdict(), **usage.model_dump(), **facts})
    else:
        screen.out.print(_summary(outcome, usage, seconds))
        screen.out.print(f"Results: {out}", markup=False)
    if outcome.unscored:
        raise typer.Exit(1)


def resolve(named: str) -> ResolvedRubric:
    """A rubric by file, or by reference in the shipped folder."""
    path = Path(named)
    if path.suffix in {".yaml", ".yml", ".json"} or path.is_file():
        return rubric_from_file(path)
    return FolderRegistry().resolve(named)


async def _score(tasks: list[Task], config: AnyJudge, out: Path) -> tuple[Outcome, Usage]:
    async with open_judge(config, tell=screen.tell) as judge:
        meter = Meter(judge)
        with screen.progress("Scoring", len(tasks)) as advance:
            outcome = await score_file(tasks, meter, out, advance)
        return outcome, meter.usage


def _summary(outcome: Outcome, usage: Usage, seconds: float) -> Table:
    table = Table(show_header=False, box=None)
    table.add_row("rollouts", str(outcome.rows))
    table.add_row("scored", str(outcome.scored))
    for cause, count in outcome.unscored.items():
        table.add_row(f"unscored: {cause}", str(count))
    if outcome.resumed:
        table.add_row("scored by an earlier run", str(outcome.resumed))
    table.add_row("questions asked", str(usage.asked))
    table.add_row("answers from the cache", str(usage.cached))
    table.add_row("prompt tokens", f"{usage.prompt_tokens} ({usage.computed_tokens} computed)")
    table.add_row("time", f"{seconds:.1f} s")
    return table
