"""`resolve` over HTTP, beside a bare FastAPI route with the same SELECTs and the same bytes.

Both run in uvicorn in this process and answer one client over one kept connection each. The bare
route asks through SQLAlchemy, as the registry does; that through the driver alone is shown besides.
"""

import http.client
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import uvicorn
from fastapi import FastAPI, Header
from sqlalchemy import event, text
from starlette.responses import Response

from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.server.app import create_app
from starforge_rewards.server.config import ServerConfig
from starforge_rewards.server.process import listen
from tests.performance.ratio import Ratio, alternate, at_most, seconds
from tests.performance.registry_put import REF, rubric

JUDGE = ScriptedConfig(kind="scripted", function="tests.server.scripted_judge:judge")
OURS, BARE = f"/api/rubrics/resolve?ref={REF}", f"/resolve?ref={REF}"
USER = User(owner="alice")


class Size(NamedTuple):
    pairs: int
    calls: int
    """Of each pair."""


FULL = Size(31, 200)
QUICK = Size(5, 20)
Statement = tuple[str, Any]


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    with TemporaryDirectory() as folder:
        path = Path(folder) / "registry.sqlite"
        with closing(Database.open(f"sqlite:///{path}")) as database:
            registry_of(database, USER).rubrics.put(REF, rubric(0))
            token = Tokens(database).create("alice").token
            app = create_app(ServerConfig(), database, judge_config=JUDGE)
            with _serving(app) as port, _client(port, OURS, token) as ours:
                sent, asked = ours(), _statements(database, ours)
                routes = {
                    "SQLAlchemy": lambda: _by_sqlalchemy(database, asked),
                    "the driver": _by_driver(path, asked),
                }
                for name, ask in routes.items():
                    with (
                        _serving(_bare(ask, sent)) as other,
                        _client(other, BARE, token) as bare,
                    ):
                        if bare() != sent:
                            raise RuntimeError("the bare route sends other bytes")
                        yield Ratio(
                            what=f"time of resolve over HTTP / a bare route, through {name}",
                            size=f"{size.calls} calls",
                            pairs=alternate(_timed(ours, size), _timed(bare, size), size.pairs),
                            target=at_most(1.5) if name == "SQLAlchemy" else None,
                        )


def _timed(call: Callable[[], bytes], size: Size) -> Callable[[], float]:
    return lambda: seconds(lambda: [call() for _ in range(size.calls)])


def _bare(ask: Callable[[], None], sent: bytes) -> FastAPI:
    app = FastAPI()

    @app.get("/resolve")
    def resolve(ref: str, authorization: Annotated[str, Header()]) -> Response:
        del ref, authorization  # the statements are those of this very call
        ask()
        return Response(sent, media_type="application/json")

    return app


def _statements(database: Database, call: Callable[[], bytes]) -> list[Statement]:
    """What a call asks of the database."""
    asked: list[Statement] = []

    def note(_c: object, _cursor: object, statement: str, given: Any, *_rest: object) -> None:
        asked.append((statement, given))

    event.listen(database.engine, "before_cursor_execute", note)
    call()
    event.remove(database.engine, "before_cursor_execute", note)
    if len(asked) != 2:
        raise RuntimeError(f"resolve asks {len(asked)} statements, not 2")
    return asked


def _by_sqlalchemy(database: Database, asked: list[Statement]) -> None:
    for statement, given in asked:
        names = [f"p{number}" for number in range(len(given))]
        parts = statement.split("?")
        named = "".join(a + b for a, b in zip(parts, [f":{n}" for n in names] + [""], strict=True))
        with database.engine.connect() as connection:
            connection.execute(text(named), dict(zip(names, given, strict=True))).first()


def _by_driver(path: Path, asked: list[Statement]) -> Callable[[], None]:
    mine = threading.local()

    def ask() -> None:
        if not hasattr(mine, "connection"):
            mine.connection = sqlite3.connect(path, isolation_level=None)
        for statement, given in asked:
            mine.connection.execute("BEGIN")
            mine.connection.execute(statement, given).fetchall()
            mine.connection.execute("ROLLBACK")

    return ask


@contextmanager
def _serving(app: FastAPI) -> Iterator[int]:
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    with listen(ServerConfig(port=0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _client(port: int, path: str, token: str) -> Iterator[Callable[[], bytes]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def call() -> bytes:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        with connection.getresponse() as response:
            body = response.read()
            if response.status != 200:
                raise RuntimeError(f"{path} answers {response.status}: {body.decode()}")
            return body

    with closing(connection):
        yield call
