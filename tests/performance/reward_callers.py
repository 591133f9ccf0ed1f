"""Rewards that are asked for one at a time, by many threads at once, beside one batched call.

Both go through a named pool, whose model has two layers and so costs next to nothing, without the
verdict cache; every run has its own evidence.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import NamedTuple

from starforge_rewards.engine import actors
from starforge_rewards.judge import pool
from starforge_rewards.judge.config import PoolJudge, Ray
from starforge_rewards.judge.model import resolve_model
from starforge_rewards.settings import Settings
from starforge_rewards.training.dataset import TaskRow
from starforge_rewards.training.environment import Environment, Loaded
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward
from tests.performance import models, workload
from tests.performance.ratio import Ratio, alternate, at_most

_NAME = f"callers-{os.getpid()}"


class Size(NamedTuple):
    rollouts: int
    criteria: int
    callers: int
    pairs: int


FULL = Size(256, 3, 64, 5)
QUICK = Size(64, 3, 16, 3)


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = models.two_layers(folder / "two-layers")
        model = resolve_model(config, Settings.read(), lambda _said: None)
        plan = pool.plan_for(config, model, name=_NAME, at=pool.address_of(config.ray))
        end = asyncio.run(pool.launch(plan))
        try:
            yield _measured(size, _reward(folder, size.criteria))
        finally:
            end()
            actors.leave()


def _measured(size: Size, reward: RubricReward) -> Ratio:
    seeds = count()

    def timed(ask: Callable[[Sequence[Item]], Sequence[Reward]]) -> float:
        rollouts = workload.rollouts(size.rollouts, seed=next(seeds))
        items = [Item(TaskRow(id=str(r.id), prompt=r.prompt), r.response) for r in rollouts]
        began = time.perf_counter()
        rewards = ask(items)
        took = time.perf_counter() - began
        if not all(reward.valid for reward in rewards) or len(rewards) != size.rollouts:
            raise RuntimeError("not all were rewarded: there is nothing to compare")
        return took

    with ThreadPoolExecutor(size.callers) as callers:

        def one_by_one(items: Sequence[Item]) -> Sequence[Reward]:
            return [found for [found] in callers.map(lambda item: reward.score([item]), items)]

        for ask in (reward.score, one_by_one):  # what a first call alone costs
            timed(ask)
        return Ratio(
            what=f"time of {size.callers} callers of one rollout each / one call, named pool",
            size=f"{size.rollouts} x {size.criteria}",
            pairs=alternate(lambda: timed(one_by_one), lambda: timed(reward.score), size.pairs),
            target=at_most(1.5),
        )


def _reward(folder: Path, criteria: int) -> RubricReward:
    rubric = workload.rubric(criteria).rubric.model_dump(exclude_unset=True)
    verifier = {"kind": "rubric", "rubric": rubric}
    said = {"name": "measured", "dataset": "rows.jsonl", "verifier": verifier}
    loaded = Loaded(Environment.model_validate(said), folder)
    return RubricReward(loaded, judge=PoolJudge(kind="pool", name=_NAME, ray=Ray()))
