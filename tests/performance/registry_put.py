"""Edits of a rubric through the registry, beside their statements alone.

Every edit changes a weight, and every second one the description that the search finds.
"""

from collections.abc import Iterator
from typing import NamedTuple

from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Rubric
from tests.performance.ratio import Ratio, at_most, seconds
from tests.performance.replay import Twins, twins

REF = Ref(owner="alice", name="answer-quality")
USER = User(owner="alice")


class Size(NamedTuple):
    pairs: int
    edits: int
    """Of each pair."""


FULL = Size(31, 40)
QUICK = Size(5, 10)


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    with twins() as both:
        for pair in both:
            yield Ratio(
                what=f"time of an edit through the registry / its statements alone, {pair.kind}",
                size=f"{size.edits} edits",
                pairs=tuple(_pairs(pair, size)),
                target=at_most(3),
            )


def _pairs(pair: Twins, size: Size) -> Iterator[float]:
    ours = registry_of(pair.ours, USER)
    pair.both(lambda database: registry_of(database, USER).rubrics.put(REF, rubric(0)))
    for block in range(size.pairs):
        numbers = range(1 + block * size.edits, 1 + (block + 1) * size.edits)
        edits = [rubric(number) for number in numbers]
        through = alone = 0.0
        for edit in edits:
            through += seconds(lambda edit=edit: _put(ours, edit))  # type: ignore[misc]
            alone += seconds(pair.repeat)
        yield through / alone
    if registry_of(pair.theirs, USER).rubrics.show(REF) != ours.rubrics.show(REF):
        raise RuntimeError("the twins differ: there is nothing to compare")


def _put(ours: Registry, edit: Rubric) -> None:
    if not ours.rubrics.put(REF, edit).changed:
        raise RuntimeError("an edit changed nothing")


def rubric(number: int) -> Rubric:
    """The specification's example, in its `number`-th wording."""
    names = ("Factually correct", "Answers the question asked", "Cites the handbook")
    return Rubric.model_validate(
        {
            "description": f"Scoring customer-support answers, wording {number // 2}.",
            "scale_min": 0,
            "scale_max": 5,
            "criteria": [
                {
                    "name": name,
                    "weight": 1 + number / 1000,
                    "description": f"{name}: every claim about the product is true and current.",
                }
                for name in names
            ],
        }
    )
