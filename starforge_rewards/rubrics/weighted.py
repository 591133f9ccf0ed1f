"""The weighted rubric: named criteria on one scale, posed as questions and tallied into one total.

With n_k = (s_k - min) / (max - min): `raw = Σ w_k n_k / Σ_{w_k > 0} w_k`, `normalized = clip(raw)`
and `total = min + (max - min) · normalized`. One unanswered criterion of non-zero weight means no
total; the rest are never renormalised.
"""

import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, model_validator

from starforge_rewards.conversation import Frozen, Prose, Rollout
from starforge_rewards.errors import FieldError
from starforge_rewards.question import (
    Cause,
    Choice,
    Evidence,
    NoAnswer,
    Part,
    Question,
    Reply,
)

MAX_LEVELS = 52
"""A judge has one letter for each choice, upper and lower case."""


def _stripped(text: str) -> str:
    if not (stripped := text.strip()):
        raise ValueError("must not be blank")
    return stripped


def _labelled(anchors: object) -> object:
    """YAML reads the key `5:` as a number; a level's label is text."""
    if not isinstance(anchors, dict):
        return anchors
    return {str(k) if type(k) is int else k: v for k, v in anchors.items()}


Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Named = Annotated[Prose, AfterValidator(_stripped)]


class Criterion(Frozen):
    """One thing that a correct answer does, as an instruction to a careful reader."""

    name: Named
    weight: Finite
    """Negative = a penalty, asked like any other; zero = reported and not counted."""
    description: Prose = ""
    anchors: Annotated[dict[Prose, Prose], BeforeValidator(_labelled)] = {}
    """What single levels mean, by level label ("0", "5")."""


class Rubric(Frozen):
    """A team's written standard for a correct answer."""

    kind: Literal["weighted"] = Field(default="weighted", exclude=True)
    description: Prose = ""
    visibility: Literal["private", "public"] = "private"
    scale_min: Finite = 0.0
    scale_max: Finite = 1.0
    levels: Annotated[StrictInt, Field(ge=2, le=MAX_LEVELS)] | None = None
    """How many evenly spaced answers a judge may give; default: see `levels_of`."""
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _scale(self) -> Self:
        if ("scale_min" in self.model_fields_set) != ("scale_max" in self.model_fields_set):
            alone = "scale_min" if "scale_min" in self.model_fields_set else "scale_max"
            raise FieldError("give scale_min and scale_max, or neither (0 and 1)", alone)
        if not self.scale_min < self.scale_max:
            raise FieldError(f"must be below scale_max {self.scale_max:g}", "scale_min")
        if not math.isfinite((self.scale_max - self.scale_min) * MAX_LEVELS):
            raise FieldError("is too far above scale_min for a number", "scale_max")
        labels = [choice.label for choice in levels_of(self)]
        if len(set(labels)) < len(labels):
            field = "levels" if self.levels else "scale_max"
            raise FieldError(
                f"{len(labels)} levels cannot be told apart on so narrow a scale", field
            )
        return self

    @model_validator(mode="after")
    def _criteria(self) -> Self:
        seen = set[str]()
        for index, criterion in enumerate(self.criteria):
            if criterion.name in seen:
                raise FieldError(f"{criterion.name!r} is there twice", "criteria", index, "name")
            seen.add(criterion.name)
        if not (positive := _positive(self)):
            raise FieldError("at least one weight must be above zero", "criteria")
        if positive < sys.float_info.min:  # products with it would round to zero
            raise FieldError("the weights are too small for a number", "criteria")
        if not math.isfinite(sum(abs(c.weight) for c in self.criteria) / positive):
            raise FieldError("the weights are too large or too unlike for a number", "criteria")
        return self

    @model_validator(mode="after")
    def _anchors(self) -> Self:
        labels = [choice.label for choice in levels_of(self)]
        for index, criterion in enumerate(self.criteria):
            for anchor in criterion.anchors:
                if anchor not in labels:
                    said = f"{anchor!r} is no level: the levels are {', '.join(labels)}"
                    raise FieldError(said, "criteria", index, "anchors", anchor)
        return self


class CriterionScore(Frozen):
    """What one criterion got."""

    value: float
    """On the rubric's scale: the expectation where probabilities were read."""
    normalized: float
    label: str
    probabilities: tuple[float, ...] | None = None
    mass: float | None = None
    reason: str = ""
    origin: Literal["asked", "cached", "ledger"]


