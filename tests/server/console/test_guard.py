import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from starforge_rewards.server.console.guard import Guard


async def page(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("shown")


async def connection(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("open")
    await socket.close()


METHODS = ["GET", "POST"]
APP = Starlette(
    routes=[
        Route("/console/page", page, methods=METHODS),
        Route("/consoles", page, methods=METHODS),
        WebSocketRoute("/console/socket", connection),
    ]
)
CLIENT = TestClient(Guard(APP))


def test_pages_of_the_console_cannot_be_framed_or_sniffed_and_load_from_here_alone() -> None:
    headers = CLIENT.get("/console/page").headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_other_paths_pass_untouched() -> None:
    answered = CLIENT.post("/consoles")
    assert answered.text == "shown"
    assert "content-security-policy" not in answered.headers


def test_only_a_page_of_this_address_may_change_something() -> None:
    assert CLIENT.post("/console/page", headers={"origin": "http://testserver"}).text == "shown"
    for origin in ("http://elsewhere", "null", "http://[", "testserver"):
        assert CLIENT.post("/console/page", headers={"origin": origin}).status_code == 403
    assert CLIENT.post("/console/page").status_code == 403


def test_only_a_page_of_this_address_may_keep_a_connection() -> None:
    ours = {"origin": "http://testserver"}
    with CLIENT.websocket_connect("/console/socket", headers=ours) as socket:
        assert socket.receive_text() == "open"
    refused = CLIENT.websocket_connect("/console/socket", headers={"origin": "http://elsewhere"})
    with pytest.raises(WebSocketDisconnect), refused:
        pass


@pytest.mark.parametrize("left", [True, False])
def test_a_browser_that_left_is_no_mistake_and_any_other_is(left: bool) -> None:
    async def broken(_scope: Scope, receive: Receive, _send: Send) -> None:
        await receive()
        raise RuntimeError("No response returned.")

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect" if left else "http.request"}

    async def send(_message: object) -> None: ...

    scope = {"type": "http", "path": "/console/page", "method": "GET", "headers": []}
    step = Guard(broken)(scope, receive, send)
    if left:
        with pytest.raises(StopIteration):
            step.send(None)
    else:
        with pytest.raises(RuntimeError, match="No response"):
            step.send(None)
