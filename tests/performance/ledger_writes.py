"""Scores written to the ledger in batches, beside the same bulk statements alone."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from starforge_rewards.registry.records import ScoreKey, User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import CriterionScore, Score
from starforge_rewards.run import JudgeRecord, Run
from tests.performance.ratio import Ratio, at_most, seconds
from tests.performance.registry_put import REF, USER, rubric
from tests.performance.replay import Twins, twins

RUN = "run-of-measurement"
CITED = Ref(owner=REF.owner, name=REF.name, version=1)


class Size(NamedTuple):
    pairs: int
    scores: int
    batch: int


FULL = Size(11, 10_000, 500)
QUICK = Size(3, 1_000, 500)


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    with twins() as both:
        for pair in both:
            yield Ratio(
                what=f"time of writing scores to the ledger / its statements alone, {pair.kind}",
                size=f"{size.scores} in batches of {size.batch}",
                pairs=tuple(_pairs(pair, size)),
                target=at_most(2),
            )


def _pairs(pair: Twins, size: Size) -> Iterator[float]:
    judge = JudgeRecord.of({"model": "m"})
    run = Run(role="training_reward", judge=judge, citations=(str(CITED),))
    for database in (pair.ours, pair.theirs):
        one = registry_of(database, User(owner=USER.owner))
        one.rubrics.put(REF, rubric(0))
        one.runs.put(RUN, run)
    pair.said.clear()
    ours, numbers = registry_of(pair.ours, USER), itertools.count()
    for _ in range(size.pairs):
        through = alone = 0.0
        for _ in range(size.scores // size.batch):
            batch = {
                _key(number): _score(number) for number in itertools.islice(numbers, size.batch)
            }
            through += seconds(lambda batch=batch: ours.scores.add(RUN, batch))  # type: ignore[misc]
            alone += seconds(pair.repeat)
        yield through / alone
    first, second = (
        registry_of(each, USER).scores.of_run(RUN) for each in (pair.ours, pair.theirs)
    )
    if first != second or not first.items:
        raise RuntimeError("the twins differ: there is nothing to compare")


def _key(number: int) -> ScoreKey:
    return ScoreKey(rubric=str(CITED), evidence=f"{number * 2_654_435_761 % 2**256:064x}")


def _score(number: int) -> Score:
    one = CriterionScore(
        value=number % 50 / 10,
        normalized=number % 50 / 50,
        label="3",
        probabilities=(0.01, 0.09, 0.2, 0.4, 0.2, 0.1),
        mass=0.98,
        origin="asked",
    )
    names = ("Factually correct", "Answers the question asked", "Cites the handbook")
    return Score(
        total=one.value,
        normalized=one.normalized,
        raw=one.normalized,
        criteria=dict.fromkeys(names, one),
    )
