"""A server that listens on loopback, and one before it that loses answers."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import httpx
import uvicorn
from pydantic import SecretStr

from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.server.app import create_app
from starforge_rewards.server.config import ServerConfig

JUDGE = ScriptedConfig(kind="scripted", function="tests.server.scripted_judge:judge")


class Live(NamedTuple):
    url: str
    database: Database

    def token(self, owner: str, *, admin: bool = False) -> SecretStr:
        return SecretStr(Tokens(self.database).create(owner, admin=admin).token)


@contextlib.contextmanager
def live(database: Database) -> Iterator[Live]:
    """The product's own app in uvicorn, in a thread."""
    app = create_app(ServerConfig(), database, judge_config=JUDGE)
    config = uvicorn.Config(app, ws="none", log_config=None)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        yield Live(f"http://127.0.0.1:{port}", database)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


class Said(NamedTuple):
    """One response; without a status the connection ends instead."""

    status: int | None = 200
    body: str = ""
    headers: dict[str, str] = {}


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@contextlib.contextmanager
def listening(reply: Callable[[Asked], Said]) -> Iterator[str]:
    """The URL of a server that says what `reply` says."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said = reply(Asked(self.command, self.path, dict(self.headers), body))
            if said.status is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(said.status)
            headers = {"Content-Type": "application/json"} | said.headers
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said.body.encode())))
            self.end_headers()
            self.wfile.write(said.body.encode())

        do_GET = do_PUT = do_POST = do_any

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def losing(url: str, every: int = 2) -> Iterator[str]:
    """What lies before a server and loses the answer to every such try, beginning with the first.

    Each try arrives.
    """
    tries = iter(range(1_000_000))

    def forward(asked: Asked) -> Said:
        passed = {k: v for k, v in asked.headers.items() if k.lower() not in {"host"}}
        answer = httpx.request(
            asked.method, url + asked.path, headers=passed, content=asked.body, timeout=30
        )
        lost = next(tries) % every == 0
        return Said(None) if lost else Said(answer.status_code, answer.text)

    with listening(forward) as before:
        yield before
