"""A server in this process, and people who ask it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from httpx2 import Response
from pydantic import JsonValue
from sqlalchemy import event
from starlette.testclient import TestClient

from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.server.app import create_app
from starforge_rewards.server.config import ServerConfig

JUDGE = ScriptedConfig(kind="scripted", function="tests.server.scripted_judge:judge")
RUBRIC = "/api/rubrics/alice/answer-quality"
BODY: dict[str, JsonValue] = {
    "description": "Scoring customer-support answers.",
    "visibility": "private",
    "scale_min": 0,
    "scale_max": 5,
    "criteria": [
        {
            "name": "Factually correct",
            "weight": 3.0,
            "description": "Every claim about the product is true and current.",
        },
        {
            "name": "Answers the question asked",
            "weight": 2.0,
            "description": "Addresses the actual problem of the customer, not an adjacent one.",
        },
        {
            "name": "Cites the handbook",
            "weight": 1.0,
            "description": "Points to the section a human could check.",
        },
    ],
}
"""As the specification has it."""


class Server:
    """A running app; `alice` and `bob` are users, `root` administers, `nobody` has no token."""

    def __init__(self, app: FastAPI, client: TestClient, database: Database) -> None:
        self.app, self.client, self.database = app, client, database
        tokens = Tokens(database)
        made = {who: tokens.create(who, admin=who == "root") for who in ("alice", "bob", "root")}
        self.tokens = {who: new.token for who, new in made.items()}

    def ask(self, who: str, method: str, path: str, json: Any = None, **more: Any) -> Response:
        """One request; `json` is its body."""
        headers = dict(more.pop("headers", {}))
        if who in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        if json is not None:
            more["json"] = json
        return self.client.request(method, path, headers=headers, **more)

    def write(self, path: str = RUBRIC, **changes: JsonValue) -> int:
        """Writes a rubric as its owner; the version that it has then."""
        done = self.ask(path.split("/")[3], "PUT", path, BODY | changes)
        assert done.status_code in (200, 201), done.text
        version: int = done.json()["version"]
        return version

    @contextmanager
    def queries(self) -> Iterator[list[str]]:
        """The statements that the database is asked inside the block."""
        asked: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
            asked.append(statement)

        event.listen(self.database.engine, "before_cursor_execute", note)
        try:
            yield asked
        finally:
            event.remove(self.database.engine, "before_cursor_execute", note)


@contextmanager
def serving(
    database: Database, config: ServerConfig | None = None, judge: ScriptedConfig = JUDGE
) -> Iterator[Server]:
    """A server with the scripted judge."""
    app = create_app(config or ServerConfig(), database, judge_config=judge)
    with TestClient(app) as client:
        yield Server(app, client, database)


def codes(answered: Response) -> tuple[int, str]:
    """Status and code of a failure, whose body has the one form."""
    body = answered.json()
    assert body.keys() == {"detail", "code"}
    assert body["detail"]
    for one in body["detail"]:
        assert one.keys() == {"msg", "loc", "type"}
        assert one["loc"][0] in ("body", "path", "query", "header", "judge", "server")
    return answered.status_code, body["code"]


def fields(answered: Response) -> list[list[int | str]]:
    """Where a refused request is wrong."""
    assert codes(answered) == (422, "invalid")
    return [one["loc"] for one in answered.json()["detail"]]
