"""What the endpoint's tests share: a question, one call of the judge, and a scripted server."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from starforge_rewards.judge.config import EndpointJudge, Role
from starforge_rewards.judge.endpoint import Endpoint
from starforge_rewards.question import Answer, Choice, Evidence, NoAnswer, Part, Question, Reply


def question(response: str = "Because of Rayleigh scattering.", levels: int = 6) -> Question:
    parts = (
        Part(name="task_prompt", content="Why is the sky blue?"),
        Part(name="response", content=response),
    )
    return Question(
        source="test",
        evidence=Evidence(parts=parts),
        instruction="correctness\nThe answer is right.",
        choices=tuple(Choice(label=str(i), value=float(i)) for i in range(levels)),
    )


class Said(NamedTuple):
    """One response of a scripted server; `hang` keeps it back until the server ends."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}
    hang: bool = False


def wrote(text: str | None, finish_reason: str = "stop", refusal: str | None = None) -> Said:
    choice = {"message": {"content": text, "refusal": refusal}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    return Said(body=json.dumps({"choices": [choice], "usage": usage}).encode())


def failed(status: int, message: str, **headers: str) -> Said:
    return Said(status, json.dumps({"error": {"message": message}}).encode(), headers)


class Seen(NamedTuple):
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float


class ScriptedServer:
    """An HTTP server on loopback that says what is laid ready, in order, and the last for ever."""

    def __init__(self, *says: Said, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.says, self.seen, self.ended = list(says), list[Seen](), threading.Event()
        own = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                own.seen.append(Seen(self.path, body, dict(self.headers), time.monotonic()))
                said = own.says.pop(0) if len(own.says) > 1 else own.says[0]
                meanwhile()
                if said.hang:
                    own.ended.wait()
                with contextlib.suppress(ConnectionError):  # a client that gave up
                    self.send_response(said.status)
                    for name, value in said.headers.items():
                        self.send_header(name.replace("_", "-"), value)
                    self.send_header("Content-Length", str(len(said.body)))
                    self.end_headers()
                    self.wfile.write(said.body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> "ScriptedServer":
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def ask(
    base_url: str, *questions: Question, role: Role = "evaluation", **options: Any
) -> list[Reply]:
    async def main() -> list[Reply]:
        config = EndpointJudge.model_validate(
            {"kind": "endpoint", "base_url": base_url, "model": "judge"} | options
        )
        judge = Endpoint(config, role=role)
        try:
            return await judge.answer(questions or [question()])
        finally:
            await judge.aclose()

    return asyncio.run(main())


def failure(said: list[Reply]) -> NoAnswer:
    assert isinstance(said[0], NoAnswer), said
    return said[0]


def answer(said: list[Reply]) -> Answer:
    assert isinstance(said[0], Answer), said
    return said[0]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
