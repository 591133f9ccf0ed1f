import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from tests.server.asking import BODY, RUBRIC, Server, codes, fields

CRITERION: dict[str, JsonValue] = {"name": "Right", "weight": 1.0}


def test_the_first_write_is_201_and_every_edit_200_with_the_next_version(server: Server) -> None:
    first = server.ask("alice", "PUT", RUBRIC, BODY)
    assert first.status_code == 201
    assert first.json()["rubric"] == BODY
    assert {k: first.json()[k] for k in ("owner", "name", "version", "changed", "created")} == {
        "owner": "alice",
        "name": "answer-quality",
        "version": 1,
        "changed": True,
        "created": True,
    }
    second = server.ask("alice", "PUT", RUBRIC, BODY | {"visibility": "public"})
    assert (second.status_code, second.json()["version"]) == (200, 2)
    again = server.ask("alice", "PUT", RUBRIC, BODY | {"visibility": "public"})
    assert (again.status_code, again.json()["version"], again.json()["changed"]) == (200, 2, False)


def test_what_is_shown_may_be_written_again_and_is_no_edit(server: Server) -> None:
    server.write(visibility="public", levels=3)
    shown = server.ask("alice", "GET", RUBRIC).json()["rubric"]
    assert server.ask("alice", "PUT", RUBRIC, shown).json()["changed"] is False


def test_an_absent_visibility_keeps_the_current_one(server: Server) -> None:
    server.write(visibility="public")
    without = {key: value for key, value in BODY.items() if key != "visibility"}
    written = server.ask("alice", "PUT", RUBRIC, without | {"description": "Other."})
    assert written.json()["rubric"]["visibility"] == "public"


def test_another_version_than_the_expected_one_is_a_conflict(server: Server) -> None:
    assert server.ask("alice", "PUT", RUBRIC, BODY | {"expected_version": 0}).status_code == 201
    edit = BODY | {"description": "Other.", "expected_version": 2}
    assert codes(server.ask("alice", "PUT", RUBRIC, edit)) == (409, "version_conflict")
    assert server.ask("alice", "PUT", RUBRIC, edit | {"expected_version": 1}).status_code == 200
    for none in (True, "1", 1.5, -1, 10**30):
        refused = server.ask("alice", "PUT", RUBRIC, edit | {"expected_version": none})
        assert fields(refused) == [["body", "expected_version"]]


def test_a_write_that_is_sent_twice_under_one_key_lands_once(server: Server) -> None:
    key = {"Idempotency-Key": "write-1"}
    first = server.ask("alice", "PUT", RUBRIC, BODY, headers=key)
    server.write(description="Between.")
    again = server.ask("alice", "PUT", RUBRIC, BODY, headers=key)
    assert again.json()["version"] == first.json()["version"] == 1
    assert server.ask("alice", "GET", RUBRIC).json()["version"] == 2
    for bad in ("", " ", "k" * 129):
        refused = server.ask("alice", "PUT", RUBRIC, BODY, headers={"Idempotency-Key": bad})
        assert fields(refused) == [["header", "Idempotency-Key"]]


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"criteria": []}, ["criteria"]),
        ({"criteria": None}, ["criteria"]),
        ({"criteria": [CRITERION, CRITERION]}, ["criteria", 1, "name"]),
        ({"criteria": [CRITERION | {"weight": "1"}]}, ["criteria", 0, "weight"]),
        ({"criteria": [CRITERION | {"weight": True}]}, ["criteria", 0, "weight"]),
        ({"criteria": [CRITERION | {"weight": 0}]}, ["criteria"]),
        ({"criteria": [CRITERION | {"name": " "}]}, ["criteria", 0, "name"]),
        ({"criteria": [CRITERION | {"name": "a\x00b"}]}, ["criteria", 0, "name"]),
        ({"criteria": [CRITERION | {"colour": 1}]}, ["criteria", 0, "colour"]),
        ({"description": "bell \x07"}, ["description"]),
        ({"scale_min": 5}, ["scale_min"]),
        ({"visibility": "team"}, ["visibility"]),
        ({"kind": "other"}, ["kind"]),
        ({"colour": "red"}, ["colour"]),
        ({"levels": 2.5}, ["levels"]),
        ({"scale_max": 10**400}, ["scale_max"]),
    ],
)
def test_a_refused_body_names_its_field(
    plain: Server, change: dict[str, JsonValue], loc: list[int | str]
) -> None:
    assert fields(plain.ask("alice", "PUT", RUBRIC, BODY | change)) == [["body", *loc]]
    assert codes(plain.ask("alice", "GET", RUBRIC)) == (404, "not_found")  # nothing was written


