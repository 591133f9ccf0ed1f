"""Scoring through the whole stack beside `LLM.generate` of the same prompts in the same order.

Ours: `score` on `open_judge`, its actors, front and engine, without the verdict cache. Bare: vLLM's
offline class with the same model, options, threads and sampling, given ready token ids. Only one of
them is alive at a time; every run has its own evidence, so none finds another's prefixes.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from starforge_rewards.conversation import Rollout
from starforge_rewards.judge import pool
from starforge_rewards.judge.config import VllmJudge
from starforge_rewards.judge.model import resolve_model
from starforge_rewards.judge.open import open_judge
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Score
from starforge_rewards.scoring import score
from starforge_rewards.settings import Settings
from tests.performance import bare_engine, models, workload
from tests.performance.prompt import Press
from tests.performance.ratio import Ratio, Target, at_most

_BLOCKS = 2
_WARM_UP = 8
"""Rollouts that are scored before the clock runs."""


class Case(NamedTuple):
    rollouts: int
    criteria: int
    runs: int
    """Timed in each block."""
    target: Target | None


class Work(NamedTuple):
    """What is timed once in a block."""

    rubric: ResolvedRubric
    rollouts: list[Rollout]


FULL = (Case(32, 3, 2, at_most(1.1)), Case(32, 8, 1, at_most(1.1)))
FULL_TINY = (Case(512, 3, 3, None),)
QUICK = (Case(8, 3, 1, at_most(1.1)),)
QUICK_TINY = (Case(64, 3, 3, None),)


def measure(*, quick: bool) -> Iterator[Ratio]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny, embedded = models.two_layers(folder / "two-layers"), models.embedded()
        yield from asyncio.run(_measure(tiny, QUICK_TINY if quick else FULL_TINY, folder))
        yield from asyncio.run(_measure(embedded, QUICK if quick else FULL, folder))


async def _measure(config: VllmJudge, cases: Sequence[Case], folder: Path) -> list[Ratio]:
    """Blocks of ours and bare in turn; of each block the medians are divided, case by case."""
    works = [
        Work(workload.rubric(case.criteria), workload.rollouts(case.rollouts, seed=100 * n + run))
        for n, case in enumerate(cases)
        for run in range(case.runs)
    ]
    warm_up = [
        Work(workload.rubric(case.criteria), workload.rollouts(_WARM_UP, seed=-1 - n))
        for n, case in enumerate(cases)
    ]
    model = resolve_model(config, Settings.read(), lambda _said: None)
    press = Press(model)
    job = bare_engine.Job(
        model=model.path_or_name,
        options=model.options,
        warm_up=[p for work in warm_up for p in await press.prompts(*work)],
        runs=[await press.prompts(*work) for work in works],
    )
    plan = pool.plan_for(config, model, name="same", at=pool.address_of(config.ray))
    env = {**plan.env, "OMP_NUM_THREADS": str(config.pool.threads)}
    pairs: list[list[float]] = [[] for _ in cases]
    for _ in range(_BLOCKS):
        ours = await _ours(config, warm_up, works)
        bare = await bare_engine.run(job, env, folder)
        for ratios, mine, theirs in zip(
            pairs, _medians(cases, ours), _medians(cases, bare), strict=True
        ):
            ratios.append(mine / theirs)
    return [
        Ratio(
            what=f"time of scoring / bare LLM.generate, {Path(config.model).name}",
            size=f"{case.rollouts} x {case.criteria}",
            pairs=tuple(ratios),
            target=case.target,
        )
        for case, ratios in zip(cases, pairs, strict=True)
    ]


async def _ours(config: VllmJudge, warm_up: Sequence[Work], works: Sequence[Work]) -> list[float]:
    async with open_judge(config) as judge:
        for work in warm_up:
            await _timed(judge, work)
        return [await _timed(judge, work) for work in works]


async def _timed(judge: Judge, work: Work) -> float:
    began = time.perf_counter()
    results = await score(work.rubric, work.rollouts, judge)
    took = time.perf_counter() - began
    for result in results:
        if not isinstance(result, Score):
            raise RuntimeError(f"not scored: {result.cause} {result.detail}")
    return took


def _medians(cases: Sequence[Case], times: Sequence[float]) -> list[float]:
    rest = iter(times)
    return [statistics.median([next(rest) for _ in range(case.runs)]) for case in cases]
