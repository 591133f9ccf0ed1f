import base64
import json
import logging
from typing import Any

import pytest
from httpx2 import Response

from starforge_rewards.registry.database import Database
from starforge_rewards.server.config import ServerConfig
from tests.server.asking import BODY, RUBRIC, Server, codes, fields, serving

PROMPT = "<|im_start|>user\nHow?<|im_end|>\n<|im_start|>assistant\n"
RUN = "grpo-run-0001"
ENVIRONMENT = {
    "name": "answers",
    "dataset": "rows.jsonl",
    "verifier": {"kind": "rubric", "ref": "alice/answer-quality"},
    "value": "normalized",
}
RLHF = f"/api/rewards/openrlhf/answers?run={RUN}"
SLIME = f"/api/rewards/slime/answers?run={RUN}"


@pytest.fixture(autouse=True)
def environments(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder with environments, where the server was started."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "environments" / "answers"
    folder.mkdir(parents=True)
    (folder / "environment.yaml").write_text(json.dumps(ENVIRONMENT))
    (folder / "rows.jsonl").write_text('{"id": "a", "prompt": "How?"}\n')
    monkeypatch.chdir(home)
    return folder


@pytest.fixture
def judged(server: Server) -> Server:
    server.write()
    return server


def body(*responses: str) -> dict[str, Any]:
    return {
        "query": [f"{PROMPT}{one}<|im_end|>\n" for one in responses],
        "prompts": [PROMPT] * len(responses),
        "labels": ["So."] * len(responses),
    }


def by_password(server: Server, who: str, path: str, json: Any) -> Response:
    """As aiohttp asks for a URL with a password."""
    said = base64.b64encode(f"token:{server.tokens[who]}".encode()).decode()
    return server.ask("", "POST", path, json, headers={"Authorization": f"Basic {said}"})


def test_openrlhf_gets_lists_of_rewards_scores_and_logged_numbers(judged: Server) -> None:
    answered = by_password(judged, "alice", RLHF, body("An answer.", ""))
    assert answered.json() == {
        "rewards": pytest.approx([23 / 30, 0.0]),
        "scores": pytest.approx([23 / 30, 0.0]),
        "extra_logs": {"sf_valid": [1.0, 1.0]},
    }


def test_slime_gets_a_bare_number(judged: Server) -> None:
    said = {"prompt": "How?", "response": "An answer.", "label": None}
    answered = by_password(judged, "alice", SLIME, said)
    assert answered.headers["content-type"] == "application/json"
    assert answered.json() == pytest.approx(23 / 30)


def test_a_label_may_be_a_row(judged: Server) -> None:
    said = {"prompt": PROMPT, "response": "An answer.", "label": {"prompt": "How?", "x": 1}}
    assert judged.ask("alice", "POST", f"{SLIME}&labels=row", said).status_code == 200


def test_a_failed_judgement_is_a_502_and_no_number_for_anybody_in_the_call(judged: Server) -> None:
    answered = judged.ask("alice", "POST", RLHF, body("An answer.", "late"))
    assert codes(answered) == (502, "judge_failed")
    (detail,) = answered.json()["detail"]
    assert (detail["loc"], detail["type"]) == (["judge", 1], "timeout")


def test_a_declared_stand_in_is_marked(judged: Server, environments: Any) -> None:
    said = ENVIRONMENT | {"on_failure": "group_median"}
    (environments / "environment.yaml").write_text(json.dumps(said))
    answered = judged.ask("alice", "POST", RLHF, body("An answer.", "", "late")).json()
    assert answered["rewards"] == pytest.approx([23 / 30, 0.0, 23 / 60])
    assert answered["extra_logs"]["sf_valid"] == [1.0, 1.0, 0.0]


def test_a_run_keeps_the_rubric_that_it_began_with_also_on_a_new_server(judged: Server) -> None:
    first = judged.ask("alice", "POST", RLHF, body("An answer.")).json()
    criteria: Any = BODY["criteria"]
    judged.write(criteria=[{**one, "weight": 1.0} for one in criteria])
    assert judged.ask("alice", "POST", RLHF, body("An answer.")).json() == first
    judged.app.state.standings = None
    del judged.app.state.standings
    assert judged.ask("alice", "POST", RLHF, body("An answer.")).json() == first
    other = RLHF.replace(RUN, "grpo-run-0002")
    assert judged.ask("alice", "POST", other, body("An answer.")).json() != first
    record = judged.ask("alice", "GET", f"/api/runs/{RUN}").json()
    assert (record["role"], [one["rubric"] for one in record["citations"]]) == (
        "training_reward",
        ["alice/answer-quality@1"],
    )


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"Authorization": "Basic"},
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic dG9rZW46"},
        {"Authorization": "Basic dG9rZW46d3Jvbmc="},
        {"Authorization": "Bearer wrong"},
    ],
)
def test_without_a_valid_token_nothing_is_said(server: Server, said: dict[str, str]) -> None:
    for path in (RLHF, "/api/rewards/openrlhf/answers?run=x", "/api/rewards/slime/nowhere"):
        answered = server.ask("", "POST", path, {"query": 3}, headers=said)
        assert codes(answered) == (401, "unauthorized")


def test_a_wrong_parameter_is_told_to_one_who_brings_a_token_as_password(server: Server) -> None:
    answered = by_password(server, "alice", "/api/rewards/slime/answers?run=x&other=1", {})
    assert fields(answered) == [["query", "run"], ["query", "other"]]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        (body() | {"labels": []}, ["body", "query"]),
        (body("a") | {"labels": []}, ["body", "query"]),
        (body("a") | {"prompts": ["other"]}, ["body", "query"]),
        ({"query": ["a"], "prompts": ["a"]}, ["body", "labels"]),
    ],
)
def test_a_wrong_body_is_refused_with_its_field(
    judged: Server, said: dict[str, Any], field: list[str]
) -> None:
    assert fields(judged.ask("alice", "POST", RLHF, said)) == [field]


@pytest.mark.parametrize("name", ["nowhere", "..", "%2e%2e%2fanswers", ".hidden"])
def test_an_environment_is_a_name_and_no_path(judged: Server, name: str) -> None:
    path = f"/api/rewards/slime/{name}?run={RUN}"
    answered = judged.ask("alice", "POST", path, {"prompt": "p", "response": "r"})
    assert codes(answered) == (404, "not_found")


def test_anothers_private_rubric_is_not_there(judged: Server) -> None:
    answered = judged.ask("bob", "POST", RLHF, body("An answer."))
    assert codes(answered) == (404, "not_found")
    assert judged.ask("alice", "GET", RUBRIC).status_code == 200


def test_too_many_at_once_are_refused(database: Database) -> None:
    with serving(database, ServerConfig(most_items=2)) as server:
        server.write()
        assert fields(server.ask("alice", "POST", RLHF, body("a", "b", "c"))) == [["body", "query"]]


def test_a_token_in_the_url_is_in_no_log(judged: Server, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert by_password(judged, "alice", RLHF, body("late")).status_code == 502
        assert by_password(judged, "alice", RLHF, body("An answer.")).status_code == 200
    assert judged.tokens["alice"] not in caplog.text
