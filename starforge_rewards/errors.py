"""Every error that this package raises on purpose, and nothing else.

```
StarforgeError
├── InputError       what a person wrote cannot be used: names file, line and field    exit 2
├── NotFound         a reference, pool or file names something that is not there       exit 2
└── EngineFailed     an engine or a cluster could not be started or joined             exit 1
```

A judge that could not answer is *not* here: that is a value (`question.NoAnswer`).
"""

from collections.abc import Sequence
from typing import Self

from pydantic import ValidationError


class StarforgeError(Exception):
    """Anything that this package raises on purpose."""


class InputError(StarforgeError):
    """What a person wrote cannot be used; the message says where it is and what to do."""

    def __init__(
        self,
        problem: str,
        *,
        file: object = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.problem, self.file, self.line, self.field = problem, file, line, field
        place = str(file) if file is not None else ""
        if line is not None:
            place += f":{line}" if place else f"line {line}"
        super().__init__(": ".join(part for part in (place, field, problem) if part))

    @classmethod
    def of(cls, error: ValidationError, *, file: object = None, line: int | None = None) -> Self:
        """The first problem of a pydantic error, with a readable path to the field."""
        first, *others = error.errors(include_url=False, include_input=False)
        problem = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            problem = "unknown key: remove it or correct its spelling"
        if others:
            problem += f" (and {len(others)} more)"
        return cls(problem, file=file, line=line, field=field_path(first["loc"]))


class NotFound(StarforgeError):
    """A reference, a pool or a file names something that is not there."""


class EngineFailed(StarforgeError):
    """An engine or a cluster could not be started or joined; the message carries its own words."""


def field_path(loc: Sequence[int | str]) -> str:
    """`("criteria", 0, "weight")` as `criteria[0].weight`."""
    path = ""
    for step in loc:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path
