"""Logging in and out, as plain pages and forms: no script, and so the strictest policy.

The token comes in the body of one request, is checked, and is kept nowhere. What is said of a token
that does not open anything is the same whatever is wrong with it.
"""

from html import escape
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import quote

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from starforge_rewards.errors import Unauthorized, Unavailable
from starforge_rewards.registry.tokens import SESSION, Tokens
from starforge_rewards.server.api.limits import RateLimited
from starforge_rewards.server.console.attempts import Attempts
from starforge_rewards.server.console.session import COOKIE, HOME
from starforge_rewards.server.console.theme import STYLE
from starforge_rewards.server.state import state_of

_HERE = Path(__file__).parent
_PAGE = Template((_HERE / "login.html").read_text(encoding="utf-8"))
_REFUSED: Final = "This token is not valid: give one that `starforge token create` printed."
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
attempts = Attempts(most=20, seconds=60)

router = APIRouter(prefix=HOME, include_in_schema=False)


@router.get("")
@router.get("/")
def home() -> Response:
    """The first page."""
    return RedirectResponse(f"{HOME}/rubrics", 303)


@router.get("/console.css")
def stylesheet() -> Response:
    """Of every page, this file's and NiceGUI's."""
    return Response(STYLE, media_type="text/css")


@router.get("/login")
def show(next: str = "") -> Response:
    """The form."""
    return _page(next)


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begins a session, and goes on to the page that was asked for."""
    client = request.client.host if request.client else ""
    form = await request.form()
    token, then = form.get("token", ""), form.get("next", "")
    if isinstance(token, UploadFile) or isinstance(then, UploadFile):
        token = then = ""
    try:
        attempts.check(client)
        tokens = Tokens(state_of(request).database)
        session = await run_in_threadpool(tokens.begin_session, token.strip())
    except RateLimited as limited:
        said = f"Too many attempts: try again in {limited.wait} s."
        return _page(then, said, 429, {"retry-after": str(limited.wait)})
    except Unauthorized:
        attempts.note(client)
        return _page(then, _REFUSED, 401)
    except Unavailable:
        return _page(then, "The database does not answer: try again in a moment.", 503)
    answered = RedirectResponse(_ours(then), 303)
    answered.set_cookie(
        COOKIE,
        session,
        max_age=int(SESSION.total_seconds()),
        path=HOME,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answered


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """Ends the session, here and in every other tab."""
    tokens = Tokens(state_of(request).database)
    await run_in_threadpool(tokens.end_session, request.cookies.get(COOKIE, ""))
    answered = RedirectResponse(f"{HOME}/login", 303)
    answered.delete_cookie(COOKIE, path=HOME, httponly=True, samesite="strict")
    return answered


def _ours(path: str) -> str:
    """A page of the console, and never another address."""
    inside = path.startswith(f"{HOME}/") and path.isprintable() and "\\" not in path
    return quote(path, safe="/?=&%@.-_~") if inside else f"{HOME}/rubrics"


def _page(
    then: str, problem: str = "", status: int = 200, more: dict[str, str] | None = None
) -> Response:
    shown = f'<p class="sf-notice sf-wrong" role="alert">{problem}</p>' if problem else ""
    values = {"home": HOME, "next": escape(_ours(then)), "problem": shown}
    headers = {"content-security-policy": _POLICY, "cache-control": "no-store", **(more or {})}
    return HTMLResponse(_PAGE.substitute(values), status, headers)
