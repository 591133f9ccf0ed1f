"""`python -m tests.performance.resolve_apps ours|bare URL`: one of two servers that resolve a ref.

`bare` is one FastAPI route on the database's own driver: the same two SELECTs, each row fetched,
and the same bytes returned. Both run under uvicorn with the product's logging, and print a port.
"""

import json
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any

import psycopg
import uvicorn
from fastapi import FastAPI, Header, Query, Response

from starforge_rewards.registry.database import Database
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.server.app import create_app
from starforge_rewards.server.config import ServerConfig
from starforge_rewards.server.process import LOGGING

WHO = (
    "SELECT tokens.id, tokens.owner, tokens.admin, tokens.label, tokens.digest, "
    "tokens.created_at, tokens.revoked_at FROM tokens WHERE tokens.id = ?"
)
RUBRIC = (
    "SELECT rubrics.owner, rubrics.name, rubrics.kind, rubrics.archived, revisions.rubric_id, "
    "revisions.version, revisions.digest, revisions.body, revisions.author, revisions.created_at, "
    "revisions.write_key FROM revisions JOIN rubrics ON revisions.rubric_id = rubrics.id "
    "WHERE rubrics.owner = ? AND rubrics.name = ? AND (rubrics.visibility = 'public' "
    "OR rubrics.owner = ?) AND revisions.version = rubrics.version"
)
Fetch = Callable[[str, tuple[object, ...]], Any]


def bare(url: str) -> FastAPI:
    """The route alone."""
    app, fetch = FastAPI(), _fetch(url)

    @app.get("/api/rubrics/resolve")
    def resolve(ref: Annotated[str, Query()], authorization: Annotated[str, Header()]) -> Response:
        user = fetch(WHO, (authorization[10:26],))
        named = Ref.parse(ref)
        row = fetch(RUBRIC, (named.owner, named.name, user[1]))
        said = {
            "ref": f"{row[0]}/{row[1]}@{row[5]}",
            "owner": row[0],
            "name": row[1],
            "version": row[5],
            "kind": row[2],
            "digest": row[6],
            "rubric": json.loads(row[7]),
        }
        return Response(json.dumps(said, separators=(",", ":")), media_type="application/json")

    return app


def _fetch(url: str) -> Fetch:
    """One row, on a connection of the thread's own."""
    mine = threading.local()

    def sqlite(text: str, given: tuple[object, ...]) -> Any:
        if not hasattr(mine, "connection"):
            mine.connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        return mine.connection.execute(text, given).fetchone()

    def postgresql(text: str, given: tuple[object, ...]) -> Any:
        if not hasattr(mine, "connection"):
            mine.connection = psycopg.connect(url, autocommit=True)
        return mine.connection.execute(text.replace("?", "%s").encode(), given).fetchone()

    return sqlite if url.startswith("sqlite") else postgresql


def main() -> None:
    kind, url = sys.argv[1:]
    app = bare(url) if kind == "bare" else create_app(ServerConfig(), Database.open(url))
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(app, lifespan="on", log_config=LOGGING, server_header=False)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
