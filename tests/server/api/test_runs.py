import pytest
from pydantic import JsonValue

from starforge_rewards.run import JudgeRecord
from tests.server.asking import RUBRIC, Server, codes, fields

RUN = "/api/runs/run-00000001"
BODY: dict[str, JsonValue] = {
    "role": "benchmark_score",
    "runner": "judge",
    "subject": "model-a",
    "judge": JudgeRecord.of({"model": "m"}).model_dump(),
    "citations": ["alice/answer-quality@1"],
}
ROW: dict[str, JsonValue] = {
    "key": "row-1",
    "position": 0,
    "outcome": "scored",
    "total": 4.0,
    "normalized": 0.8,
}


def test_a_run_records_itself_and_is_shown_in_usage_with_its_role(server: Server) -> None:
    server.write()
    first = server.ask("alice", "PUT", RUN, BODY)
    assert first.status_code == 200
    assert first.json()["owner"] == "alice"
    assert server.ask("alice", "PUT", RUN, BODY).json() == first.json()
    outcome = {"rows": 1, "scored": 1, "score": 4.0, "normalized": 0.8}
    server.ask("alice", "PUT", RUN, BODY | {"status": "finished", "outcome": outcome})
    shown = server.ask("alice", "GET", RUN).json()
    assert shown["citations"][0]["rubric"] == "alice/answer-quality@1"
    (used,) = server.ask("alice", "GET", f"{RUBRIC}/usage").json()["usage"]
    assert {k: used[k] for k in ("version", "run", "role", "runner", "status", "score")} == {
        "version": 1,
        "run": "run-00000001",
        "role": "benchmark_score",
        "runner": "judge",
        "status": "finished",
        "score": 4.0,
    }


def test_a_run_is_its_recorders_and_administrators(server: Server) -> None:
    server.write(visibility="public")
    server.ask("alice", "PUT", RUN, BODY)
    assert server.ask("root", "GET", RUN).status_code == 200
    absent = server.ask("bob", "GET", RUN.replace("1", "2"))
    private = server.ask("bob", "GET", RUN)
    assert codes(private) == codes(absent) == (404, "not_found")
    assert private.content == absent.content.replace(b"00000002", b"00000001")
    assert codes(server.ask("bob", "PUT", RUN, BODY)) == (409, "version_conflict")
    assert server.ask("bob", "GET", f"{RUBRIC}/usage").json() == {"usage": []}
    assert server.ask("bob", "GET", "/api/runs").json()["items"] == []


def test_a_run_keeps_its_role_and_judge(server: Server) -> None:
    server.write()
    server.ask("alice", "PUT", RUN, BODY)
    other = server.ask("alice", "PUT", RUN, BODY | {"subject": "model-b"})
    assert codes(other) == (409, "version_conflict")


def test_a_citation_that_is_not_readable_is_not_found(server: Server) -> None:
    assert codes(server.ask("alice", "PUT", RUN, BODY)) == (404, "not_found")
    assert codes(server.ask("alice", "GET", RUN)) == (404, "not_found")


def test_runs_are_listed_newest_first_by_what_is_asked(server: Server) -> None:
    server.write()
    for number in (1, 2, 3):
        server.ask("alice", "PUT", f"/api/runs/run-0000000{number}", BODY)
    server.ask("alice", "PUT", "/api/runs/run-00000004", {"role": "gate", "status": "failed"})

    def ids(query: str) -> list[str]:
        listed = server.ask("alice", "GET", f"/api/runs?{query}").json()
        return [item["id"][-1] for item in listed["items"]]

    assert ids("") == ["4", "3", "2", "1"]
    assert ids("role=gate") == ids("status=failed") == ["4"]
    assert ids("rubric=alice/answer-quality@1") == ["3", "2", "1"]
    assert ids("rubric=alice/answer-quality@2") == []
    page = server.ask("alice", "GET", "/api/runs?limit=3").json()
    assert ids(f"limit=3&cursor={page['next']}") == ["1"]


def test_rows_of_results_are_kept_by_key_and_read_by_position(server: Server) -> None:
    server.write()
    server.ask("alice", "PUT", RUN, BODY)
    failed = {"key": "row-2", "position": 1, "outcome": "unscored", "cause": "timeout"}
    kept = server.ask("alice", "POST", f"{RUN}/results", {"results": [ROW, failed]})
    assert kept.json() == {"kept": 2}
    server.ask("alice", "POST", f"{RUN}/results", {"results": [ROW | {"total": 5.0}]})
    rows = server.ask("alice", "GET", f"{RUN}/results").json()["results"]
    assert [(row["key"], row["total"], row["cause"]) for row in rows] == [
        ("row-1", 5.0, None),
        ("row-2", None, "timeout"),
    ]
    after = server.ask("alice", "GET", f"{RUN}/results?after=0&limit=1").json()["results"]
    assert after == rows[1:]
    assert codes(server.ask("bob", "GET", f"{RUN}/results")) == (404, "not_found")
    other = server.ask("root", "POST", f"{RUN}/results", {"results": [ROW]})
    assert codes(other) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "body", "loc"),
    [
        ("PUT", RUN, BODY | {"role": "training"}, ["body", "role"]),
        ("PUT", RUN, BODY | {"runner": None}, ["body", "runner"]),
        ("PUT", RUN, BODY | {"citations": ["alice/a"]}, ["body", "citations", 0]),
        ("PUT", RUN, BODY | {"citations": ["a"]}, ["body", "citations", 0]),
        ("PUT", RUN, BODY | {"colour": 1}, ["body", "colour"]),
        ("PUT", "/api/runs/short", BODY, ["path", "run_id"]),
        (
            "POST",
            f"{RUN}/results",
            {"results": [ROW | {"position": 10**30}]},
            ["body", "results", 0, "position"],
        ),
        (
            "POST",
            f"{RUN}/results",
            {"results": [ROW | {"total": None}]},
            ["body", "results", 0, "total"],
        ),
        ("POST", f"{RUN}/results", {"results": [ROW] * 501}, ["body", "results"]),
        ("GET", f"{RUN}/results?after=99999999999", None, ["query", "after"]),
        ("GET", "/api/runs?role=%00", None, ["query", "role"]),
        ("GET", "/api/runs?rubric=bare", None, ["query", "rubric"]),
        ("GET", "/api/runs?cursor=AAAA", None, ["query", "cursor"]),
    ],
)
def test_a_refused_run_names_its_field(
    plain: Server, method: str, path: str, body: JsonValue, loc: list[int | str]
) -> None:
    assert fields(plain.ask("alice", method, path, body)) == [loc]
