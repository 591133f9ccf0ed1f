import sqlite3
from contextlib import closing

import pytest
from starlette.testclient import TestClient

from starforge_rewards import errors
from starforge_rewards.server.api.errors import TABLE
from starforge_rewards.server.app import create_app
from starforge_rewards.server.config import ServerConfig
from tests.server.asking import JUDGE, RUBRIC, Server, codes


def test_every_error_that_a_request_can_meet_is_in_the_table() -> None:
    ours = [
        kind
        for kind in errors.StarforgeError.__subclasses__()
        if kind.__module__ == "starforge_rewards.errors"
    ]
    assert set(ours) <= TABLE.keys()


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/rubrics/", "/docs", "/x"])
def test_an_unknown_path_has_the_body_of_every_failure(plain: Server, path: str) -> None:
    assert codes(plain.ask("alice", "GET", path)) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", RUBRIC, "GET, HEAD, PUT"),
        ("HEAD", f"{RUBRIC}/archived", "PUT"),
        ("PUT", "/api/rubrics/resolve", "GET, HEAD"),
        ("PATCH", "/api/runs/run-00000001", "GET, HEAD, PUT"),
        ("GET", "/api/judge/score", "POST"),
        ("OPTIONS", "/api/runs/run-00000001/scores", "GET, HEAD, POST"),
        ("POST", "/healthz", "GET, HEAD"),
    ],
)
def test_a_method_that_is_not_there_is_told_all_that_are(
    plain: Server, method: str, path: str, allow: str
) -> None:
    answered = plain.ask("alice", method, path)
    assert answered.status_code == 405
    assert answered.headers["allow"] == allow
    if method != "HEAD":
        assert codes(answered) == (405, "method_not_allowed")


def test_a_mistake_of_ours_says_nothing_of_itself(plain: Server) -> None:
    app = create_app(ServerConfig(), plain.database, judge_config=JUDGE)

    @app.get("/api/mistake")
    def mistake() -> None:
        raise LookupError("a secret")

    with TestClient(app, raise_server_exceptions=False) as client:
        answered = client.get("/api/mistake")
    assert answered.status_code == 500
    assert answered.json()["code"] == "internal"
    assert "secret" not in answered.text


def test_a_database_that_cannot_be_used_is_503_until_it_can(plain: Server) -> None:
    path = plain.database.engine.url.database
    assert path is not None
    with closing(sqlite3.connect(path)) as beside:
        beside.execute("ALTER TABLE tokens RENAME TO away")
        for asked in ("/api/rubrics", "/readyz"):
            answered = plain.ask("alice", "GET", asked)
            assert codes(answered) == (503, "unavailable")
            assert int(answered.headers["retry-after"]) > 0
        assert plain.ask("alice", "GET", "/healthz").status_code == 200
        beside.execute("ALTER TABLE away RENAME TO tokens")
    for asked in ("/api/rubrics", "/readyz"):
        assert plain.ask("alice", "GET", asked).status_code == 200
