import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.training import endpoint
from starforge_rewards.training.endpoint import ByEndpoint
from starforge_rewards.training.environment import EndpointVerifier
from starforge_rewards.training.reward import Item, Part
from starforge_rewards.training.verify import Asking
from tests.training import scripted
from tests.training.made import item

Answer = tuple[int, str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_PAUSE", 0.001)


@contextmanager
def server(answer: Callable[[dict[str, Any], int], Answer]) -> Iterator[str]:
    """A server; `answer` is given each body and how many requests came before."""
    came = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            came.append(body)
            status, text = answer(body, len(came) - 1)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", text)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as one:
        thread = threading.Thread(target=one.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{one.server_port}/reward"
        finally:
            one.shutdown()
            thread.join()


def verify(url: str, *items: Item, **more: Any) -> list[Part]:
    config = EndpointVerifier.model_validate({"kind": "endpoint", "url": url, **more})

    async def work() -> list[Part]:
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=2)) as client:
            asking = Asking(ScriptedJudge(scripted.judge), None, lambda: client)
            return await ByEndpoint(config, "theirs").verify(items, asking)

    return asyncio.run(work())


def test_a_rollout_goes_there_and_its_reward_comes_back() -> None:
    seen: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], _: int) -> Answer:
        seen.append(body)
        return 200, json.dumps({"reward": int(body["response"]), "more": 1})

    with server(answer) as url:
        rows = [item(str(n), split="eval", expect="comply", metadata={"k": n}) for n in range(8)]
        parts = verify(url, *rows, weight=3)
    assert [part.value for part in parts] == list(range(8))
    assert all(part.weight == 3 for part in parts)
    assert all("split" not in body and "expect" not in body for body in seen)
    assert {body["metadata"]["k"] for body in seen} == set(range(8))


@pytest.mark.parametrize("first", [500, 503, 429, 408])
def test_what_may_pass_is_tried_again(first: int) -> None:
    def answer(_: dict[str, Any], before: int) -> Answer:
        return (first, "busy") if before < 2 else (200, '{"reward": 0.5}')

    with server(answer) as url:
        assert [part.value for part in verify(url, item("r"))] == [0.5]
        assert verify(url, item("r"), attempts=1)[0].value == 0.5


@pytest.mark.parametrize(
    ("status", "text", "tries", "said"),
    [
        (500, "broken", 3, "HTTP 500"),
        (404, "nothing here", 1, "HTTP 404"),
        (302, "/elsewhere", 1, "HTTP 302"),
        (200, "The answer is worth 7 of 10.", 1, "answered no reward"),
        (200, '{"score": 1}', 1, "answered no reward"),
        (200, "", 1, "answered no reward"),
        (200, "[1]", 1, "answered no reward"),
        (200, '{"reward": NaN}', 1, "no finite number"),
        (200, '{"reward": 1e999}', 1, "no finite number"),
        (200, '{"reward": "1"}', 1, "no finite number"),
        (200, '{"reward": null}', 1, "no finite number"),
        (200, '{"reward": true}', 1, "no finite number"),
        (200, '{"reward": 1' + "0" * 400 + "}", 1, "no finite number"),
    ],
)
def test_what_is_no_reward_is_a_cause(status: int, text: str, tries: int, said: str) -> None:
    asked: list[int] = []

    def answer(_: dict[str, Any], before: int) -> Answer:
        asked.append(before)
        return status, text

    with server(answer) as url:
        [part] = verify(url, item("r"))
    assert (part.value, part.cause) == (None, "endpoint_failed")
    assert said in part.detail
    assert url in part.detail
    assert len(asked) == tries


def test_a_server_that_is_down_is_a_cause_for_every_rollout() -> None:
    with server(lambda _body, _before: (200, "")) as url:
        pass
    parts = verify(url, *[item(str(n)) for n in range(5)])
    assert [(part.value, part.cause) for part in parts] == [(None, "endpoint_failed")] * 5
    assert "ConnectError" in parts[0].detail


def test_only_the_time_of_a_request_counts_not_the_wait_for_its_turn() -> None:
    gate = threading.Event()

    def answer(_: dict[str, Any], before: int) -> Answer:
        gate.wait(0.1)
        return 200, '{"reward": 1}'

    with server(answer) as url:
        parts = verify(url, *[item(str(n)) for n in range(20)], timeout=0.6, attempts=1)
    assert [part.value for part in parts] == [1.0] * 20
