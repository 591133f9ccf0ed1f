"""What a caller is told when something is not so: the one table from errors to statuses.

Every failure has the same body: `{"detail": [{"msg", "loc", "type"}], "code"}`.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match, Route

from starforge_rewards.errors import (
    Conflict,
    DatabaseAway,
    EngineFailed,
    Forbidden,
    InputError,
    NotFound,
    StarforgeError,
    Unauthorized,
    Unavailable,
    problems,
)
from starforge_rewards.server.api.answers import answer
from starforge_rewards.server.api.limits import RateLimited

_log = logging.getLogger(__name__)

Code = Literal[
    "invalid",
    "unauthorized",
    "forbidden",
    "not_found",
    "method_not_allowed",
    "version_conflict",
    "too_large",
    "rate_limited",
    "judge_failed",
    "unavailable",
    "internal",
]
Loc = tuple[int | str, ...]
_MOST = 50
"""Problems that one answer tells."""
_LONGEST = 500
"""Characters of one message."""
_STEP = re.compile(r"\[(\d+)\]|([^.\[]+)")


class Detail(BaseModel):
    """One thing that is wrong, and where."""

    msg: str
    loc: Sequence[int | str]
    """Begins with body, path, query, header or judge, and follows the path to the field."""
    type: str


class ErrorBody(BaseModel):
    """The body of every failure."""

    detail: list[Detail]
    code: Code


class Refused(InputError):
    """What was sent cannot be used, with every field that is refused."""

    def __init__(self, details: Sequence[Detail]) -> None:
        self.details = details
        super().__init__("; ".join(detail.msg for detail in details[:1]))

    @classmethod
    def at(cls, msg: str, *loc: int | str, type: str = "value_error") -> "Refused":
        return cls([Detail(msg=msg, loc=loc, type=type)])

    @classmethod
    def by(cls, error: ValidationError, data: object, *above: int | str) -> "Refused":
        """A pydantic error of `data`, which stands at `above`."""
        types = [one["type"] for one in error.errors(include_url=False, include_input=False)]
        found = list(zip(problems(error, data), types, strict=True))
        below = {p.loc[:n] for p, _ in found for n in range(len(p.loc))}
        return cls(
            [
                Detail(msg=p.said, loc=(*above, *p.loc), type=kind)
                for p, kind in found
                # Pydantic counts only what is right: one wrong item of one is "too few" besides.
                if kind != "too_short" or p.loc not in below
            ]
        )


class Missing(NotFound):
    """What the field at `loc` names is absent, or not readable."""

    def __init__(self, msg: str, *loc: int | str) -> None:
        self.details = [Detail(msg=msg, loc=loc, type="not_found")]
        super().__init__(msg)


class JudgeFailed(EngineFailed):
    """No rollout of a call has a score; a detail says why for each."""

    def __init__(self, details: Sequence[Detail]) -> None:
        self.details = details
        super().__init__("; ".join(detail.msg for detail in details[:1]))


class Means(NamedTuple):
    """What an error is to a caller."""

    status: int
    code: Code
    loc: Loc = ()


TABLE: dict[type[StarforgeError], Means] = {
    InputError: Means(422, "invalid"),
    Unauthorized: Means(401, "unauthorized", ("header", "authorization")),
    Forbidden: Means(403, "forbidden", ("path",)),
    NotFound: Means(404, "not_found", ("path",)),
    Conflict: Means(409, "version_conflict", ("body",)),
    RateLimited: Means(429, "rate_limited", ("judge",)),
    EngineFailed: Means(502, "judge_failed", ("judge",)),
    Unavailable: Means(503, "unavailable", ("server",)),
}
_BY_STATUS: dict[int, Code] = {
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    500: "internal",
}
RETRY_AFTER = "5"
"""Seconds, where a database or a judge is away."""


def failure(status: int, msg: str, *loc: int | str) -> Response:
    """The answer of a failure that no error of ours stands for."""
    code = _BY_STATUS.get(status, "invalid")
    return _answer(Means(status, code), [Detail(msg=msg, loc=loc, type=code)])


@contextmanager
def located(*loc: int | str) -> Iterator[None]:
    """What is refused inside the block is so because of the field at `loc`."""
    try:
        yield
    except Refused:
        raise
    except InputError as error:
        raise Refused.at(error.problem, *loc, *_steps(error.field)) from error


@contextmanager
def naming(*loc: int | str) -> Iterator[None]:
    """What is refused or not found inside the block is what the field at `loc` names."""
    try:
        with located(*loc):
            yield
    except NotFound as error:
        raise Missing(str(error), *loc) from None


def install(app: FastAPI) -> None:
    """Have an app answer every failure with our body."""
    app.add_exception_handler(StarforgeError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_parameters)
    app.add_exception_handler(HTTPException, _of_routing)
    app.add_exception_handler(ClientDisconnect, _of_the_departed)
    app.add_exception_handler(Exception, _of_nobody)


async def _of_ours(request: Request, error: Exception) -> Response:
    means = next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), None)
    if means is None:
        raise error
    headers = {}
    match error:
        case Refused(details=details) | Missing(details=details) | JudgeFailed(details=details):
            return _answer(means, details)
        case InputError(problem=msg, field=field):
            where = "query" if request.method == "GET" else "body"
            means = means._replace(loc=(where, *_steps(field)))
        case RateLimited(wait=wait):
            msg, headers = str(error), {"retry-after": str(wait)}
        case DatabaseAway():
            _log.error("%s", error)
            msg, headers = "the database cannot be used now", {"retry-after": RETRY_AFTER}
        case Unavailable():
            msg, headers = str(error), {"retry-after": RETRY_AFTER}
        case Unauthorized():
            msg, headers = str(error), {"www-authenticate": "Bearer"}
        case _:
            msg = str(error)
    return _answer(means, [Detail(msg=msg, loc=means.loc, type=means.code)], headers)


async def _of_parameters(_request: Request, error: Exception) -> Response:
    """Path, query and header, which FastAPI checks; a message is ours where a validator is."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    details = [Detail(msg=_said(one), loc=one["loc"], type=one["type"]) for one in found]
    return _answer(TABLE[InputError], details)


