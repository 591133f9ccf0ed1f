import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from starforge_rewards.conversation import Message, Rollout, ToolCall

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
CALLS = st.builds(
    ToolCall,
    name=TEXT,
    arguments=TEXT,
    status=st.sampled_from(["ok", "error", "unknown"]),
    result=st.none() | TEXT,
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=TEXT,
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
)
CONTENT = TEXT | st.lists(MESSAGES, max_size=3).map(tuple)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


@settings(deadline=None)
@given(
    st.builds(
        Rollout,
        id=st.none() | NAME,
        prompt=CONTENT,
        response=CONTENT,
        reference=st.none() | TEXT,
        metadata=st.dictionaries(TEXT, JSON, max_size=2),
    )
)
def test_a_rollout_is_the_same_after_a_trip_through_json(rollout: Rollout) -> None:
    assert Rollout.model_validate_json(rollout.model_dump_json()) == rollout


SURROGATE = "a\ud800b"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"prompt": SURROGATE, "response": ""}, "prompt"),
        ({"prompt": "", "response": SURROGATE}, "response"),
        ({"prompt": [{"role": "user", "content": SURROGATE}], "response": ""}, "content"),
        ({"prompt": "", "response": "", "id": SURROGATE}, "id"),
        ({"prompt": "", "response": "", "reference": SURROGATE}, "reference"),
        ({"prompt": "", "response": "", "context": SURROGATE}, "context"),
        ({"prompt": "", "response": "", "rubric": SURROGATE}, "rubric"),
        ({"prompt": "", "response": "", "rubric": {"a": SURROGATE}}, "rubric"),
        ({"prompt": "", "response": "", "metadata": {"a": [SURROGATE]}}, "metadata"),
        ({"prompt": "", "response": "", "metadata": {SURROGATE: 1}}, "metadata"),
    ],
)
def test_text_that_no_file_can_hold_is_refused_in_every_field(
    data: dict[str, object], field: str
) -> None:
    with pytest.raises(ValidationError, match="lone surrogate at character") as error:
        Rollout.model_validate(data)
    assert field in error.value.errors()[0]["loc"]


@pytest.mark.parametrize("field", ["name", "arguments", "result"])
def test_a_tool_call_has_no_text_that_no_file_can_hold(field: str) -> None:
    with pytest.raises(ValidationError, match="lone surrogate at character 1"):
        ToolCall.model_validate({"name": "search"} | {field: SURROGATE})


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (ToolCall, {"name": "x", "argument": "{}"}),
        (Message, {"role": "user", "text": "x"}),
        (Rollout, {"prompt": "x", "response": "y", "references": "z"}),
    ],
)
def test_a_key_that_is_not_known_is_refused(
    model: type[ToolCall | Message | Rollout], data: dict[str, object]
) -> None:
    with pytest.raises(ValidationError) as error:
        model.model_validate(data)
    assert error.value.errors()[0]["type"] == "extra_forbidden"


@pytest.mark.parametrize("prompt", [5, None, {"role": "user"}, True])
def test_a_prompt_is_a_text_or_messages_and_nothing_else(prompt: object) -> None:
    with pytest.raises(ValidationError, match="must be a text or a list of messages"):
        Rollout.model_validate({"prompt": prompt, "response": "x"})


def test_a_wrong_message_is_the_only_problem_that_is_told() -> None:
    with pytest.raises(ValidationError) as error:
        Rollout.model_validate({"prompt": [{"role": "owner"}], "response": "x"})
    assert error.value.error_count() == 1


def test_a_value_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Message(role="user").content = "x"  # type: ignore[misc]


CALL = ToolCall(name="search")


@pytest.mark.parametrize(
    ("response", "empty"),
    [
        ("", True),
        (" \n\t\u2003", True),
        (".", False),
        ((), True),
        ((Message(role="assistant"),), True),
        ((Message(role="assistant", content=" \n"), Message(role="assistant")), True),
        ((Message(role="assistant"), Message(role="assistant", content="x")), False),
        ((Message(role="assistant", tool_calls=(CALL,)),), False),
    ],
)
def test_a_response_is_empty_when_it_neither_says_nor_does_anything(
    response: str | tuple[Message, ...], empty: bool
) -> None:
    assert Rollout(prompt="p", response=response).empty is empty
