"""What a server's failures are called, and what is read of its responses."""

import json
import math

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import EndpointJudge
from starforge_rewards.judge.wire import Completion, Wire, failure_of
from starforge_rewards.question import Tokens


@pytest.mark.parametrize(
    ("status", "words", "cause", "passing"),
    [
        (500, "internal", "unreachable", True),
        (503, "busy", "unreachable", True),
        (504, "gateway", "timeout", True),
        (429, "slow down", "unreachable", True),
        (408, "too slow", "timeout", True),
        (401, "wrong key", "unreachable", False),
        (404, "no such model", "unreachable", False),
        (422, "unknown field", "unreachable", False),
        (302, "elsewhere", "unreachable", False),
        (413, "too large", "overlong", False),
        (400, "This model's maximum context length is 4096 tokens.", "overlong", False),
        (400, '{"error": {"code": "context_length_exceeded", "message": "m"}}', "overlong", False),
        (400, "Please reduce your prompt: it is too long", "overlong", False),
        (400, '{"error": {"code": "content_filter", "message": "m"}}', "refused", False),
        (500, "the context window of the shell is gone", "unreachable", True),
    ],
)
def test_a_status_and_its_words_name_the_cause_and_whether_it_may_pass(
    status: int, words: str, cause: str, passing: bool
) -> None:
    failure = failure_of(status, words)
    assert (failure.cause, failure.passing) == (cause, passing)
    assert failure.detail.startswith(f"HTTP {status}: ")


def test_the_detail_is_the_servers_sentence_where_it_has_one() -> None:
    words = json.dumps({"error": {"message": "No such model.", "code": 404}})
    assert failure_of(404, words).detail == "HTTP 404: No such model."
    assert failure_of(404, "<html>").detail == "HTTP 404: <html>"
    assert failure_of(404, '{"error": "plain"}').detail == 'HTTP 404: {"error": "plain"}'


def completion(*entries: tuple[str, float | None]) -> Completion:
    top = [{"token": token, "logprob": logprob} for token, logprob in entries]
    position = {"token": "token_id:9", "logprob": -1.0, "top_logprobs": top}
    choice = {"message": {"content": "x"}, "logprobs": {"content": [position]}}
    return Completion.model_validate({"choices": [choice], "unknown": 1})


def test_probabilities_are_found_by_token_id_whatever_their_order() -> None:
    got = completion(("token_id:9", -1.0), ("token_id:3", math.log(0.25)), ("token_id:2", -2.0))
    assert got.choices[0].masses((2, 3)) == pytest.approx((math.exp(-2.0), 0.25))


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [("token_id:2", -1.0)],
        [("token_id:2", -1.0), ("token_id:3", -9999.0)],
        [("token_id:2", -1.0), ("token_id:3", None)],
        [("token_id:2", -1.0), ("token_id:3", float("nan"))],
        [("token_id:2", -1.0), ("token_id:3", float("-inf"))],
        [("2", -1.0), ("3", -1.0)],
    ],
)
def test_a_row_that_lacks_a_label_has_no_probabilities(
    entries: list[tuple[str, float | None]],
) -> None:
    assert completion(*entries).choices[0].masses((2, 3)) is None


def test_a_response_without_probabilities_or_usage_is_read_as_such() -> None:
    bare = Completion.model_validate({"choices": [{"message": {}, "logprobs": None}]})
    assert bare.choices[0].masses((2, 3)) is None
    assert bare.tokens == Tokens()


def test_usage_becomes_tokens_with_what_the_prefix_cache_held() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    got = Completion.model_validate({"choices": [{"message": {}}], "usage": usage})
    assert got.tokens == Tokens(prompt=9, cached=4, generated=2)


@pytest.mark.parametrize(
    "base_url", ["localhost:8000/v1", "ftp://host/v1", "http:///v1", "http://h:port/v1"]
)
def test_an_address_that_is_none_is_an_input_error(base_url: str) -> None:
    with pytest.raises(InputError, match="base_url"):
        Wire(EndpointJudge(kind="endpoint", base_url=base_url, model="judge"))


def test_an_address_that_holds_credentials_is_refused_without_showing_them() -> None:
    config = EndpointJudge(kind="endpoint", base_url="https://me:secret@host/v1", model="judge")
    with pytest.raises(InputError, match="api_key_env") as caught:
        Wire(config)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", [None, "", "  ", "two\nlines", "schlüssel"])
def test_a_variable_that_holds_no_key_is_an_input_error(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OWN_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("OWN_KEY", value)
    config = EndpointJudge(
        kind="endpoint", base_url="http://host/v1", model="judge", api_key_env="OWN_KEY"
    )
    with pytest.raises(InputError, match="OWN_KEY"):
        Wire(config)
