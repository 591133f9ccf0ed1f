"""The OpenAPI document: what FastAPI cannot see by itself, so that the document is true."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from starforge_rewards.server.api.errors import ErrorBody

_MEANING = {
    401: "No token, or one that is not valid (any more).",
    403: "Readable, but not writable; or another's namespace.",
    404: "Absent, or not readable: which, is not said.",
    409: "Somebody else's write came first.",
    413: "The body is too large.",
    422: "A parameter or the body is refused, with the field.",
    429: "Too much for now: see `Retry-After`.",
    502: "The judge gave no score.",
    503: "The database or the judge cannot be used now.",
}
_HEADERS = {401: ("WWW-Authenticate", "string"), 429: ("Retry-After", "integer")}


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route's document says of its failures."""
    return {status: _failure(status) for status in statuses}


def _failure(status: int) -> dict[str, Any]:
    said: dict[str, Any] = {"model": ErrorBody, "description": _MEANING[status]}
    name, kind = _HEADERS.get(status, ("", ""))
    if status == 503:
        name, kind = "Retry-After", "integer"
    if name:
        said["headers"] = {name: {"schema": {"type": kind}}}
    return said


def describe(app: FastAPI) -> None:
    """Have an app serve the whole document."""
    made: dict[str, Any] = {}

    def document() -> dict[str, Any]:
        if not made:
            made.update(
                get_openapi(
                    title=app.title,
                    version=app.version,
                    description=app.description,
                    routes=app.routes,
                    separate_input_output_schemas=False,
                )
            )
            _hoist(made)
        return made

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's own way to extend it


def _hoist(document: dict[str, Any]) -> None:
    """Definitions that came with a body's schema go where its references point."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for path in document["paths"].values():
        for operation in path.values():
            body = operation.get("requestBody", {}).get("content", {})
            for content in body.values():
                schemas.update(content["schema"].pop("$defs", {}))
