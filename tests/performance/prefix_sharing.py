"""Prompt tokens that the engine computes, beside the fewest that are possible.

The fewest: every block of 32 tokens once for each distinct beginning up to its end, and of every
prompt its last block, which vLLM never takes from its cache. Shown as well: the same pieces with
the evidence before the criterion, as our judge lays them out, beside the criterion before it.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from starforge_rewards.engine import actors
from starforge_rewards.engine.actors import Placement
from starforge_rewards.judge import pool
from starforge_rewards.judge.config import VllmJudge
from starforge_rewards.judge.meter import Meter
from starforge_rewards.judge.model import JudgeModel, resolve_model
from starforge_rewards.judge.open import open_judge
from starforge_rewards.scoring import score
from starforge_rewards.settings import Settings
from tests.performance import models, workload
from tests.performance.prompt import Press, Prompt
from tests.performance.ratio import Ratio, at_most

_BLOCK = 32
"""Tokens; `block_size` of the shipped judge."""


class Size(NamedTuple):
    rollouts: int
    criteria: int
    runs: int
    """Each of other rollouts, through the whole stack."""
    turned: int
    """Rollouts of the comparison of the two orders."""
    pairs: int


class Run(NamedTuple):
    """What a pass of prompts cost an engine whose prefix cache was empty."""

    computed: int
    seconds: float


FULL = Size(32, 8, 2, turned=8, pairs=3)
QUICK = Size(8, 3, 1, turned=4, pairs=1)


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    config = models.embedded()
    if config.engine["block_size"] != _BLOCK:
        raise RuntimeError("the shipped judge has other blocks than this measurement counts")
    model = resolve_model(config, Settings.read(), lambda _said: None)
    yield Ratio(
        what="prompt tokens computed / fewest possible",
        size=f"{size.rollouts} x {size.criteria}",
        pairs=asyncio.run(_shared(config, Press(model), size)),
        target=at_most(1.05),
    )
    turns = asyncio.run(_turned(config, model, size))
    small = f"{size.turned} x {size.criteria}"
    what = "evidence first / criterion first"
    yield Ratio(f"tokens computed, {what}", small, tuple(a.computed / b.computed for a, b in turns))
    yield Ratio(f"time, {what}", small, tuple(a.seconds / b.seconds for a, b in turns))


def fewest(prompts: Sequence[Prompt], known: set[tuple[int, ...]]) -> int:
    """Tokens that an engine must compute; `known` are the beginnings that it has, and grows."""
    computed = 0
    for prompt in prompts:
        ids = tuple(prompt.ids)
        whole = (len(ids) - 1) // _BLOCK  # of the last block at least one token is computed
        beginnings = {ids[: _BLOCK * (n + 1)] for n in range(whole)}
        computed += _BLOCK * len(beginnings - known) + len(ids) - _BLOCK * whole
        known |= beginnings
    return computed


async def _shared(config: VllmJudge, press: Press, size: Size) -> tuple[float, ...]:
    ratios, known = [], set[tuple[int, ...]]()
    rubric = workload.rubric(size.criteria)
    async with open_judge(config) as judge:
        for run in range(size.runs):
            rollouts = workload.rollouts(size.rollouts, seed=run)
            meter = Meter(judge)
            await score(rubric, rollouts, meter)
            prompts = await press.prompts(rubric, rollouts)
            if meter.usage.prompt_tokens != sum(len(prompt.ids) for prompt in prompts):
                raise RuntimeError("the recorded prompts are not those that were computed")
            ratios.append(meter.usage.computed_tokens / fewest(prompts, known))
    return tuple(ratios)


class PromptEngine:
    """In an actor: one engine that is given ready prompts."""

    def __init__(self, model: str, options: Mapping[str, Any]) -> None:
        from starforge_rewards.engine.vllm import Engine  # late: only the actor loads vllm

        self._engine = Engine(model, options)

    async def run(self, prompts: Sequence[Prompt]) -> Run:
        await self._engine.forget()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            reads = [group.create_task(self._engine.read_slot(p.ids, p.labels)) for p in prompts]
        seconds = time.perf_counter() - began
        tokens = [read.result().tokens for read in reads]
        return Run(sum(spent.prompt - spent.cached for spent in tokens), seconds)


async def _turned(config: VllmJudge, model: JudgeModel, size: Size) -> list[tuple[Run, Run]]:
    """Pairs of runs of the same rollouts: evidence first, criterion first."""
    press, rubric = Press(model), workload.rubric(size.criteria)
    rollouts = workload.rollouts(size.turned, seed=size.runs)
    evidence_first = await press.prompts(rubric, rollouts)
    criterion_first = press.criterion_first(rubric, rollouts)
    at = pool.address_of(config.ray)
    env = {**pool.plan_for(config, model, name="same", at=at).env}
    place = Placement(env={**env, "OMP_NUM_THREADS": str(config.pool.threads)})
    started = actors.join(at)
    args = (model.path_or_name, model.options)
    engine = actors.host("prompts", PromptEngine, args, at=at, placement=place)
    try:
        await engine.call("run", evidence_first[: size.criteria])  # warm
        return [
            (await engine.call("run", evidence_first), await engine.call("run", criterion_first))
            for _ in range(size.pairs)
        ]
    finally:
        actors.stop(engine)
        if started:
            actors.leave()
