"""The bulk tally of a million rollouts beside numpy's weighted average of the same array.

The tally also checks the scale, passes NaN on, clips, and agrees bit for bit with the tally of one
rollout; `np.average` does none of that.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from starforge_rewards.rubrics.weighted import tally_bulk
from tests.performance import workload
from tests.performance.ratio import Ratio, alternate, at_most, seconds


class Size(NamedTuple):
    rollouts: int
    criteria: int
    pairs: int


FULL = Size(1_000_000, 10, 9)
QUICK = Size(100_000, 10, 5)


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    rubric = workload.rubric(size.criteria).rubric
    weights = np.array([criterion.weight for criterion in rubric.criteria])
    values = np.random.default_rng(0).uniform(0, 5, (size.rollouts, size.criteria))

    def ours() -> float:
        return seconds(lambda: tally_bulk(rubric, values))

    def numpy() -> float:
        return seconds(lambda: np.average(values, axis=1, weights=weights))

    if not np.allclose(
        tally_bulk(rubric, values).total, np.average(values, axis=1, weights=weights)
    ):
        raise RuntimeError("the two do not agree: there is nothing to compare")
    yield Ratio(
        what="time of the bulk tally / np.average",
        size=f"{size.rollouts} x {size.criteria}",
        pairs=alternate(ours, numpy, size.pairs),
        target=at_most(3),
    )
