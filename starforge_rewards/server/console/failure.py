"""The page in place of one that cannot be shown: absent and hidden look the same."""

from urllib.parse import quote

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from nicegui import Client, ui
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from starforge_rewards.errors import StarforgeError, Unauthorized
from starforge_rewards.server.api.errors import TABLE
from starforge_rewards.server.console.elements import link, words
from starforge_rewards.server.console.frame import frame
from starforge_rewards.server.console.notice import Notice, told
from starforge_rewards.server.console.session import HOME, Visit, visit

_TITLES = {403: "Not yours to change", 404: "Not found", 503: "Not available"}


def install(app: FastAPI) -> None:
    """Have NiceGUI's app show our own page."""
    app.add_exception_handler(StarforgeError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_parameters)
    app.add_exception_handler(404, _of_routing)


async def _of_ours(request: Request, error: Exception) -> Response:
    if not isinstance(error, StarforgeError):
        raise error
    if isinstance(error, Unauthorized):
        asked = quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""))
        return RedirectResponse(f"{HOME}/login?next={asked}", 303)
    status = next((TABLE[kind].status for kind in type(error).__mro__ if kind in TABLE), 500)
    return await _page(request, told(error), status)


async def _of_parameters(request: Request, _error: Exception) -> Response:
    return await _page(request, "The address of this page has a part that cannot be read.", 422)


async def _of_routing(request: Request, _error: Exception) -> Response:
    if "/_nicegui" in request.url.path:  # part of a page
        return Response(status_code=404)
    return await _page(request, "There is no such page.", 404)


async def _page(request: Request, said: str, status: int) -> Response:
    try:
        known: Visit | None = await run_in_threadpool(visit, request)
    except StarforgeError:
        known = None
    title = _TITLES.get(status, "That did not work")
    with Client(ui.page(""), request=request) as client, frame(known, title):
        words("h1", title)
        Notice().wrong(said)
        with words("p", ""):
            link("All rubrics", "/rubrics")
    return client.build_response(request, status)
