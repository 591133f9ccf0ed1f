"""Who said what: messages, tool calls and the rollout that a policy produced.

A `Rollout` is one input row. Text with lone surrogates is refused here, with its field, because no
tokenizer and no UTF-8 file can hold it.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"lone surrogate at character {error.start}: the text is not valid Unicode"
        ) from None
    return text


Text = Annotated[str, AfterValidator(_encodable)]
Role = Literal["system", "user", "assistant", "tool"]


class Frozen(BaseModel):
    """A value: cannot change after it is made, and refuses keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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


Content = Text | tuple[Message, ...]


class Rollout(Frozen):
    """A prompt, what the policy answered, and what may be known about a right answer."""

    id: Text | None = None
    prompt: Content
    response: Content
    reference: Text | None = None
    context: Text | None = None
    rubric: dict[str, JsonValue] | Text | None = None
    """This row's own rubric, inline or by reference; otherwise the run's rubric holds."""
    metadata: dict[str, JsonValue] = {}

    @property
    def empty(self) -> bool:
        """True where the response says nothing at all."""
        if isinstance(self.response, str):
            return not self.response.strip()
        return all(message.empty for message in self.response)