class Score(Frozen):
    """A rollout's result."""

    total: float
    """On the rubric's own scale: the one canonical number, for reward and dashboard alike."""
    normalized: float
    """(total - min) / (max - min), in [0, 1]."""
    raw: float
    """The unclipped ratio; differs from `normalized` only where penalties exist."""
    criteria: dict[str, CriterionScore]
    unanswered: dict[str, Cause] = {}
    """Criteria of weight zero that the judge could not answer."""
    decided: Literal["judge", "empty_response"] = "judge"
    """`empty_response`: scored `scale_min` by declared rule, without asking a judge."""


class Unscored(Frozen):
    """No number for this rollout, and why."""

    cause: Cause | Literal["empty_response"]
    """Of the first criterion that is missing."""
    detail: str = ""
    missing: tuple[str, ...] = ()
    answered: dict[str, CriterionScore] = {}


def levels_of(rubric: Rubric) -> tuple[Choice, ...]:
    """The closed answers on the rubric's scale, lowest first.

    `levels` of them, evenly spaced; by default every integer where both bounds are integers at most
    9 apart, else ten.
    """
    return _levels(rubric.scale_min, rubric.scale_max, rubric.levels)


@lru_cache(maxsize=1024)
def _levels(low: float, high: float, levels: int | None) -> tuple[Choice, ...]:
    whole = low.is_integer() and high.is_integer() and high - low <= 9
    n = levels or (int(high - low) + 1 if whole else 10)
    values = [low + (high - low) * i / (n - 1) for i in range(n - 1)] + [high]
    return tuple(Choice(label=_label(value, high - low), value=value) for value in values)


def _label(value: float, span: float) -> str:
    return "0" if abs(value) < span * 1e-9 else f"{value:.6g}"  # not -5.55112e-17


def choices_of(rubric: Rubric, criterion: Criterion) -> tuple[Choice, ...]:
    """The levels with what they mean for one criterion."""
    return _choices(levels_of(rubric), tuple(criterion.anchors.items()))


@lru_cache(maxsize=1024)  # many rubrics have the same, and thousands may come in one batch
def _choices(bare: tuple[Choice, ...], anchors: tuple[tuple[str, str], ...]) -> tuple[Choice, ...]:
    ends = {bare[0].label: "not met at all", bare[-1].label: "fully met"}
    meanings = dict(anchors) or ends
    return tuple(c.model_copy(update={"meaning": meanings.get(c.label, "")}) for c in bare)


def evidence_of(rollout: Rollout) -> Evidence:
    """What the judge is shown of a rollout: task prompt, response, reference and context."""
    named = (
        ("task_prompt", rollout.prompt),
        ("response", rollout.response),
        ("reference", rollout.reference),
        ("context", rollout.context),
    )
    return Evidence(parts=tuple(Part(name=n, content=c) for n, c in named if c is not None))


class _Asked(NamedTuple):
    instruction: str
    choices: tuple[Choice, ...]
    source: str


class Poser:
    """Poses one rubric about many rollouts; holds what does not depend on the rollout."""

    def __init__(self, rubric: Rubric, source: str) -> None:
        self._asked = tuple(
            _Asked(
                f"{criterion.name}\n{criterion.description}".strip(),
                choices_of(rubric, criterion),
                f"{source}#{criterion.name}",
            )
            for criterion in rubric.criteria
        )

    def pose(self, evidence: Evidence, repeat: int = 0) -> list[Question]:
        """One question per criterion, in the rubric's order."""
        return [
            Question(
                source=asked.source,
                evidence=evidence,
                instruction=asked.instruction,
                choices=asked.choices,
                repeat=repeat,
            )
            for asked in self._asked
        ]