def test_every_refused_field_is_named(plain: Server) -> None:
    refused = plain.ask("alice", "PUT", RUBRIC, {"visibility": 1, "colour": 2})
    assert fields(refused) == [["body", "visibility"], ["body", "criteria"], ["body", "colour"]]


def test_resolve_answers_as_a_job_resolves(server: Server) -> None:
    server.write()
    server.write(description="Second.")
    resolved = server.ask("alice", "GET", "/api/rubrics/resolve?ref=alice/answer-quality").json()
    assert resolved.keys() == {"ref", "owner", "name", "version", "kind", "digest", "rubric"}
    assert (resolved["ref"], resolved["kind"]) == ("alice/answer-quality@2", "weighted")
    assert resolved["rubric"]["description"] == "Second."
    first = server.ask("alice", "GET", "/api/rubrics/resolve?ref=alice/answer-quality@1").json()
    assert (first["version"], first["rubric"]) == (1, BODY)
    assert first["digest"] == resolved["digest"]  # a description decides no score


@pytest.mark.parametrize(
    "ref", ["answer-quality", "", "alice/", "alice/a/b", "alice/a@0", "../etc/passwd", "resolve/a"]
)
def test_what_is_no_reference_is_refused(plain: Server, ref: str) -> None:
    refused = plain.ask("alice", "GET", "/api/rubrics/resolve", params={"ref": ref})
    assert fields(refused) == [["query", "ref"]]
    assert fields(plain.ask("alice", "GET", "/api/rubrics/resolve")) == [["query", "ref"]]


@pytest.mark.parametrize(
    "path",
    [
        "/api/rubrics/alice/..%2f..%2fetc%2fpasswd",
        "/api/rubrics/..%2f/x",
        "/api/rubrics/%2e%2e/x",
        "/api/rubrics/alice/%00",
        "/api/rubrics/alice/.hidden",
        "/api/rubrics/alice/a%20b",
        "/api/rubrics/alice/%ff",
        "/api/rubrics/alice/a%5cb",
        "/api/rubrics/alice/" + "a" * 129,
        "/api/rubrics/alice/name%0a",
        "/api/rubrics/resolve/name",
        "/api/rubrics/alice/name/revisions/0",
        "/api/rubrics/alice/name/revisions/99999999999999999999",
        "/api/rubrics/alice//revisions",
        "/api/rubrics/alice/name/",
        "/api/rubrics//",
    ],
)
def test_a_path_that_is_no_name_is_refused_or_not_there(plain: Server, path: str) -> None:
    for method in ("GET", "PUT"):
        answered = plain.ask("alice", method, path, BODY if method == "PUT" else None)
        assert codes(answered) in [
            (422, "invalid"),
            (404, "not_found"),
            (405, "method_not_allowed"),
        ]


def test_the_listing_has_mine_and_the_public_ones_by_page_and_search(server: Server) -> None:
    server.write("/api/rubrics/alice/one")
    server.write("/api/rubrics/alice/two", description="Answers in French.")
    server.write("/api/rubrics/bob/three", visibility="public")
    server.write("/api/rubrics/bob/four")

    def names(query: str) -> list[str]:
        listing = server.ask("alice", "GET", f"/api/rubrics{query}").json()
        return [item["name"] for item in listing["items"]]

    assert names("") == ["one", "two", "three"]
    assert names("?mine=true") == ["one", "two"]
    assert names("?search=fren") == ["two"]
    assert names("?search=%2a") == []
    assert names("?search=" + "+".join(f"word{number}" for number in range(16))) == []
    page = server.ask("alice", "GET", "/api/rubrics?limit=2").json()
    assert names(f"?limit=2&cursor={page['next']}") == ["three"]
    server.ask("alice", "PUT", "/api/rubrics/alice/one/archived", {"archived": True})
    assert names("") == ["two", "three"]
    assert names("?archived=true") == ["one"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=x",
        "search=%00",
        "search=" + "-".join("abcdefghijklmnopq"),
        "mine=perhaps",
        "cursor=AAAA",
        "serach=a",
    ],
)
def test_a_refused_query_names_its_parameter(plain: Server, query: str) -> None:
    refused = plain.ask("alice", "GET", f"/api/rubrics?{query}")
    assert fields(refused) == [["query", query.partition("=")[0]]]


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=50))
def test_any_printable_text_comes_back_as_it_was_written(server: Server, text: str) -> None:
    body = BODY | {"description": text, "criteria": [CRITERION | {"name": "n" + text.strip()}]}
    written = server.ask("alice", "PUT", RUBRIC, body)
    assert written.content.isascii()
    assert written.json()["rubric"]["description"] == text
    shown = server.ask("alice", "GET", RUBRIC).json()["rubric"]
    assert shown["criteria"][0]["name"] == "n" + text.strip()
