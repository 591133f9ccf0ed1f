import pytest

from tests.server.asking import BODY, RUBRIC, Server, codes, fields


@pytest.mark.parametrize(
    ("raw", "loc"),
    [
        (b"", ["body"]),
        (b"{", ["body"]),
        (b"[]", ["body"]),
        (b"null", ["body"]),
        (b'"text"', ["body"]),
        (b'{"criteria": [{"name": "a", "weight": NaN}]}', ["body"]),
        (b'{"criteria": [{"name": "a", "weight": -Infinity}]}', ["body"]),
        (b'{"criteria": [{"name": "a", "weight": 1e999}]}', ["body"]),
        (b'{"criteria": [{"name": "a", "weight": ' + b"9" * 5000 + b"}]}", ["body"]),
        (b'{"description": "a", "description": "b", "criteria": []}', ["body"]),
        (b'{"description": "\xff"}', ["body"]),
        (b'{"description": "a\x01"}', ["body"]),
        (b"[" * 100_000, ["body"]),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, ["body"]),
        (b'{"description": "\\ud800"}', ["body", "description"]),
        (b'{"criteria": [{"name": "\\udfff x"}]}', ["body", "criteria", 0, "name"]),
        (b'{"\\ud800": 1}', ["body"]),
    ],
)
def test_what_is_no_strict_json_object_is_refused_with_its_place(
    plain: Server, raw: bytes, loc: list[int | str]
) -> None:
    refused = plain.ask("alice", "PUT", RUBRIC, content=raw)
    assert fields(refused) == [loc]
    assert refused.content.isascii()


def test_deep_json_where_any_json_may_stand_is_refused(plain: Server) -> None:
    deep = b'{"a":' * 400 + b"1" + b"}" * 400
    raw = b'{"role": "gate", "judge": {"digest": "' + b"a" * 64 + b'", "identity": ' + deep + b"}}"
    answered = plain.ask("alice", "PUT", "/api/runs/run-00000001", content=raw)
    assert codes(answered) == (422, "invalid")


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "text/plain", "application/x-www-form-urlencoded"]
)
def test_json_is_read_whatever_it_is_said_to_be(plain: Server, kind: str) -> None:
    written = plain.ask("alice", "PUT", RUBRIC + kind[-4:], BODY, headers={"Content-Type": kind})
    assert written.status_code == 201


def test_an_escaped_pair_of_surrogates_is_one_character(plain: Server) -> None:
    raw = b'{"description": "\\ud83d\\ude00", "criteria": [{"name": "a", "weight": 1}]}'
    written = plain.ask("alice", "PUT", RUBRIC, content=raw)
    assert written.json()["rubric"]["description"] == "\U0001f600"


def test_a_body_full_of_mistakes_gets_a_short_answer(plain: Server) -> None:
    refused = plain.ask("alice", "PUT", RUBRIC, {"criteria": [{}] * 10_000})
    assert len(fields(refused)) == 50
    quoted = plain.ask(
        "alice", "PUT", RUBRIC, BODY | {"k" * 100_000: 1, "visibility": "v" * 100_000}
    )
    assert len(quoted.content) < 2000
    call = {"rubric": "r" * 100_000, "prompt": "p", "response": "r"}
    assert len(plain.ask("alice", "POST", "/api/judge/score", call).content) < 1000
