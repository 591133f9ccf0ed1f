from collections.abc import Iterator
from typing import Any

import pytest

from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.registry.database import Database
from starforge_rewards.run import JudgeRecord
from starforge_rewards.server.config import ServerConfig
from tests.server.asking import BODY, RUBRIC, Server, codes, fields, serving

SCORE = "/api/judge/score"
MANY = [{"name": f"Right {number}", "weight": 1} for number in range(100)]
REF = "alice/answer-quality"


def call(response: Any = "An answer.", **more: Any) -> dict[str, Any]:
    return {"rubric": REF, "prompt": "How do I reset it?", "response": response} | more


def items(*responses: str, rubric: Any = REF) -> dict[str, Any]:
    each = [{"id": r, "prompt": "p", "response": r} for r in responses]
    return {"rubric": rubric, "items": each}


@pytest.fixture
def judged(server: Server) -> Server:
    server.write()
    return server


def test_a_single_call_gets_the_weighted_total_under_the_rubrics_version(judged: Server) -> None:
    said = judged.ask("alice", "POST", SCORE, call()).json()
    assert (said["outcome"], said["rubric"], said["version"]) == ("scored", f"{REF}@1", 1)
    assert said["total"] == pytest.approx(23 / 6)
    assert said["normalized"] == pytest.approx(23 / 30)
    assert {name: one["value"] for name, one in said["criteria"].items()} == {
        "Factually correct": 5.0,
        "Answers the question asked": 4.0,
        "Cites the handbook": 0.0,
    }
    assert said["unversioned"] is False


def test_a_call_is_recorded_as_a_run_with_its_scores(judged: Server) -> None:
    said = judged.ask("alice", "POST", SCORE, call()).json()
    run = judged.ask("alice", "GET", f"/api/runs/{said['run']}").json()
    assert (run["role"], run["status"]) == ("adhoc_score", "finished")
    assert run["outcome"]["score"] == said["total"]
    assert run["judge"]["digest"] == said["judge"]
    (used,) = judged.ask("alice", "GET", f"/api/runs/{said['run']}/scores").json()["items"]
    assert used["score"]["total"] == said["total"]
    (row,) = judged.ask("alice", "GET", f"/api/runs/{said['run']}/results").json()["results"]
    assert (row["total"], row["evidence"]) == (said["total"], used["key"]["evidence"])
    (cited,) = judged.ask("alice", "GET", f"{RUBRIC}/usage").json()["usage"]
    assert (cited["run"], cited["role"], cited["version"]) == (said["run"], "adhoc_score", 1)
    again = judged.ask("alice", "POST", SCORE, call()).json()
    assert {one["origin"] for one in again["criteria"].values()} == {"cached"}
    assert again["total"] == said["total"]


def test_a_call_under_the_callers_own_run_leaves_the_run_to_them(judged: Server) -> None:
    run = "own-run-0001"
    assert judged.ask("alice", "POST", SCORE, call(run=run)).json()["run"] == run
    judged.write(description="Second.")
    assert judged.ask("alice", "POST", SCORE, call(run=run)).json()["run"] == run
    record = judged.ask("alice", "GET", f"/api/runs/{run}").json()
    assert (record["status"], record["outcome"]) == ("running", None)
    assert [one["rubric"] for one in record["citations"]] == [f"{REF}@1", f"{REF}@2"]


def test_a_run_of_another_judge_or_owner_is_a_conflict(judged: Server) -> None:
    other = JudgeRecord.of({}).model_dump()
    judged.ask("alice", "PUT", "/api/runs/own-run-0001", {"role": "gate", "judge": other})
    refused = judged.ask("alice", "POST", SCORE, call(run="own-run-0001"))
    assert codes(refused) == (409, "version_conflict")
    judged.write(visibility="public")
    judged.ask("bob", "POST", SCORE, call(run="bobs-run-0001"))
    refused = judged.ask("alice", "POST", SCORE, call(run="bobs-run-0001"))
    assert codes(refused) == (409, "version_conflict")


def test_a_batch_has_one_result_for_each_item_in_order(judged: Server) -> None:
    said = judged.ask("alice", "POST", SCORE, items("one", "late", "two")).json()
    first, failed, last = said["results"]
    assert [one["id"] for one in said["results"]] == ["one", "late", "two"]
    assert first["total"] == last["total"] == pytest.approx(23 / 6)
    assert (failed["outcome"], failed["cause"]) == ("unscored", "timeout")
    assert not {"total", "normalized", "raw"} & failed.keys()
    run = judged.ask("alice", "GET", f"/api/runs/{said['run']}").json()
    assert (run["outcome"]["scored"], run["outcome"]["unscored"]) == (2, {"timeout": 1})


