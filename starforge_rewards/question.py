"""The vocabulary between a rubric and a judge. Start reading here.

A rubric is posed as closed questions about one piece of evidence; a judge replies to each. What it
could not answer is a `NoAnswer`, a value that says why, and never a number.
"""

import hashlib
import json
from functools import cached_property, lru_cache
from typing import Literal, Self

from pydantic import model_validator

from starforge_rewards.conversation import Content, Frozen

Cause = Literal[
    "unparseable", "refused", "overlong", "truncated", "off_scale", "timeout", "unreachable"
]


class Part(Frozen):
    """One named piece of evidence; the rubric's kind chooses the names."""

    name: str
    content: Content


class Evidence(Frozen):
    """What the judge is shown, in order. The first part is what a group of rollouts shares."""

    parts: tuple[Part, ...]

    @cached_property
    def digest(self) -> bytes:
        return hashlib.sha256(self.model_dump_json().encode()).digest()

    @cached_property
    def route(self) -> bytes:
        """Equal for evidence that begins alike: a prompt's rollouts share a prefix cache."""
        return hashlib.sha256(self.parts[0].model_dump_json().encode()).digest()


class Choice(Frozen):
    """One of the closed answers. `label` is canonical; what the judge is shown may differ."""

    label: str
    value: float | None = None
    meaning: str = ""


class Question(Frozen):
    """One closed question about one piece of evidence."""

    source: str
    """Who asks (rubric and criterion), for the operator; never shown to the judge."""
    evidence: Evidence
    instruction: str
    choices: tuple[Choice, ...]
    repeat: int = 0

    @model_validator(mode="after")
    def _closed(self) -> Self:
        if len(self.choices) < 2 or len({c.label for c in self.choices}) < len(self.choices):
            raise ValueError(f"{self.source}: a question needs at least two distinct choices")
        return self

    @cached_property
    def key(self) -> bytes:
        """Digest of all that is asked, and so not of `source`."""
        asked = _asked_digest(self.instruction, self.choices)
        return hashlib.sha256(self.evidence.digest + asked + str(self.repeat).encode()).digest()


@lru_cache(maxsize=4096)
def _asked_digest(instruction: str, choices: tuple[Choice, ...]) -> bytes:
    text = json.dumps([instruction, [[c.label, c.value, c.meaning] for c in choices]])
    return hashlib.sha256(text.encode()).digest()


class Tokens(Frozen):
    """What one reply cost the engine, in tokens; `cached` of `prompt` were not computed again."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            generated=self.generated + other.generated,
        )


class Answer(Frozen):
    """A judge's reply to one question."""

    label: str
    """The canonical label; where probabilities were read, the most probable one."""
    value: float | None
    """Expectation where probabilities were read, else the label's own value."""
    probabilities: tuple[float, ...] | None = None
    """One per choice, renormalised over the labels: they sum to 1."""
    mass: float | None = None
    """Raw probability of all labels together, before renormalising, in [0, 1]."""
    reason: str = ""
    tokens: Tokens = Tokens()
    origin: Literal["asked", "cached", "ledger"] = "asked"


class NoAnswer(Frozen):
    """The judge could not answer, and why."""

    cause: Cause
    detail: str = ""
    """For the operator: a raw snippet, at most 200 characters."""
    tokens: Tokens = Tokens()

    @classmethod
    def because(cls, cause: Cause, detail: object, tokens: Tokens = Tokens()) -> Self:  # noqa: B008
        """A `NoAnswer` whose detail is cut to 200 characters."""
        return cls(cause=cause, detail=str(detail)[:200], tokens=tokens)


Reply = Answer | NoAnswer


def chosen(question: Question, label: str, *, reason: str = "", tokens: Tokens = Tokens()) -> Reply:  # noqa: B008
    """The answer that picks one label; `off_scale` when it is not one of the choices."""
    for choice in question.choices:
        if choice.label == label:
            return Answer(label=label, value=choice.value, reason=reason, tokens=tokens)
    return NoAnswer.because("off_scale", f"{label!r} is not one of the choices", tokens)


def weighed(
    question: Question,
    masses: tuple[float, ...],
    *,
    min_mass: float,
    reason: str = "",
    tokens: Tokens = Tokens(),  # noqa: B008
) -> Reply:
    """The answer from raw label probabilities; `off_scale` below `min_mass` on the labels.

    Args:
        question: what was asked.
        masses: raw probability of each choice's label, in the order of the choices, in [0, 1].
        min_mass: least probability that the labels must hold together, in [0, 1].
        reason: what the judge wrote before the verdict.
        tokens: what it cost.
    """
    mass = sum(masses)
    if not min_mass <= mass <= 1.001 or mass == 0:  # rounding of float32 log-probabilities
        return NoAnswer.because("off_scale", f"probability {mass:.3g} on the labels", tokens)
    probabilities = tuple(m / mass for m in masses)
    value: float | None = None
    if all(c.value is not None for c in question.choices):
        value = sum(
            p * (c.value or 0.0) for p, c in zip(probabilities, question.choices, strict=True)
        )
    best = max(range(len(masses)), key=masses.__getitem__)
    return Answer(
        label=question.choices[best].label,
        value=value,
        probabilities=probabilities,
        mass=min(mass, 1.0),
        reason=reason,
        tokens=tokens,
    )