def tally(rubric: Rubric, replies: Sequence[Reply]) -> Score | Unscored:
    """The rubric's result from one reply per criterion, in the rubric's order."""
    answered: dict[str, CriterionScore] = {}
    failed: dict[str, NoAnswer] = {}
    for criterion, reply in zip(rubric.criteria, replies, strict=True):
        match _on_scale(rubric, reply):
            case NoAnswer() as failure:
                failed[criterion.name] = failure
            case scored:
                answered[criterion.name] = scored
    missing = tuple(c.name for c in rubric.criteria if c.weight and c.name in failed)
    if missing:
        first = failed[missing[0]]
        detail = f"{missing[0]}: {first.detail}"
        return Unscored(cause=first.cause, detail=detail, missing=missing, answered=answered)
    gained = 0.0
    for criterion in rubric.criteria:
        if criterion.weight:
            gained += criterion.weight * answered[criterion.name].normalized
    raw = gained / _positive(rubric)
    normalized = min(max(raw, 0.0), 1.0)
    return Score(
        total=_total(rubric, normalized),
        normalized=normalized,
        raw=raw,
        criteria=answered,
        unanswered={name: failure.cause for name, failure in failed.items()},
    )


def lowest(rubric: Rubric) -> Score:
    """The score of an empty response where the declared rule gives it the scale's minimum."""
    return Score(
        total=rubric.scale_min, normalized=0.0, raw=0.0, criteria={}, decided="empty_response"
    )


class Totals(NamedTuple):
    """Bulk results, one per rollout; NaN exactly where a criterion of non-zero weight is NaN."""

    total: NDArray[np.float64]
    normalized: NDArray[np.float64]
    raw: NDArray[np.float64]


def tally_bulk(rubric: Rubric, values: NDArray[np.float64], block: int = 4096) -> Totals:
    """Totals of many rollouts at once, equal bit for bit to `tally`.

    Args:
        rubric: the standard; its criteria are the columns.
        values: shape (rollouts, criteria), on the rubric's scale; NaN where unanswered.
        block: rollouts per step, so that a step's columns stay in the processor's cache.

    Raises:
        ValueError: another shape, or a value outside the scale.
    """
    rollouts, criteria = values.shape
    if criteria != len(rubric.criteria):
        raise ValueError(f"{criteria} columns for {len(rubric.criteria)} criteria")
    low, span = rubric.scale_min, rubric.scale_max - rubric.scale_min
    raw = np.zeros(rollouts)
    for start in range(0, rollouts, block):
        columns = np.array(values[start : start + block].T, dtype=np.float64, order="C")  # a copy
        if _outside(columns, low, rubric.scale_max):
            raise ValueError(f"a value of rows {start}-{start + block} is outside the scale")
        columns -= low
        columns /= span
        gained = raw[start : start + block]
        for criterion, column in zip(rubric.criteria, columns, strict=True):
            if criterion.weight:
                column *= criterion.weight
                gained += column
    raw /= _positive(rubric)
    normalized = np.clip(raw, 0.0, 1.0)
    total = np.minimum(low + span * normalized, rubric.scale_max)
    return Totals(total=total, normalized=normalized, raw=raw)


def _total(rubric: Rubric, normalized: float) -> float:
    """On the scale; min + (max - min) may round to just above max."""
    span = rubric.scale_max - rubric.scale_min
    return min(rubric.scale_min + span * normalized, rubric.scale_max)


def _outside(values: NDArray[np.float64], low: float, high: float) -> bool:
    """Whether any value, NaN aside, is out of range; the fmin and fmax of numpy pass NaN over."""
    least, most = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    return bool(least < low or most > high)


def _positive(rubric: Rubric) -> float:
    positive = 0.0
    for criterion in rubric.criteria:
        if criterion.weight > 0:
            positive += criterion.weight
    return positive


def _on_scale(rubric: Rubric, reply: Reply) -> CriterionScore | NoAnswer:
    """A value outside the scale is a failed judgement: it is never clamped into range."""
    if isinstance(reply, NoAnswer):
        return reply
    if reply.value is None:
        return NoAnswer.because("off_scale", f"{reply.label!r} has no value on the scale")
    low, high = rubric.scale_min, rubric.scale_max
    slack = max(abs(low), abs(high)) * 1e-12  # an expectation may round past the end of the scale
    if not low - slack <= reply.value <= high + slack:
        return NoAnswer.because("off_scale", f"{reply.value} is outside [{low:g}, {high:g}]")
    value = min(max(reply.value, low), high)
    return CriterionScore(
        value=value,
        normalized=(value - low) / (high - low),
        label=reply.label,
        probabilities=reply.probabilities,
        mass=reply.mass,
        reason=reply.reason,
        origin=reply.origin,
    )