@pytest.mark.parametrize(("response", "cause"), [("late", "timeout"), ("odd", "unparseable")])
def test_a_judge_failure_is_a_502_with_its_cause_and_no_number(
    judged: Server, response: str, cause: str
) -> None:
    failed = judged.ask("alice", "POST", SCORE, call(response))
    assert codes(failed) == (502, "judge_failed")
    (detail,) = failed.json()["detail"]
    assert (detail["type"], detail["loc"]) == (cause, ["judge", "Factually correct"])
    assert b"total" not in failed.content
    batch = judged.ask("alice", "POST", SCORE, items(response, response + "!"))
    assert batch.status_code == 200
    batch = judged.ask("alice", "POST", SCORE, items(response, response))
    assert codes(batch) == (502, "judge_failed")
    assert [one["type"] for one in batch.json()["detail"]] == [cause, cause]


def test_a_judge_that_raises_is_a_502_and_its_run_has_failed(judged: Server) -> None:
    failed = judged.ask("alice", "POST", SCORE, call("broken"))
    assert codes(failed) == (502, "judge_failed")
    (run,) = judged.ask("alice", "GET", "/api/runs").json()["items"]
    assert run["status"] == "failed"


def test_an_inline_rubric_is_unversioned_and_leaves_no_trace(judged: Server) -> None:
    said = judged.ask("alice", "POST", SCORE, call(rubric=BODY, run="own-run-0001")).json()
    assert said["total"] == pytest.approx(23 / 6)
    assert (said["rubric"], said["version"], said["run"]) == (None, None, None)
    assert said["unversioned"] is True
    assert judged.ask("alice", "GET", "/api/runs").json()["items"] == []


def test_an_empty_response_is_decided_by_the_declared_rule(judged: Server) -> None:
    said = judged.ask("alice", "POST", SCORE, call(" ")).json()
    assert (said["total"], said["decided"]) == (0.0, "empty_response")


def test_an_empty_response_without_a_declared_score_has_none(database: Database) -> None:
    judge = ScriptedConfig(
        kind="scripted",
        function="tests.server.scripted_judge:judge",
        empty_response="unscored",
    )
    with serving(database, judge=judge) as server:
        server.write()
        failed = server.ask("alice", "POST", SCORE, call(""))
        assert codes(failed) == (502, "judge_failed")
        assert failed.json()["detail"][0]["type"] == "empty_response"
        assert server.ask("alice", "GET", "/api/runs").json()["items"] == []


def test_a_conversation_is_scored_as_one(judged: Server) -> None:
    messages = [{"role": "assistant", "content": "Yes.", "tool_calls": [{"name": "look"}]}]
    said = judged.ask("alice", "POST", SCORE, call(messages, reference="r", context="c"))
    assert said.status_code == 200


def test_a_private_rubric_of_another_is_not_found(judged: Server) -> None:
    private = judged.ask("bob", "POST", SCORE, call())
    assert codes(private) == (404, "not_found")
    assert private.json()["detail"][0]["loc"] == ["body", "rubric"]
    absent = judged.ask("bob", "POST", SCORE, call(rubric="alice/another-quality"))
    assert absent.content == private.content.replace(b"answer", b"another")


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        (call(rubric="bare"), ["rubric"]),
        (call(rubric=3), ["rubric"]),
        (call(rubric=BODY | {"criteria": []}), ["rubric", "criteria"]),
        (call(rubric=BODY | {"levels": 1}), ["rubric", "levels"]),
        (call(rubric=BODY, response=3), ["response"]),
        (call(rubric=BODY, run="x"), ["run"]),
        (call(rubric=BODY, colour=1), ["colour"]),
        (items(rubric=BODY), ["items"]),
        (items(*["r"] * 257, rubric=BODY), ["items"]),
        (items(*["r"] * 201, rubric={"criteria": MANY}), ["rubric"]),
        ({"rubric": BODY, "items": [{"prompt": "p"}]}, ["items", 0, "response"]),
        (items("r", rubric=BODY) | {"prompt": "p"}, ["prompt"]),
    ],
)
def test_a_refused_call_names_its_field(
    plain: Server, body: dict[str, Any], loc: list[int | str]
) -> None:
    found = fields(plain.ask("alice", "POST", SCORE, body))
    assert found == [["body", *loc]] * len(found)  # a field of two kinds is told of each


@pytest.fixture
def small(database: Database) -> Iterator[Server]:
    """A server that scores three rollouts of a user in a minute."""
    with serving(database, ServerConfig(judge_per_minute=3)) as server:
        server.write(visibility="public")
        yield server


def test_a_user_whose_bucket_is_empty_is_told_when_to_come_again(small: Server) -> None:
    assert small.ask("alice", "POST", SCORE, items("a", "b")).status_code == 200
    limited = small.ask("alice", "POST", SCORE, items("c", "d"))
    assert codes(limited) == (429, "rate_limited")
    assert 1 <= int(limited.headers["retry-after"]) <= 20
    assert small.ask("bob", "POST", SCORE, items("c", "d")).status_code == 200


def test_a_batch_that_no_bucket_holds_is_refused(small: Server) -> None:
    refused = small.ask("alice", "POST", SCORE, items("a", "b", "c", "d"))
    assert fields(refused) == [["body", "items"]]
