"""Reading a verdict that a judge wrote: whole, exact, or not at all."""

import json

import pytest
from jsonschema import Draft202012Validator

from starforge_rewards.judge import reply
from starforge_rewards.judge.reply import read_text
from starforge_rewards.question import (
    Answer,
    Choice,
    Evidence,
    NoAnswer,
    Part,
    Question,
    Reply,
    Tokens,
)

SHOWN = ("0", "1", "2", "3", "4", "5")


def question(*labels: str) -> Question:
    return Question(
        source="test",
        evidence=Evidence(parts=(Part(name="response", content="Because of scattering."),)),
        instruction="Is it right?",
        choices=tuple(Choice(label=label) for label in labels),
    )


def read(text: str, finish_reason: str | None = "stop") -> Reply:
    return read_text(question(*SHOWN), SHOWN, text, finish_reason, Tokens(generated=7))


def cause_of(said: Reply) -> str:
    assert isinstance(said, NoAnswer), said
    return said.cause


GOOD = '{"reason": "It is right.", "verdict": "5"}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"```JSON\r\n{GOOD}\r\n```\n",
        '{"verdict": "5", "reason": "It is right."}',
        '{"reason": "It is right.", "verdict": 5}',
        '{\n  "reason": "It is right.",\n  "verdict": "5"\n}',
    ],
)
def test_one_object_or_one_fence_that_holds_it_is_a_verdict(text: str) -> None:
    said = read(text)
    assert isinstance(said, Answer)
    assert (said.label, said.reason) == ("5", "It is right.")
    assert said.tokens == Tokens(generated=7)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "[[5]]",
        "The rating is [[5]].",
        "GRADE: CI",
        "GRADE: 5",
        "downgrade: 5",
        "I do not know.",
        f"Here it is: {GOOD}",
        f"{GOOD} I hope this helps.",
        f"{GOOD}\n{GOOD}",
        f"```json\n{GOOD}\n```\nThat is my verdict.",
        f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
        f"```python\n{GOOD}\n```",
        f"``{GOOD}``",
        f"<think>Let me see.</think>{GOOD}",
        f"\u200b{GOOD}",
        f"\ufeff{GOOD}",
        f"[{GOOD}]",
        '"5"',
        "null",
        '{"verdict": "5"}',
        '{"reason": "It is right."}',
        '{"reason": "It is right.", "Verdict": "5"}',
        '{"reason": "It is right.", "verdict": "5", "confidence": 1}',
        '{"reason": "It is right.", "verdict": "1", "verdict": "5"}',
        '{"reason": "It is right.", "verdict": true}',
        '{"reason": "It is right.", "verdict": null}',
        '{"reason": "It is right.", "verdict": 3.0}',
        '{"reason": "It is right.", "verdict": NaN}',
        '{"reason": NaN, "verdict": "5"}',
        '{"reason": "It is right.", "verdict": ["5"]}',
        '{"reason": "It is right.", "verdict": {"label": "5"}}',
        '{"reason": 5, "verdict": "5"}',
        '{"reason": null, "verdict": "5"}',
        "{'reason': 'It is right.', 'verdict': '5'}",
        '{"reason": "It is right.", "verdict": "5"',
        '{"reason": "\\ud800", "verdict": "5"}',
        '{"reason": "' + "9" * 400,
        '{"reason": "long", "verdict": ' + "9" * 5000 + "}",
        "[" * 100_000,
    ],
)
def test_anything_else_is_unparseable_and_keeps_a_snippet(text: str) -> None:
    said = read(text)
    assert cause_of(said) == "unparseable"
    assert isinstance(said, NoAnswer)
    assert len(said.detail) <= 200
    assert text.strip()[:40] in said.detail
    assert said.tokens == Tokens(generated=7)


@pytest.mark.parametrize("verdict", ['"6"', "-1", "10", '" 5"', '"5.0"', '"\u200b5"', '""', '"no"'])
def test_a_well_formed_verdict_that_is_no_label_is_off_the_scale(verdict: str) -> None:
    assert cause_of(read(f'{{"reason": "", "verdict": {verdict}}}')) == "off_scale"


def test_labels_match_whole_and_in_their_own_case() -> None:
    asked = question("know", "no", "Yes")
    for verdict, expected in (("know", "know"), ("no", "no"), ("yes", None), ("n", None)):
        text = json.dumps({"reason": "", "verdict": verdict})
        said = read_text(asked, ("know", "no", "Yes"), text, "stop")
        assert (said.label if isinstance(said, Answer) else None) == expected


def test_a_shown_label_stands_for_the_choice_at_its_place() -> None:
    asked = question("-2", "7")
    said = read_text(asked, ("A", "B"), '{"reason": "", "verdict": "B"}', "stop")
    assert isinstance(said, Answer)
    assert said.label == "7"


@pytest.mark.parametrize(
    ("finish_reason", "cause"),
    [
        ("length", "truncated"),
        ("content_filter", "refused"),
        ("refusal", "refused"),
        ("abort", "unreachable"),
    ],
)
def test_the_stop_reason_is_looked_at_before_the_text(finish_reason: str, cause: str) -> None:
    assert cause_of(read(GOOD, finish_reason)) == cause


def test_a_server_that_gives_no_stop_reason_lets_the_text_speak() -> None:
    assert isinstance(read(GOOD, None), Answer)
    assert isinstance(read(GOOD, "eos"), Answer)


def test_a_lone_surrogate_in_a_reply_is_kept_as_an_escape() -> None:
    for text in ("so \ud800", '{"reason": "", "verdict": "\\ud800"}', '{"\\ud800": 1, "\ud801'):
        said = read(text)
        assert isinstance(said, NoAnswer)
        said.detail.encode()


def test_the_schema_puts_the_reason_first_and_allows_nothing_else() -> None:
    asked = reply.schema(("0", "1"))["json_schema"]
    assert isinstance(asked, dict)
    schema = asked["schema"]
    assert isinstance(schema, dict)
    assert isinstance(schema["properties"], dict)
    assert list(schema["properties"]) == ["reason", "verdict"]
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"reason": "", "verdict": "1"})
    for wrong in ({"reason": "", "verdict": "2"}, {"verdict": "1"}, {"reason": "", "verdict": 1}):
        assert not validator.is_valid(wrong)
    assert not validator.is_valid({"reason": "", "verdict": "1", "more": ""})


def test_the_text_that_asks_shows_reason_before_verdict_and_every_label_once() -> None:
    text = reply.ask(("met", 'not "quite"'))
    assert text.index('"reason"') < text.index('"verdict"')
    assert text.endswith('"met", "not \\"quite\\""')
