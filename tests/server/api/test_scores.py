from typing import Any

import pytest
from pydantic import JsonValue

from starforge_rewards.run import JudgeRecord
from tests.server.api.test_runs import BODY, RUN
from tests.server.asking import Server, codes, fields

CRITERION: dict[str, JsonValue] = {
    "value": 4.0,
    "normalized": 0.8,
    "label": "4",
    "origin": "asked",
    "reason": "It is right.",
}


NAMES = ("Factually correct", "Answers the question asked", "Cites the handbook")
JUDGE = JudgeRecord.of({"model": "m"}).digest


def keyed(number: int = 0, **changes: JsonValue) -> dict[str, Any]:
    key = {"rubric": "alice/answer-quality@1", "evidence": f"{number:064x}", "repeat": 0}
    score = {
        "total": 4.0,
        "normalized": 0.8,
        "raw": 0.8,
        "criteria": dict.fromkeys(NAMES, CRITERION),
    }
    return {"key": key, "score": score | changes}


@pytest.fixture
def run(server: Server) -> Server:
    server.write()
    assert server.ask("alice", "PUT", RUN, BODY).status_code == 200
    return server


def test_scores_that_a_run_used_are_kept_found_again_and_shown(run: Server) -> None:
    scores = [keyed(number) for number in range(3)]
    for _ in range(2):  # the same again changes nothing
        kept = run.ask("alice", "POST", f"{RUN}/scores", {"scores": scores})
        assert kept.json() == {"kept": 3}
    keys = [one["key"] for one in scores] + [keyed(9)["key"]]
    wanted = {"judge": JUDGE, "keys": keys}
    found = run.ask("alice", "POST", "/api/scores/find", wanted).json()["scores"]
    assert sorted(one["key"]["evidence"] for one in found) == [f"{n:064x}" for n in range(3)]
    assert {one["score"]["criteria"][NAMES[0]]["origin"] for one in found} == {"ledger"}
    page = run.ask("alice", "GET", f"{RUN}/scores?limit=2").json()
    rest = run.ask("alice", "GET", f"{RUN}/scores?limit=2&cursor={page['next']}").json()
    assert len(page["items"]) == 2
    assert (len(rest["items"]), rest["next"]) == (1, None)


def test_nobody_finds_what_another_recorded(run: Server) -> None:
    run.ask("alice", "POST", f"{RUN}/scores", {"scores": [keyed()]})
    wanted = {"judge": JUDGE, "keys": [keyed()["key"]]}
    assert run.ask("bob", "POST", "/api/scores/find", wanted).json() == {"scores": []}
    assert codes(run.ask("bob", "GET", f"{RUN}/scores")) == (404, "not_found")
    other = run.ask("bob", "POST", f"{RUN}/scores", {"scores": [keyed()]})
    assert codes(other) == (404, "not_found")


def test_a_score_of_a_rubric_that_the_run_does_not_cite_is_refused(run: Server) -> None:
    other = keyed()
    other["key"]["rubric"] = "alice/answer-quality@2"
    refused = run.ask("alice", "POST", f"{RUN}/scores", {"scores": [other]})
    assert fields(refused) == [["body", "scores"]]


@pytest.mark.parametrize(
    ("score", "loc"),
    [
        (keyed(total="NaN"), [0]),
        (keyed(raw="inf"), [0]),
        (keyed(criteria={"Right": CRITERION | {"value": "nan"}}), [0]),
        (keyed(total="high"), [0, "score", "total"]),
        (keyed(colour=1), [0, "score", "colour"]),
    ],
)
def test_a_score_is_finite_numbers(
    plain: Server, score: dict[str, Any], loc: list[int | str]
) -> None:
    refused = plain.ask("alice", "POST", f"{RUN}/scores", {"scores": [score]})
    assert fields(refused) == [["body", "scores", *loc]]


def test_a_batch_has_at_most_500_items(plain: Server) -> None:
    refused = plain.ask("alice", "POST", f"{RUN}/scores", {"scores": [keyed()] * 501})
    assert fields(refused) == [["body", "scores"]]
    wanted = {"judge": JUDGE, "keys": [keyed()["key"]] * 501}
    assert fields(plain.ask("alice", "POST", "/api/scores/find", wanted)) == [["body", "keys"]]


@pytest.mark.parametrize("repeat", [-1, 2**31, 10**40])
def test_a_repeat_is_a_number_that_a_database_holds(plain: Server, repeat: int) -> None:
    key = keyed()["key"] | {"repeat": repeat}
    refused = plain.ask("alice", "POST", "/api/scores/find", {"judge": JUDGE, "keys": [key]})
    assert fields(refused) == [["body", "keys", 0, "repeat"]]
