from contextlib import closing

import pytest
from starlette.testclient import TestClient

from starforge_rewards.judge.config import PoolJudge
from starforge_rewards.registry.database import Database
from starforge_rewards.server.app import create_app
from starforge_rewards.server.config import ServerConfig
from tests import postgresql
from tests.server.asking import BODY, RUBRIC, Server, codes, serving


def test_a_server_that_can_serve_says_so_to_anybody(plain: Server) -> None:
    assert plain.client.get("/healthz").json() == {"status": "ok"}
    assert plain.client.get("/readyz").json() == {"status": "ready"}


def test_without_its_pool_a_server_is_not_ready_and_keeps_rubrics_all_the_same(
    plain: Server,
) -> None:
    pool = PoolJudge(kind="pool", name="nowhere")
    app = create_app(ServerConfig(), plain.database, judge_config=pool)
    with TestClient(app) as client:
        server = Server(app, client, plain.database)
        assert codes(client.get("/readyz")) == (503, "unavailable")
        call = {"rubric": BODY, "prompt": "p", "response": "r"}
        assert codes(server.ask("alice", "POST", "/api/judge/score", call)) == (503, "unavailable")
        assert server.write() == 1
        assert client.get("/healthz").status_code == 200


@pytest.mark.postgres
def test_a_server_outlives_its_database_and_uses_it_again() -> None:
    if postgresql.program("initdb") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with (
        postgresql.server() as kept,
        closing(Database.open(kept.new_database())) as database,
        serving(database) as server,
    ):
        server.write()
        kept.stop()
        for path in (RUBRIC, "/readyz"):
            assert codes(server.ask("alice", "GET", path)) == (503, "unavailable")
        assert codes(server.ask("alice", "PUT", RUBRIC, BODY)) == (503, "unavailable")
        assert server.ask("alice", "GET", "/healthz").status_code == 200
        kept.start()
        assert server.ask("alice", "GET", "/readyz").status_code == 200
        assert server.ask("alice", "GET", RUBRIC).json()["version"] == 1
