"""Every error that this package raises on purpose, and nothing else.

```
StarforgeError
├── InputError       what a person wrote cannot be used: names file, line and field    exit 2
├── NotFound         names something that is not there, or not readable to the asker   exit 2
├── Unauthorized     no token, or one that is not valid (any more)                     exit 2
├── Forbidden        readable, but not writable to the asker                           exit 2
├── Conflict         somebody else's write came first                                  exit 1
├── Unavailable      a database or server cannot be used now; later may do             exit 1
│   └── DatabaseAway     a database: its own words are for whoever runs it, not for callers
└── EngineFailed     an engine or a cluster could not be started or joined             exit 1
```

`FieldError` is a `ValueError` that pydantic turns into its own error, and so into `InputError`.
A judge that could not answer is *not* here: that is a value (`question.NoAnswer`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

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
    def of(
        cls,
        error: ValidationError,
        *,
        file: object = None,
        line: int | None = None,
        data: object = None,
    ) -> Self:
        """The first problem of a pydantic error, with a readable path to the field.

        `data` is what was refused: with it the path has no step that nobody wrote.
        """
        loc, problem = first_problem(error, data)
        if error.error_count() > 1:
            problem += f" (and {error.error_count() - 1} more)"
        return cls(problem, file=file, line=line, field=field_path(loc))


class NotFound(StarforgeError):
    """A reference, a pool or a file names something that is not there, or is not readable."""


class Unauthorized(StarforgeError):
    """There is no token, or it is not valid (any more)."""


class Forbidden(StarforgeError):
    """The asker may read this, but not write it."""


class Conflict(StarforgeError):
    """Somebody else's write came first: look at it, then write again."""


class Unavailable(StarforgeError):
    """A database or a server cannot be used now; the same call may do later."""


class DatabaseAway(Unavailable):
    """A database cannot be used now; its own words name hosts and users."""


class EngineFailed(StarforgeError):
    """An engine or a cluster could not be started or joined; the message carries its own words."""


class FieldError(ValueError):
    """Raised by a validator of a whole model for one field in it, at `loc` from that model."""

    def __init__(self, problem: str, *loc: int | str) -> None:
        self.problem, self.loc = problem, loc
        super().__init__(f"{field_path(loc)}: {problem}")


class Problem(NamedTuple):
    """What is wrong with the field at `loc`."""

    loc: tuple[int | str, ...]
    said: str


def first_problem(error: ValidationError, data: object = None) -> Problem:
    """The first problem of a pydantic error; `data` as in `InputError.of`."""
    return problems(error, data)[0]


def problems(error: ValidationError, data: object = None) -> list[Problem]:
    """Every problem of a pydantic error, in its order; `data` as in `InputError.of`."""
    found = error.errors(include_url=False, include_input=False)
    return [
        _problem(one["loc"], one["msg"], one["type"], one.get("ctx", {}), data) for one in found
    ]


def _problem(
    loc: tuple[int | str, ...], msg: str, kind: str, context: Mapping[str, Any], data: object
) -> Problem:
    said = msg.removeprefix("Value error, ")
    match kind, context.get("error"):
        case _, FieldError(problem=said, loc=below):
            loc += below
        case "extra_forbidden", _:
            said = "unknown key: remove it or correct its spelling"
        case "model_type", _:
            said = "must be a mapping of keys to values"
        case "union_tag_not_found", _:
            return Problem(
                (*_written(loc, data), context["discriminator"].strip("'")), "Field required"
            )
        case "union_tag_invalid", _:
            loc += (context["discriminator"].strip("'"),)
        case "missing", _:
            return Problem((*_written(loc[:-1], data), loc[-1]), said)
    return Problem(_written(loc, data), said)


def _written(loc: tuple[int | str, ...], data: object) -> tuple[int | str, ...]:
    """`loc` without the steps that pydantic adds, such as a union's tag: the data has none such."""
    if data is None:
        return loc
    steps: list[int | str] = []
    for step in loc:
        match data:
            case Mapping() if step in data:
                data = data[step]
            case list() | tuple() if isinstance(step, int):
                data = data[step]
            case _:
                continue
        steps.append(step)
    return tuple(steps)


def field_path(loc: Sequence[int | str]) -> str:
    """`("criteria", 0, "weight")` as `criteria[0].weight`."""
    path = ""
    for step in loc:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path
