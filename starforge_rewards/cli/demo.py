"""`starforge demo`: real rollouts, a real judge, in about three minutes on two CPU cores."""

import asyncio
import time

import typer
from rich.table import Table

from starforge_rewards.cli import screen
from starforge_rewards.judge.config import load_judge
from starforge_rewards.judge.meter import Meter, Usage
from starforge_rewards.judge.open import open_judge
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.registry.folder import FolderRegistry
from starforge_rewards.rollouts import Row, read_rollouts
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Score, Unscored
from starforge_rewards.scoring import score
from starforge_rewards.settings import shipped

_RUBRIC = "starforge/support-answer"
_WEAK = (
    "The embedded judge is a model of 135 million parameters: it shows that everything runs, and "
    "hardly tells a good answer from a bad one. Choose a larger judge for numbers to rely on."
)


def demo() -> None:
    """Score the shipped support-desk rollouts on the embedded judge and print a table."""
    rubric = FolderRegistry().resolve(_RUBRIC)
    rows = read_rollouts(shipped("environments", "support-desk", "rollouts.jsonl"))
    results, usage, judge, seconds = asyncio.run(_demo(rubric, rows))
    screen.out.print(_table(rubric, rows, results))
    identity = judge.identity
    screen.out.print(f"Judge: {identity.model} ({identity.dtype}) on {identity.engine}")
    screen.out.print(
        f"{usage.asked} questions in {seconds:.1f} s, {usage.prompt_tokens} prompt tokens "
        f"submitted, {usage.computed_tokens} computed by the engine"
    )
    screen.out.print(f"[yellow]{_WEAK}[/yellow]")
    if any(isinstance(result, Unscored) for result in results):
        raise typer.Exit(1)


async def _demo(
    rubric: ResolvedRubric, rows: list[Row]
) -> tuple[list[Score | Unscored], Usage, Judge, float]:
    # Asked anew each time: a demonstration out of the cache would show nothing.
    config = load_judge("embedded").model_copy(update={"reuse": False})
    async with open_judge(config, tell=screen.tell) as judge:
        meter = Meter(judge)
        await meter.answer([])  # starts the engine, so that the time below is the scoring's
        began = time.monotonic()
        with screen.progress("Scoring", len(rows)) as advance:

            async def one(row: Row) -> Score | Unscored:
                [result] = await score(rubric, [row.rollout], meter)
                advance(1)
                return result

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(row)) for row in rows]
        results = [task.result() for task in tasks]
        return results, meter.usage, judge, time.monotonic() - began


def _table(rubric: ResolvedRubric, rows: list[Row], results: list[Score | Unscored]) -> Table:
    low, high = rubric.rubric.scale_min, rubric.rubric.scale_max
    table = Table(title=f"{rubric} on {low:g}-{high:g}")
    table.add_column("rollout")
    table.add_column("intended")
    for criterion in rubric.rubric.criteria:
        table.add_column(f"{criterion.name} (x{criterion.weight:g})", justify="right")
    table.add_column("total", justify="right")
    table.add_column("reward", justify="right")
    for row, result in zip(rows, results, strict=True):
        intended = str(row.rollout.metadata.get("intended", ""))
        table.add_row(row.id, intended, *_cells(rubric, result))
    return table


def _cells(rubric: ResolvedRubric, result: Score | Unscored) -> list[str]:
    names = [criterion.name for criterion in rubric.rubric.criteria]
    match result:
        case Score(decided="empty_response"):
            return ["empty"] * len(names) + [f"{result.total:.2f}", f"{result.normalized:.3f}"]
        case Score():
            values = [f"{result.criteria[name].value:.2f}" for name in names]
            return [*values, f"{result.total:.2f}", f"{result.normalized:.3f}"]
        case Unscored():
            answered = result.answered
            values = [f"{answered[n].value:.2f}" if n in answered else "-" for n in names]
            return [*values, "unscored", result.cause]
