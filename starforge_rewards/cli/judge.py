"""`starforge judge`: a named pool that trainers and evaluations share, and whether it can judge."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from starforge_rewards.cli import screen
from starforge_rewards.errors import InputError
from starforge_rewards.judge.canaries import CHOICES, Findings, ask_canaries
from starforge_rewards.judge.config import PoolJudge, Ray, VllmJudge, load_judge
from starforge_rewards.judge.front import PoolStatus
from starforge_rewards.judge.model import resolve_model
from starforge_rewards.judge.open import Labelled, open_judge
from starforge_rewards.settings import Settings

app = typer.Typer(help="Named judge pools, shared by trainers and evaluations.")

Name = Annotated[str, typer.Argument(help="The pool's name.")]
Config = Annotated[str, typer.Option("--judge", help="A judge file, or a shipped name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Cluster = Annotated[str, typer.Option("--address", help="The Ray cluster: auto, or host:port.")]


@app.command("up")
def up(name: Name, judge: Config = "embedded", address: Cluster = "auto") -> None:
    """Start a pool that runs until `judge down`; where no Ray cluster runs, start one first."""
    from starforge_rewards.engine import head  # late: loads ray
    from starforge_rewards.judge import pool

    config, settings = load_judge(judge), Settings.read()
    if not isinstance(config, VllmJudge):
        raise InputError("only a judge of `kind: vllm` is a pool", file=judge, field="kind")
    ray = config.ray if config.ray.address else config.ray.model_copy(update={"address": address})
    at = pool.address_of(ray, detached=True)
    model = resolve_model(config, settings, screen.tell)
    cache = settings.cache_dir / "verdicts.sqlite" if config.reuse else None
    plan = pool.plan_for(config, model, name=name, at=at, cache=cache)
    started = head.ensure(at, _state(settings))
    if name in pool.pools(at):
        raise InputError(f"a pool {name!r} runs already: `starforge judge down {name}` first")
    screen.tell(f"Starting {config.pool.replicas} x {model.identity.model}")
    try:
        asyncio.run(pool.launch(plan))
    except BaseException:
        if started:
            head.stop(_state(settings))
        raise
    screen.out.print(f"pool {name} is up: use it with --judge pool:{name}")


@app.command("down")
def down(name: Name, address: Cluster = "auto") -> None:
    """End a pool, and the Ray head where `judge up` started one and no pool is left."""
    from starforge_rewards.engine import head  # late: loads ray
    from starforge_rewards.judge import pool

    at = pool.address_of(Ray(address=address), detached=True)
    count = pool.shut(name, at)
    if not count:
        screen.err.print(f"no pool {name} runs")
        raise typer.Exit(1)
    if not pool.pools(at):
        head.stop(_state(Settings.read()))
    screen.out.print(f"pool {name} is down")


@app.command("status")
def status(name: Name, address: Cluster = "auto", json: AsJson = False) -> None:
    """Show a pool's replicas. Exit code 1 where one is not up."""
    from starforge_rewards.judge import pool  # late: loads ray

    fronts = asyncio.run(pool.status(name, pool.address_of(Ray(address=address))))
    if json:
        screen.print_json({"pool": name, "fronts": [front.model_dump() for front in fronts]})
    else:
        screen.out.print(_status_table(fronts))
    if any(replica.state != "up" for front in fronts for replica in front.replicas):
        raise typer.Exit(1)


@app.command("check")
def check(
    judge: Annotated[str, typer.Argument(help="A judge file, a shipped name, or pool:NAME.")],
    json: AsJson = False,
) -> None:
    """Ask canaries with known answers. Exit code 1 where the judge should not be relied on."""
    config = load_judge(judge)
    if not isinstance(config, PoolJudge):
        config = config.model_copy(update={"reuse": False})

    async def ask() -> tuple[Findings, str | None]:
        async with open_judge(config, tell=screen.tell) as opened:
            shown = await opened.labels(CHOICES) if isinstance(opened, Labelled) else None
            return await ask_canaries(opened), shown

    findings, shown = asyncio.run(ask())
    warnings = findings.warnings
    if json:
        separation = {"separation": findings.separation, "warnings": warnings, "labels": shown}
        screen.print_json({**findings.model_dump(), **separation})
    else:
        screen.out.print(_findings_table(findings, shown))
        for warning in warnings:
            screen.out.print(f"[yellow]warning:[/yellow] {warning}")
    if warnings:
        raise typer.Exit(1)


def _state(settings: Settings) -> Path:
    return settings.cache_dir / "ray-head.json"


def _status_table(fronts: list[PoolStatus]) -> Table:
    table = Table("front", "replica", "state", "in flight", "answered", "queued")
    for number, front in enumerate(fronts):
        for one in front.replicas:
            cells = (one.name, one.state, str(one.in_flight), str(one.answered))
            table.add_row(str(number), *cells, str(front.queued))
    return table


def _findings_table(findings: Findings, shown: str | None) -> Table:
    def said(value: float | None) -> str:
        return "no answer" if value is None else f"{value:.2f}"

    table = Table("canary", "mean value on 0-5")
    for name in ("good", "bad", "empty", "injection"):
        table.add_row(name, said(getattr(findings, name)))
    table.add_row("separation (good - bad)", said(findings.separation))
    if findings.mass is not None:
        table.add_row("probability on the labels", f"{findings.mass:.2f}")
    if shown is not None:
        table.add_row("label tokens", shown)
    return table
