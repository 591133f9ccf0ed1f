from collections.abc import Callable

import pytest
from pydantic import JsonValue

from starforge_rewards.question import Answer
from starforge_rewards.rubrics.check import impossible
from starforge_rewards.rubrics.weighted import (
    CriterionScore,
    Rubric,
    Score,
    levels_of,
    lowest,
    tally,
)

CRITERIA: JsonValue = [
    {"name": "Correct", "weight": 3},
    {"name": "Cites", "weight": 1},
    {"name": "Rude", "weight": -2},
    {"name": "Noted", "weight": 0},
]
RUBRIC = Rubric.model_validate({"scale_min": 0, "scale_max": 5, "criteria": CRITERIA})


def scored(*labels: str) -> Score:
    values = {level.label: level.value for level in levels_of(RUBRIC)}
    result = tally(RUBRIC, [Answer(label=label, value=values[label]) for label in labels])
    assert isinstance(result, Score)
    return result


@pytest.mark.parametrize("labels", ["5500", "5555", "0050", "3212"])
def test_what_a_tally_makes_is_possible(labels: str) -> None:
    assert impossible(RUBRIC, scored(*labels)) is None
    assert impossible(RUBRIC, lowest(RUBRIC)) is None


def with_criterion(name: str, **update: object) -> Callable[[Score], Score]:
    def change(score: Score) -> Score:
        changed = score.criteria[name].model_copy(update=update)
        return score.model_copy(update={"criteria": score.criteria | {name: changed}})

    return change


def without(name: str) -> Callable[[Score], Score]:
    def change(score: Score) -> Score:
        kept = {key: value for key, value in score.criteria.items() if key != name}
        return score.model_copy(update={"criteria": kept})

    return change


def as_a_whole(**update: object) -> Callable[[Score], Score]:
    return lambda score: score.model_copy(update=update)


NONSENSE = CriterionScore(value=9, normalized=1, label="5", origin="asked")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (as_a_whole(total=50.0, normalized=10.0, raw=10.0), "add up to 4.5, not to 50"),
        (as_a_whole(total=5.0), "not to 5"),
        (as_a_whole(total=-1.0), "not to -1"),
        (as_a_whole(criteria={}), "'Correct' has no value"),
        (without("Cites"), "'Cites' has no value"),
        (as_a_whole(criteria={"Nonsense": NONSENSE}), "'Nonsense' is no criterion"),
        (with_criterion("Correct", label="banana"), "'banana' is none of its levels"),
        (with_criterion("Correct", value=9.0), "9.0 is outside the scale"),
        (with_criterion("Correct", normalized=0.5), "do not agree"),
        (with_criterion("Correct", probabilities=(1.0,)), "one for each level"),
        (with_criterion("Correct", value=4.0, normalized=0.8), "add up to"),
        (as_a_whole(decided="empty_response"), "has the lowest score"),
    ],
)
def test_what_no_tally_makes_is_told(change: Callable[[Score], Score], said: str) -> None:
    wrong = impossible(RUBRIC, change(scored("5", "5", "1", "0")))
    assert wrong is not None
    assert said in wrong


def test_a_criterion_of_weight_zero_may_be_missing() -> None:
    score = without("Noted")(scored("5", "5", "1", "0"))
    assert impossible(RUBRIC, score.model_copy(update={"unanswered": {"Noted": "timeout"}})) is None
