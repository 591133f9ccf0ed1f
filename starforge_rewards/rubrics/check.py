"""Whether a score that came from elsewhere can be one of a rubric's at all."""

import math

from starforge_rewards.rubrics.weighted import CriterionScore, Rubric, Score, levels_of, lowest

_SLACK = 1e-6
"""Of the scale: other machines add in another order, and write fewer digits."""


def impossible(rubric: Rubric, score: Score) -> str | None:
    """What makes it impossible; None where it may well be right."""
    return Checker(rubric).impossible(score)


class Checker:
    """Checks many scores of one rubric."""

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric
        self._names = {criterion.name for criterion in rubric.criteria}
        self._labels = {level.label for level in levels_of(rubric)}

    def impossible(self, score: Score) -> str | None:
        """As the function of this name."""
        rubric = self._rubric
        if score.decided == "empty_response":
            bottom = lowest(rubric)
            numbers = (score.total, score.normalized, score.raw)
            same = numbers == (bottom.total, bottom.normalized, bottom.raw)
            return None if same and not score.criteria else "an empty response has the lowest score"
        if strange := (score.criteria.keys() | score.unanswered.keys()) - self._names:
            return f"{min(strange)!r} is no criterion of this version"
        for criterion in rubric.criteria:
            got = score.criteria.get(criterion.name)
            if got is None and criterion.weight:
                return f"{criterion.name!r} has no value, and the total counts it"
            if got is not None and (wrong := _wrong(rubric, got, self._labels)):
                return f"{criterion.name!r}: {wrong}"
        return _wrong_total(rubric, score)


def _wrong(rubric: Rubric, got: CriterionScore, labels: set[str]) -> str | None:
    low, high = rubric.scale_min, rubric.scale_max
    if got.label not in labels:
        return f"{got.label!r} is none of its levels"
    if not low <= got.value <= high:
        return f"{got.value} is outside the scale"
    if not _near((got.value - low) / (high - low), got.normalized):
        return "value and normalized do not agree"
    if got.mass is not None and not math.isfinite(got.mass):
        return "its mass is not finite"
    if got.probabilities is not None and not (
        len(got.probabilities) == len(labels)
        and min(got.probabilities) >= 0
        and _near(sum(got.probabilities), 1.0)
    ):
        return "its probabilities are not one for each level, adding up to 1"
    return None


def _wrong_total(rubric: Rubric, score: Score) -> str | None:
    positive = sum(c.weight for c in rubric.criteria if c.weight > 0)
    gained = sum(c.weight * score.criteria[c.name].normalized for c in rubric.criteria if c.weight)
    raw = gained / positive
    normalized = min(max(raw, 0.0), 1.0)
    total = rubric.scale_min + (rubric.scale_max - rubric.scale_min) * normalized
    span = rubric.scale_max - rubric.scale_min
    agree = (
        math.isclose(raw, score.raw, rel_tol=_SLACK, abs_tol=_SLACK)
        and _near(normalized, score.normalized)
        and abs(total - score.total) <= _SLACK * span
        and rubric.scale_min <= score.total <= rubric.scale_max
        and 0 <= score.normalized <= 1
    )
    return None if agree else f"the criteria add up to {total:.6g}, not to {score.total:.6g}"


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _SLACK
