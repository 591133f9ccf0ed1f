"""Advice on how a rubric is written, so that a judge can apply it: never a refusal.

What it says of words holds for English; a description in another language is not faulted for the
words that it lacks.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Literal

from starforge_rewards.conversation import Frozen
from starforge_rewards.errors import field_path
from starforge_rewards.rubrics import wording
from starforge_rewards.rubrics.weighted import Criterion, Rubric, levels_of

MOST_CRITERIA = 7
"""More are rarely independent, and each costs a judgement of every answer."""
_MOST_COMPARED = 100
_LEAST_PART = 100

_DESCRIBE = "say what to look for, when it succeeds and when it fails"


class Advice(Frozen):
    """One thing that could be written better."""

    rule: Literal[
        "no_description",
        "too_many_criteria",
        "several_changed",
        "label",
        "success_only",
        "idle_weight",
        "near_duplicate",
    ]
    field: str
    """Where, such as `criteria[0].description`."""
    said: str
    """What to do."""


def lint(rubric: Rubric, previous: Rubric | None = None) -> list[Advice]:
    """Advice on a rubric, and on its edit where the version before is given.

    A weight is idle where it is zero. It is as good as idle where both hold: its criterion, at full
    span, moves the total by less than a hundredth of the scale; and it moves the sum by less than
    any two sums of the other criteria differ that differ at all, the judge answering with levels.
    It then breaks ties by a hair, and neither turns nor levels an order that the others make. The
    greatest common divisor of the others' weights, times one level's step, is a lower bound of that
    difference: no weight is called idle wrongly, though one that is may go unnoticed. Where a
    judge's values lie between the levels, such a weight decides near ties too.

    Near-duplicates are looked for among the first 100 criteria.
    """
    return [
        *_of_the_whole(rubric),
        *(_of_the_edit(rubric, previous) if previous else ()),
        *(advice for at in range(len(rubric.criteria)) for advice in _of_a_criterion(rubric, at)),
        *_idle_weights(rubric),
        *_near_duplicates(rubric),
    ]


def _of_the_whole(rubric: Rubric) -> Iterator[Advice]:
    if not rubric.description.strip():
        said = "say in a sentence what is scored: listings show it"
        yield Advice(rule="no_description", field="description", said=said)
    if (count := len(rubric.criteria)) > MOST_CRITERIA:
        said = (
            f"{count} criteria: merge or drop some, {MOST_CRITERIA} are enough for most standards"
        )
        yield Advice(rule="too_many_criteria", field="criteria", said=said)


def _of_the_edit(rubric: Rubric, previous: Rubric) -> Iterator[Advice]:
    """A renamed criterion counts once; weights do not, since their effect needs no judge."""
    old = {criterion.name: criterion for criterion in previous.criteria}
    new = {criterion.name: criterion for criterion in rubric.criteria}
    edited = sum(_texts(old[name]) != _texts(new[name]) for name in old.keys() & new.keys())
    changed = edited + max(len(old.keys() - new.keys()), len(new.keys() - old.keys()))
    if changed > 1:
        said = f"{changed} criteria change at once: edit one at a time to see what each edit does"
        yield Advice(rule="several_changed", field="criteria", said=said)


def _texts(criterion: Criterion) -> tuple[str, dict[str, str]]:
    return criterion.description, criterion.anchors


def _of_a_criterion(rubric: Rubric, at: int) -> Iterator[Advice]:
    criterion = rubric.criteria[at]
    field = field_path(("criteria", at, "description"))
    lowest = levels_of(rubric)[0].label
    if not criterion.description.strip():
        said = f"{criterion.name!r} alone is left to each reader: {_DESCRIBE}"
        yield Advice(rule="no_description", field=field, said=said)
    elif wording.is_label(criterion.name, criterion.description):
        said = f"{criterion.description.strip()!r} is a label, not an instruction: {_DESCRIBE}"
        yield Advice(rule="label", field=field, said=said)
    elif (
        criterion.weight >= 0  # what a penalty describes is the failure
        and lowest not in criterion.anchors
        and wording.lacks_failure(criterion.description)
    ):
        said = f"only success is described: say when it fails, or what level {lowest} means"
        yield Advice(rule="success_only", field=field, said=said)


def _idle_weights(rubric: Rubric) -> Iterator[Advice]:
    # A float's shortest decimal is what was written: 0.1 is a tenth.
    weights = [abs(Fraction(repr(criterion.weight))) for criterion in rubric.criteria]
    for at, weight in enumerate(weights):
        if not weight:
            said = "it is asked and reported, and never counts: give it a weight if it should"
            yield _idle(at, said)
    smallest, *others = sorted(weight for weight in weights if weight)
    total = sum(weight for weight, c in zip(weights, rubric.criteria, strict=True) if c.weight > 0)
    span = smallest * (len(levels_of(rubric)) - 1)
    # No other than the smallest may be: it is below all steps of the others.
    if others and smallest * _LEAST_PART < total and span < _divisor(others):
        said = (
            f"moves the total by {float(smallest / total):.2g} of the scale at most, and only "
            "breaks ties: give it more, or 0 to report it only"
        )
        yield _idle(weights.index(smallest), said)


def _idle(at: int, said: str) -> Advice:
    return Advice(rule="idle_weight", field=field_path(("criteria", at, "weight")), said=said)


def _divisor(weights: list[Fraction]) -> Fraction:
    """The greatest number of which all the weights are whole multiples."""
    scale = math.lcm(*(weight.denominator for weight in weights))
    return Fraction(math.gcd(*(int(weight * scale) for weight in weights)), scale)


def _near_duplicates(rubric: Rubric) -> Iterator[Advice]:
    compared = rubric.criteria[:_MOST_COMPARED]
    read = [wording.read(criterion.name, criterion.description) for criterion in compared]
    doubled = set[int]()
    for first, second in combinations(range(len(read)), 2):
        if second not in doubled and wording.alike(read[first], read[second]):
            doubled.add(second)
            said = (
                f"asks nearly what {rubric.criteria[first].name!r} asks, which then counts twice: "
                "merge them, or say what each leaves to the other"
            )
            field = field_path(("criteria", second))
            yield Advice(rule="near_duplicate", field=field, said=said)
