"""A rubric while it is typed: texts, as the form has them, and what is wrong with them.

A number that is none stays the text that it is, so that the model refuses it with its own words.
"""

import re
from dataclasses import dataclass, field
from typing import Self

from pydantic import JsonValue, ValidationError

from starforge_rewards.errors import Problem
from starforge_rewards.rubrics.weighted import Criterion, Rubric, levels_of
from starforge_rewards.server.api.errors import Refused
from starforge_rewards.server.console.figures import exact

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,9}")


@dataclass
class CriterionDraft:
    """One criterion; its anchors by label, blank ones included."""

    name: str = ""
    weight: str = "1"
    description: str = ""
    anchors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, criterion: Criterion) -> Self:
        return cls(
            criterion.name, exact(criterion.weight), criterion.description, {**criterion.anchors}
        )

    def body(self) -> JsonValue:
        anchors: dict[str, JsonValue] = {k: v for k, v in self.anchors.items() if v.strip()}
        said: dict[str, JsonValue] = {
            "name": self.name,
            "weight": _number(self.weight),
            "description": self.description,
        }
        return said | ({"anchors": anchors} if anchors else {})


@dataclass
class Draft:
    """What the form holds."""

    description: str = ""
    visibility: str = "private"
    scale_min: str = "0"
    scale_max: str = "1"
    levels: str = ""
    """Blank: as the scale has it."""
    criteria: list[CriterionDraft] = field(default_factory=lambda: [CriterionDraft()])

    @classmethod
    def of(cls, rubric: Rubric) -> Self:
        return cls(
            rubric.description,
            rubric.visibility,
            exact(rubric.scale_min),
            exact(rubric.scale_max),
            "" if rubric.levels is None else str(rubric.levels),
            [CriterionDraft.of(each) for each in rubric.criteria],
        )

    def body(self) -> dict[str, JsonValue]:
        """As it would be written over REST."""
        said: dict[str, JsonValue] = {
            "description": self.description,
            "visibility": self.visibility,
            **self._scale(),
            "criteria": [each.body() for each in self.criteria],
        }
        return said

    def check(self) -> Rubric | tuple[Problem, ...]:
        """The rubric, or everything that is wrong with it by field."""
        data = self.body()
        try:
            return Rubric.model_validate(data)
        except ValidationError as error:
            refused = Refused.by(error, data).details
            return tuple(Problem(tuple(one.loc), one.msg) for one in refused)

    def labels(self) -> list[str]:
        """The answers that the scale gives a judge; none while it is not a scale."""
        one: JsonValue = [{"name": "any", "weight": 1}]
        try:
            scale = Rubric.model_validate({**self._scale(), "criteria": one})
        except ValidationError:
            return []
        return [choice.label for choice in levels_of(scale)]

    def _scale(self) -> dict[str, JsonValue]:
        said: dict[str, JsonValue] = {}
        for name, text in (("scale_min", self.scale_min), ("scale_max", self.scale_max)):
            if text.strip():
                said[name] = _number(text)
        if levels := self.levels.strip():
            said["levels"] = int(levels) if _WHOLE.fullmatch(levels) else levels
        return said


def _number(text: str) -> JsonValue:
    return float(text) if _NUMBER.fullmatch(text.strip()) else text
