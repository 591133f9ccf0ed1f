"""What every request passes on its way in and out, as plain ASGI.

A body is bounded while it is read, whatever its declared length; answers of the API are for the
asker alone, so nothing on the way may keep them.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from starforge_rewards.server.api.errors import failure

_OURS = ("/api/", "/healthz", "/readyz", "/metrics", "/openapi.json")


class LimitBody:
    """Refuses a request whose body is larger than so many bytes, with 413."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = f"the body is larger than {self._most} bytes"
        declared = Headers(scope=scope).get("content-length", "0")
        if not (declared.isascii() and declared.isdecimal()) or int(declared[:20]) > self._most:
            await failure(413, said, "body")(scope, receive, send)
            return
        had = 0

        async def counted() -> Message:
            nonlocal had
            message = await receive()
            had += len(message.get("body", b""))
            if had > self._most:
                raise HTTPException(413, said)
            return message

        await self._app(scope, counted, send)


class AnswerForAsker:
    """Sets the headers of the API's answers, and answers HEAD as GET without its body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_OURS):
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"
        asked = {**scope, "method": "GET"} if head else scope  # uvicorn goes by its own

        async def private(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["cache-control"] = "no-store"
                headers["x-content-type-options"] = "nosniff"
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self._app(asked, receive, private)
        scope.setdefault("route", asked.get("route"))
