"""`starforge env`: environments to train in, looked at and tried before a training run."""

import asyncio
import json as json_text
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TextIO

import typer
from rich.table import Table

from starforge_rewards import documents, tables
from starforge_rewards.cli import plain, screen
from starforge_rewards.conversation import Content, Frozen, Text
from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry.folder import RowRubrics
from starforge_rewards.registry.open import open_resolver
from starforge_rewards.registry.protocol import Registry, Resolver
from starforge_rewards.rubrics.lint import lint
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.settings import Settings
from starforge_rewards.training.dataset import Split, TaskRow, numbered_tasks, read_tasks
from starforge_rewards.training.environment import (
    AnyVerifier,
    EndpointVerifier,
    FileDataset,
    HubDataset,
    Loaded,
    PluginVerifier,
    RubricVerifier,
    load_environment,
    shipped_environments,
)
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward
from starforge_rewards.training.stand import verifiers_of
from starforge_rewards.training.tally import RewardMetrics
from starforge_rewards.training.verify import ByRubric, Verifier

app = typer.Typer(help="Environments to train in: list, check and try them.")

Named = Annotated[str, typer.Argument(metavar="ENV", help="A folder, a file, or a shipped name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_environments(json: AsJson = False) -> None:
    """List the environments that ship."""
    found = [_about(load_environment(name)) for name in shipped_environments()]
    if json:
        screen.print_json({"environments": found})
        return
    columns = ("environment", "rows", "verifiers", "judge", "description")
    keys = ("name", "rows", "verifiers", "judge", "description")
    plain.show_table(columns, ([_cell(one[key]) for key in keys] for one in found))


@app.command("check")
def check(named: Named, as_owner: screen.AsOwner = None, json: AsJson = False) -> None:
    """Check all of an environment: its rows, rubrics, plugins and judge's file.

    Advice on its rubrics is no refusal. Exit code 2 where something is refused.
    """
    loaded = load_environment(named)
    loaded.judge()
    with open_resolver(Settings.read(), as_owner) as registry:
        resolver = registry.rubrics if isinstance(registry, Registry) else registry
        verifiers = verifiers_of(loaded, resolver)
        if any(isinstance(v, ByRubric) and isinstance(v.rubric, RowRubrics) for v in verifiers):
            _check_row_rubrics(loaded, resolver)
    about = _about(loaded)
    rubrics = [held for v in verifiers if (held := _one_rubric(v)) is not None]
    advice = [(rubric, one) for rubric in rubrics for one in lint(rubric.rubric)]
    if json:
        advised = [{"rubric": str(rubric), **one.model_dump()} for rubric, one in advice]
        pinned = [str(rubric) for rubric in rubrics]
        screen.print_json({**about, "rubrics": pinned, "advice": advised})
        return
    plain.show(f"{about['name']}: {_cell(about['rows'])}; judge {about['judge']}")
    for verifier in verifiers:
        held = _one_rubric(verifier)
        kept = f" = {held}" if held is not None and str(held) != verifier.name else ""
        plain.show(f"  {verifier.weight:g} * {verifier.name}{kept}")
    for rubric, one in advice:
        said = f"{rubric}: {one.field}: {one.said} [{one.rule}]"
        screen.err.print(said, markup=False, soft_wrap=True)


@app.command("score")
def score(
    named: Named,
    rollouts: Annotated[
        Path, typer.Argument(help="JSONL or Parquet: id (of a task) and response.")
    ],
    out: Annotated[Path, typer.Option(help="The rewards, JSONL, one row per rollout.")],
    judge: Annotated[
        str | None, typer.Option(help="In place of the environment's: a file, a name, pool:NAME.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Only tasks of this one: train or eval.")
    ] = None,
    as_owner: screen.AsOwner = None,
    json: AsJson = False,
) -> None:
    """Reward rollouts as a training run would; several of one task may come.

    Exit code 1 where a rollout has no reward.
    """
    _refuse(rollouts, out)
    loaded = load_environment(named)
    reward = RubricReward(loaded, judge=judge, subject=str(rollouts), as_owner=as_owner)
    reward.role = "adhoc_score"
    job = _Job(reward, _tasks(loaded, split), rollouts)
    count = sum(1 for _ in job.items())  # the whole file is checked before any is judged
    if not count:
        raise InputError("holds no rollouts", file=rollouts)
    with screen.progress("Scoring", count) as advance:
        asyncio.run(_write(job, out, advance))
    reward.finish()
    metrics = reward.metrics()
    if json:
        facts = {"rows": count, **metrics.model_dump(), "newer": reward.newer, "out": str(out)}
        screen.print_json(facts)
    else:
        _show(count, metrics, out)
    if metrics.failed:
        raise typer.Exit(1)


class Responded(Frozen):
    """A row of rollouts."""

    id: Text
    """Of the task."""
    response: Content


class _Job(NamedTuple):
    reward: RubricReward
    tasks: dict[str, TaskRow]
    rollouts: Path

    def items(self) -> Iterator[Item]:
        """The rollouts, one at a time."""
        for line, row in tables.rows(self.rollouts, Responded):
            if row.id not in self.tasks:
                said = f"{row.id!r} is the id of no task that was asked for"
                raise InputError(said, file=self.rollouts, line=line, field="id")
            yield Item(self.tasks[row.id], row.response)


def _tasks(loaded: Loaded, split: str | None) -> dict[str, TaskRow]:
    kinds: dict[str, Split] = {"train": "train", "eval": "eval"}
    if split is not None and split not in kinds:
        raise InputError(f"{split!r} is no split: train or eval", field="--split")
    return {row.id: row for row in read_tasks(loaded, kinds[split] if split else None)}


async def _write(job: _Job, out: Path, advance: Callable[[int], None]) -> None:
    """Beside its place until it is whole."""
    part = out.with_name(f".{out.name}.{uuid.uuid4().hex}")
    try:
        with part.open("x", encoding="utf-8") as file:
            await _write_rows(job, file, advance)
        part.replace(out)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=out) from error
    finally:
        part.unlink(missing_ok=True)


async def _write_rows(job: _Job, file: TextIO, advance: Callable[[int], None]) -> None:
    ids = (item.row.id for item in job.items())
    async with aclosing(job.reward.stream(job.items())) as rewards:
        async for reward in rewards:
            file.write(_row(next(ids), reward) + "\n")
            advance(1)


def _row(name: str, reward: Reward) -> str:
    return json_text.dumps({"id": name, **reward.model_dump()}, ensure_ascii=False)


def _refuse(rollouts: Path, out: Path) -> None:
    """Rewards may be replaced by new ones; any other file is left alone."""
    if os.path.realpath(out) == os.path.realpath(rollouts):
        raise InputError("--out is the file of rollouts: name another", file=out)
    if os.path.lexists(out) and not _holds_rewards(out):
        raise InputError("exists and holds no rewards: name another file with --out", file=out)


def _holds_rewards(out: Path) -> bool:
    try:
        _, first = next(documents.records(out))
    except (InputError, StopIteration):
        return False
    return out.is_file() and isinstance(first, dict) and {"id", "value", "origins"} <= first.keys()


def _show(count: int, metrics: RewardMetrics, out: Path) -> None:
    table = Table(show_header=False, box=None)
    table.add_row("rollouts", str(count))
    table.add_row("with a reward", str(metrics.scored))
    for cause, failed in metrics.failed.items():
        table.add_row(f"without: {cause}", str(failed))
    table.add_row("criteria asked", str(metrics.asked))
    table.add_row("criteria found", str(metrics.cached))
    screen.out.print(table)
    screen.out.print(f"Rewards: {out}", markup=False)


def _check_row_rubrics(loaded: Loaded, resolver: Resolver) -> None:
    rubrics = RowRubrics(resolver)
    for line, row in numbered_tasks(loaded):
        try:
            rubrics.of(row.rubric or {})
        except (InputError, NotFound) as error:
            said = error.problem if isinstance(error, InputError) else str(error)
            field = getattr(error, "field", None) or "rubric"
            raise InputError(said, file=_source(loaded), line=line, field=field) from None


def _source(loaded: Loaded) -> object:
    match loaded.environment.dataset:
        case HubDataset(hub=named):
            return named
        case FileDataset(file=named) | str(named):
            return loaded.folder / named


def _about(loaded: Loaded) -> dict[str, Any]:
    environment = loaded.environment
    judge = environment.judge
    return {
        "name": environment.name,
        "description": environment.description,
        "rows": dict(Counter(row.split for row in read_tasks(loaded))),
        "verifiers": [_kind(verifier) for verifier in environment.all_verifiers],
        "judge": judge if isinstance(judge, str) else judge.kind,
    }


def _kind(verifier: AnyVerifier) -> str:
    match verifier:
        case RubricVerifier(ref=str(ref)):
            return f"rubric {ref}"
        case RubricVerifier(ref_column=str(column)):
            return f"rubric of each row ({column})"
        case PluginVerifier(plugin=said) | EndpointVerifier(url=said):
            return f"{verifier.kind} {said}"
    return "rubric, its own"


def _one_rubric(verifier: Verifier) -> ResolvedRubric | None:
    held = verifier.rubric if isinstance(verifier, ByRubric) else None
    return held if isinstance(held, ResolvedRubric) else None


def _cell(value: object) -> str:
    match value:
        case dict():
            return ", ".join(f"{count} {name}" for name, count in value.items())
        case list():
            return ", ".join(map(str, value))
    return str(value)
