"""Who said what: messages, tool calls and the rollout that a policy produced.

A `Rollout` is one input row. Text with lone surrogates is refused here, with its field, because no
tokenizer and no UTF-8 file can hold it.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
)

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"lone surrogate at character {error.start}: the text is not valid Unicode"
        ) from None
    return text


def _printable(text: str) -> str:
    if found := _CONTROL.search(text):
        raise ValueError(f"control character {found[0]!r} at character {found.start()}: remove it")
    return text


def _encodable_json(data: dict[str, JsonValue]) -> dict[str, JsonValue]:
    _encodable(json.dumps(data, ensure_ascii=False))
    return data


def _content_kind(value: object) -> str | None:
    if isinstance(value, str):
        return "text"
    return "messages" if isinstance(value, list | tuple) else None


Text = Annotated[str, AfterValidator(_encodable)]
Prose = Annotated[Text, AfterValidator(_printable)]
"""Text that people write to be read, and databases keep: no control characters."""
RowId = Annotated[Prose, Field(min_length=1, max_length=512)]
"""A row's name, in results, registries and pages."""
Json = Annotated[dict[str, JsonValue], AfterValidator(_encodable_json)]
Role = Literal["system", "user", "assistant", "tool"]


class Frozen(BaseModel):
    """A value: cannot change after it is made, and refuses keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Self:
        """Without what the original has cached, such as a digest of its own content."""
        copied = super().model_copy(update=update, deep=deep)
        for cached in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[cached]
        return copied


class Record(BaseModel):
    """A value that is stored or received: keys that a newer release added are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ToolCall(Frozen):
    """One call of a tool, with what came back."""

    name: Text
    arguments: Text = "{}"
    """JSON text, as the model wrote it."""
    status: Literal["ok", "error", "unknown"] = "unknown"
    result: Text | None = None


class Message(Frozen):
    """One turn of a conversation."""

    role: Role
    content: Text = ""
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.content.strip() and not self.tool_calls


Content = Annotated[
    Annotated[Text, Tag("text")] | Annotated[tuple[Message, ...], Tag("messages")],
    Discriminator(
        _content_kind,
        custom_error_type="content_type",
        custom_error_message="must be a text or a list of messages",
    ),
]


class Rollout(Frozen):
    """A prompt, what the policy answered, and what may be known about a right answer."""

    id: RowId | None = None
    prompt: Content
    response: Content
    reference: Text | None = None
    context: Text | None = None
    rubric: Json | Text | None = None
    """This row's own rubric, inline or by reference; otherwise the run's rubric holds."""
    metadata: Json = {}

    @property
    def empty(self) -> bool:
        """True where the response says nothing at all."""
        if isinstance(self.response, str):
            return not self.response.strip()
        return all(message.empty for message in self.response)
