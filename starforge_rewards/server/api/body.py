"""The body of a request: strict JSON, one object, checked against a model of ours.

It is read whatever its Content-Type says. What is wrong with it is told with the field.
"""

import json
import re
from typing import Annotated, TypeVar

from fastapi import Depends
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from starlette.requests import Request

from starforge_rewards.documents import parse_json
from starforge_rewards.server.api.errors import Refused

Model = TypeVar("Model", bound=BaseModel)
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_REFS = "#/components/schemas/{model}"


async def _read(request: Request) -> bytes:
    return await request.body()


RawBody = Annotated[bytes, Depends(_read)]


def object_in(raw: bytes) -> dict[str, object]:
    """The JSON object that a body is.

    Raises:
        Refused: it is not UTF-8, not strict JSON, too deep, no object, or holds a lone surrogate.
    """
    try:
        data = parse_json(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Refused.at(f"not UTF-8 at byte {error.start}", "body", type="json_invalid") from None
    except json.JSONDecodeError as error:
        said = f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise Refused.at(said, "body", type="json_invalid") from None
    except RecursionError:
        raise Refused.at("nested too deeply", "body", type="json_invalid") from None
    except ValueError as error:
        raise Refused.at(f"not JSON: {error}", "body", type="json_invalid") from None
    if not isinstance(data, dict):
        raise Refused.at("must be a JSON object", "body", type="dict_type")
    if _ESCAPED_SURROGATE.search(raw):
        _refuse_lone_surrogates(data)
    return data


def check(data: object, model: type[Model], *above: int | str) -> Model:
    """What a body, or the part of it at `above`, means.

    Raises:
        Refused: the model refuses it.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Refused.by(error, data, *(above or ("body",))) from None
    except (RecursionError, OverflowError):
        said = "holds something too deep or too large"
        raise Refused.at(said, *(above or ("body",))) from None


def takes(model: type[BaseModel] | TypeAdapter[object], example: JsonValue) -> dict[str, object]:
    """What a route's document says of its body; `server.document` moves the definitions."""
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    schema = adapter.json_schema(ref_template=_REFS)
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def _refuse_lone_surrogates(data: dict[str, object]) -> None:
    waiting: list[tuple[object, tuple[int | str, ...]]] = [(data, ("body",))]
    while waiting:
        value, loc = waiting.pop()
        match value:
            case str():
                _refuse_lone_surrogate(value, loc)
            case dict():
                for key, inner in value.items():
                    _refuse_lone_surrogate(key, loc)
                    waiting.append((inner, (*loc, key)))
            case list():
                waiting += [(inner, (*loc, index)) for index, inner in enumerate(value)]


def _refuse_lone_surrogate(text: str, loc: tuple[int | str, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        said = f"lone surrogate at character {error.start}: the text is not valid Unicode"
        raise Refused.at(said, *loc, type="string_unicode") from None
