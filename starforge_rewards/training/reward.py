"""What a rollout is worth to a trainer: a number, or why there is none, and never a guess."""

import math
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from starforge_rewards.conversation import Content, Frozen, Message
from starforge_rewards.rubrics.weighted import CriterionScore, Rubric, Score, Unscored, levels_of
from starforge_rewards.training.dataset import TaskRow


class Item(NamedTuple):
    """One rollout to score: the task, and what the policy answered."""

    row: TaskRow
    response: Content


Measure = Literal["total", "normalized", "complied"]


class Reward(Frozen):
    """One rollout's reward, with what it was made of."""

    value: float | None
    """The number for the trainer: Σ weight · value over the verifiers; None: no score."""
    cause: str | None = None
    """Why there is no score; a judge's cause, `plugin_failed`, `endpoint_failed`,
    `registry_unavailable` for a row whose own rubric could not be fetched, or `not_text`."""
    detail: str = ""
    total: float | None = None
    """On the rubric's own scale, of the first rubric verifier."""
    normalized: float | None = None
    measure: Measure | None = None
    """Which number of the first rubric verifier counts in `value`: its `total`, its `normalized`,
    or, for a row with `expect: comply`, `complied`: 1 - normalized, since high means declined."""
    uncertainty: float | None = None
    """Standard deviation of `total` by the judge's own probabilities, its criteria taken as
    independent; None where none were read."""
    criteria: dict[str, float] = {}
    """Each criterion's value on the rubric's scale, where it was answered; those of a second rubric
    verifier are named `<verifier>#<criterion>`."""
    verifiers: dict[str, float] = {}
    """What each verifier gave, before its weight."""
    origins: dict[str, str] = {}
    """Where each criterion's answer came from: asked, cached or ledger."""
    imputed: bool = False
    """True where a person declared that a number stands in for a failure."""

    @property
    def valid(self) -> bool:
        """True for a number that a verifier gave."""
        return self.value is not None and not self.imputed


class Part(NamedTuple):
    """What one verifier made of one rollout."""

    name: str
    weight: float
    value: float | None
    cause: str | None = None
    detail: str = ""
    score: Score | Unscored | None = None
    rubric: Rubric | None = None
    measure: Measure | None = None


def combined(parts: Sequence[Part]) -> Reward:
    """All or nothing: one failed verifier of non-zero weight, and there is no number."""
    failed = next((part for part in parts if part.value is None and part.weight), None)
    about = _about([part for part in parts if part.score is not None])
    given = {part.name: part.value for part in parts if part.value is not None}
    if failed is not None:
        return Reward(
            value=None, cause=failed.cause, detail=failed.detail, verifiers=given, **about
        )
    value = 0.0
    for part in parts:
        if part.value is not None:
            value += part.weight * part.value
    if not math.isfinite(value):
        said = "the verifiers' values add up to no finite number"
        return Reward(value=None, cause="off_scale", detail=said, verifiers=given, **about)
    return Reward(value=value, verifiers=given, **about)


def _about(judged: Sequence[Part]) -> dict[str, Any]:
    """What the rubric verifiers found; the numbers are those of the first."""
    about: dict[str, Any] = {"criteria": {}, "origins": {}}
    for at, part in enumerate(judged):
        before = f"{part.name}#" if at else ""
        for name, each in _criteria(part).items():
            about["criteria"][before + name] = each.value
            about["origins"][before + name] = each.origin
    if judged and isinstance(score := judged[0].score, Score):
        about |= {"total": score.total, "normalized": score.normalized}
        about["measure"] = judged[0].measure
        if (rubric := judged[0].rubric) is not None:
            about["uncertainty"] = uncertainty(rubric, score.criteria)
    return about


def _criteria(part: Part) -> dict[str, CriterionScore]:
    match part.score:
        case Score(criteria=criteria) | Unscored(answered=criteria):
            return criteria
    return {}


def uncertainty(rubric: Rubric, criteria: dict[str, CriterionScore]) -> float | None:
    """Standard deviation of the total: sqrt(Σ (w_k / Σ_{w > 0} w)² · var_k).

    var_k = Σ p (v - mean)² over a criterion's levels, in the unit of the scale. None where a
    criterion of non-zero weight has no probabilities.
    """
    levels = [level.value for level in levels_of(rubric)]
    positive = sum(criterion.weight for criterion in rubric.criteria if criterion.weight > 0)
    variance = 0.0
    for criterion in rubric.criteria:
        if not criterion.weight:
            continue
        scored = criteria.get(criterion.name)
        if scored is None or scored.probabilities is None:
            return None
        pairs = zip(scored.probabilities, levels, strict=True)
        spread = sum(p * (level - scored.value) ** 2 for p, level in pairs if level is not None)
        variance += (criterion.weight / positive) ** 2 * spread
    return math.sqrt(variance)


def without_reasoning(response: Content) -> Content:
    """A response without what the model thought between `<think>` tags.

    A thought whose beginning is missing began in the prompt; one that does not end was cut off, and
    nothing was answered after it.
    """
    if isinstance(response, str):
        return _answered(response)
    return tuple(
        message.model_copy(update={"content": _answered(message.content)})
        if message.role == "assistant"
        else message
        for message in response
    )


def _answered(text: str) -> str:
    if "think>" not in text:
        return text
    rest = _THOUGHT.sub("", text)
    rest = rest.rpartition("</think>")[2]
    return rest.partition("<think>")[0].lstrip("\n")


_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


def messages(content: Content) -> tuple[Message, ...]:
    """A text as one turn of the user's, or the turns as they are."""
    return (Message(role="user", content=content),) if isinstance(content, str) else content
