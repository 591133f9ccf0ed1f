"""What every request to the console passes: who sent it, and the headers of its answer.

A page of another site can make a browser send requests here. Those that change something, and
connections that stay open, must come from a page of this very address.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from starforge_rewards.server.console.session import HOME

_SAFE = {"GET", "HEAD", "OPTIONS"}
_HEADERS = {
    # NiceGUI puts scripts into its pages and compiles their templates in the browser.
    "content-security-policy": "; ".join(
        (
            "default-src 'self'",
            "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # `no-referrer` would hide the origin of our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Plain ASGI; requests to other paths pass untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "lifespan" or not (path == HOME or path.startswith(f"{HOME}/")):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            allowed = scope["method"] in _SAFE or _of_this_address(Headers(scope=scope))
            await _answer(self._app if allowed else _REFUSED, scope, receive, send)
        elif _of_this_address(Headers(scope=scope)):
            await self._app(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})


_REFUSED = PlainTextResponse("This was not sent by a page of this server.", 403)


async def _answer(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    left = False

    async def watched() -> Message:
        nonlocal left
        message = await receive()
        left = left or message["type"] == "http.disconnect"
        return message

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    try:
        await app(scope, watched, guarded)
    except RuntimeError:  # of Starlette's middleware, for a browser that did not wait
        if not left:
            raise


def _of_this_address(headers: Headers) -> bool:
    """The scheme is left out: a proxy in front may speak https with the browser."""
    try:
        origin = urlsplit(headers.get("origin", "")).netloc
    except ValueError:
        return False
    return bool(origin) and origin.lower() == headers.get("host", "").lower()