def _said(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "extra_forbidden":
        return "unknown parameter: remove it or correct its spelling"
    return str(problem["msg"]).removeprefix("Value error, ")


async def _of_routing(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    where = "body" if error.status_code == 413 else "path"
    answered = failure(error.status_code, str(error.detail), where)
    answered.headers.update(error.headers or {})
    if error.status_code == 405:
        answered.headers["allow"] = ", ".join(sorted(_allowed(request)))
    return answered


async def _of_the_departed(_request: Request, _error: Exception) -> Response:
    """Nobody reads it; what was sent of the body was not all of it."""
    return failure(422, "the body ends before its declared length", "body")


async def _of_nobody(_request: Request, _error: Exception) -> Response:
    """A mistake of ours, which Starlette logs and raises on; its text is nobody's business."""
    return failure(500, "the server made a mistake: its log says which")


def _allowed(request: Request) -> set[str]:
    """The methods of all routes with this path; each route knows its own only."""
    allowed = set[str]()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            allowed |= route.methods or set()
    return allowed | ({"HEAD"} if "GET" in allowed else set())


def _steps(field: str | None) -> Loc:
    """`criteria[0].weight` as `("criteria", 0, "weight")`."""
    return tuple(int(i) if i else name for i, name in _STEP.findall(field or ""))


def _answer(
    means: Means, details: Sequence[Detail], headers: dict[str, str] | None = None
) -> Response:
    said = [_short(detail) for detail in details[:_MOST]]
    return answer({"detail": said, "code": means.code}, means.status, headers)


def _short(detail: Detail) -> dict[str, object]:
    """Messages and keys quote what was sent, which may be long."""
    loc = [step[:_LONGEST] if isinstance(step, str) else step for step in detail.loc]
    return {"msg": detail.msg[:_LONGEST], "loc": loc, "type": detail.type}
