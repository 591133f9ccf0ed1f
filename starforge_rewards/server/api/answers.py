"""How the API writes JSON: in ASCII, so that no text in it, however odd, can break an answer."""

import json
from collections.abc import Mapping

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from starlette.responses import Response


def answer(
    said: BaseModel | Mapping[str, object],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A response with a JSON body; made in the thread that calls."""
    data = said.model_dump() if isinstance(said, BaseModel) else said
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), default=to_jsonable_python)
    return Response(text.encode(), status, headers, "application/json")
