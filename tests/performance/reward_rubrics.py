"""A batch whose rollouts bring a rubric each beside the same batch under one rubric.

The judge is a function that costs nothing, so that all there is to see is ours: reading the
rubrics, posing, and tallying. Every run begins with a new reward, which has read no rubric yet.
"""

import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from starforge_rewards.training.dataset import TaskRow
from starforge_rewards.training.environment import Environment, Loaded
from starforge_rewards.training.reward import Item
from starforge_rewards.training.rubric_reward import RubricReward
from tests.performance import workload
from tests.performance.ratio import Ratio, alternate, at_most
from tests.performance.scripted_lowest import JUDGE


class Size(NamedTuple):
    rollouts: int
    criteria: int
    pairs: int


FULL = Size(4096, 11, 7)
QUICK = Size(256, 11, 3)


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    rollouts = workload.rollouts(size.rollouts, seed=0)
    one = workload.rubric(size.criteria).rubric.model_dump(exclude_unset=True)
    rows = [TaskRow(id=str(r.id), prompt=r.prompt) for r in rollouts]
    answers = [r.response for r in rollouts]
    same = [Item(row, answer) for row, answer in zip(rows, answers, strict=True)]
    each = [
        Item(row.model_copy(update={"rubric": _own(one, n)}), answer)
        for n, (row, answer) in enumerate(zip(rows, answers, strict=True))
    ]
    with tempfile.TemporaryDirectory() as name:
        alone = _environment(Path(name), {"kind": "rubric", "rubric": one})
        by_row = _environment(Path(name), {"kind": "rubric", "ref_column": "rubric"})
        yield Ratio(
            what="time of rewards with a rubric of each row's own / one rubric",
            size=f"{size.rollouts} x {size.criteria}",
            pairs=alternate(
                lambda: _seconds(by_row, each), lambda: _seconds(alone, same), size.pairs
            ),
            target=at_most(1.5),
        )


def _own(rubric: dict[str, Any], number: int) -> dict[str, Any]:
    """The rubric with every criterion's text its own."""
    criteria = [
        {**criterion, "description": f"{criterion['description']} Case {number}."}
        for criterion in rubric["criteria"]
    ]
    return {**rubric, "criteria": criteria}


def _environment(folder: Path, verifier: dict[str, Any]) -> Loaded:
    said = {"name": "measured", "dataset": "rows.jsonl", "verifier": verifier}
    return Loaded(Environment.model_validate(said), folder)


def _seconds(loaded: Loaded, items: Sequence[Item]) -> float:
    reward = RubricReward(loaded, judge=JUDGE)
    gc.collect()  # what runs before left behind is not this one's
    began = time.perf_counter()
    rewards = reward.score(items)
    took = time.perf_counter() - began
    if not all(reward.valid for reward in rewards):
        raise RuntimeError("not all were rewarded: there is nothing to compare")
    return took
