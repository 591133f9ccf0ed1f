"""One server as its client sees it: calls that are tried again, and failures as errors of ours.

Every call of the API may be sent twice without harm, so every one is tried again where the
connection, the server or what lies between failed. The token goes nowhere but into its header.
"""

import math
import random
import re
import time
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import httpx
from pydantic import BaseModel, Field, SecretStr, ValidationError

from starforge_rewards.conversation import Record
from starforge_rewards.errors import (
    Conflict,
    Forbidden,
    InputError,
    NotFound,
    StarforgeError,
    Unauthorized,
    Unavailable,
    field_path,
    first_problem,
)

Model = TypeVar("Model", bound=BaseModel)
_PASSING = {429, 502, 503, 504}
_NAMED: dict[int, type[StarforgeError]] = {403: Forbidden, 404: NotFound, 409: Conflict}
_UNUSABLE = {400, 413, 422}
_PLACES = {"body", "query", "path", "header"}
_TOKEN = re.compile(r"[!-~]+")


class Patience(NamedTuple):
    """How often a call is tried, and how long the pauses are."""

    tries: int = 6
    first: float = 0.5
    """Longest pause after the first try, in seconds; it doubles with each."""
    most: float = 8.0
    """Where the doubling ends."""
    asked: float = 60.0
    """Longest pause that a server may ask for."""
    answer: float = 60.0
    """Seconds that the server may be silent."""


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    params: Mapping[str, str | int] = {}
    body: str | None = None
    """JSON."""
    write_key: str | None = None


class _Passing(NamedTuple):
    """A try that failed, though the next may not."""

    said: str
    wait: float | None = None


class _Detail(Record):
    msg: str
    loc: tuple[int | str, ...] = ()


class _Failure(Record):
    """The body of a failure."""

    detail: tuple[_Detail, ...] = Field(min_length=1)
    code: str


class Server:
    """Open until closed; safe to use from any thread."""

    def __init__(self, url: str, token: SecretStr | None, patience: Patience | None = None) -> None:
        """Asks nothing yet.

        Args:
            url: `http(s)://host[:port][/path]`.
            token: what the server knows us by.
            patience: how long a call may take in all.

        Raises:
            InputError: no such URL, or no such token.
        """
        self.url = _checked(url)
        self._patience = patience or Patience()
        self._http = httpx.Client(
            headers={"Accept": "application/json"} | _authorization(token),
            timeout=httpx.Timeout(self._patience.answer, connect=5.0),
            limits=httpx.Limits(keepalive_expiry=4.0),  # uvicorn hangs up after 5
        )
        self._has_token = token is not None

    def ask(self, call: Call, answer: type[Model]) -> Model:
        """The server's answer. Keys that a newer server adds are passed over.

        Raises:
            InputError: the call is refused, or no server of ours is at the URL.
            Unauthorized: no token, or none that is valid.
            Forbidden: another's namespace.
            NotFound: absent, or not readable to the asker.
            Conflict: another write came first.
            Unavailable: no answer after several tries.
        """
        response = self._try(call)
        if not response.is_success:
            raise self._refusal(response)
        try:
            return answer.model_validate_json(response.content, extra="ignore")
        except ValidationError as error:
            if _failed_at_json(error):
                raise self._foreign(response) from None
            problem = first_problem(error)
            where = field_path(problem.loc)
            said = f"{self.url} answers what this release cannot read: {where}: {problem.said}"
            raise Unavailable(f"{said}: install a newer one") from None

    def close(self) -> None:
        self._http.close()

    def _try(self, call: Call) -> httpx.Response:
        patience, tried = self._patience, 0
        while True:
            got = self._send(call)
            if not isinstance(got, _Passing):
                return got
            tried += 1
            wait = got.wait or 0.0
            if tried >= patience.tries or wait > patience.asked:
                tries = f"{tried} tries" if tried > 1 else "1 try"
                raise Unavailable(f"{self.url} cannot be used: {got.said} ({tries})")
            longest = min(patience.most, patience.first * 2.0 ** (tried - 1))
            jitter = random.random()  # noqa: S311  # spreads those who failed together; no secret
            time.sleep(wait + longest * jitter if got.wait is not None else longest * jitter)

    def _send(self, call: Call) -> httpx.Response | _Passing:
        headers = {"Idempotency-Key": call.write_key} if call.write_key is not None else {}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._http.request(
                call.method,
                self.url + call.path,
                params=dict(call.params),
                content=call.body,
                headers=headers,
            )
        except httpx.TransportError as error:
            return _Passing(str(error) or type(error).__name__)
        except httpx.DecodingError:
            return _Passing("its answer is damaged")
        if response.status_code not in _PASSING:
            return response
        failure = _failure(response)
        said = failure.detail[0].msg if failure else f"it answers {response.status_code}"
        return _Passing(said, _seconds(response.headers.get("retry-after")))

    def _refusal(self, response: httpx.Response) -> StarforgeError:
        status, failure = response.status_code, _failure(response)
        if failure is None:
            return self._foreign(response)
        first = failure.detail[0]
        if status == 401:
            asks = "asks for a token: set SF_TOKEN"
            return Unauthorized(f"{self.url}: {first.msg if self._has_token else asks}")
        if status == 404 and first.msg == "Not Found":  # no such route, rather than no such thing
            said = f"{self.url} has no such address: SF_URL is the server's root, without a path"
            return InputError(said)
        if status in _NAMED:
            return _NAMED[status](first.msg)
        if status not in _UNUSABLE:
            return Unavailable(f"{self.url} answers {status}: {first.msg}")
        more = f" (and {len(failure.detail) - 1} more)" if len(failure.detail) > 1 else ""
        loc = first.loc[1:] if first.loc and first.loc[0] in _PLACES else first.loc
        return InputError(first.msg + more, field=field_path(loc) or None)

    def _foreign(self, response: httpx.Response) -> StarforgeError:
        """Somebody else's answer."""
        status = response.status_code
        if response.is_redirect:
            to = response.headers.get("location", "")
            return InputError(f"{self.url} sends on to {to}: name that address", field="SF_URL")
        if status == 413:
            return InputError("too large for what lies between us and the server")
        if status >= 500:
            return Unavailable(f"{self.url} answers {status}")
        sort = response.headers.get("content-type", "nothing").partition(";")[0]
        said = f"no Starforge server is at {self.url}: it answers {status} with {sort}"
        return InputError(said, field="SF_URL")


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InputError(f"is no URL: {error}", field="SF_URL") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise InputError("must begin with http:// or https:// and a host", field="SF_URL")
    if parsed.userinfo or parsed.query or parsed.fragment:
        said = "must have no user, query or fragment: the token goes into SF_TOKEN"
        raise InputError(said, field="SF_URL")
    return str(parsed).rstrip("/")


def _authorization(token: SecretStr | None) -> dict[str, str]:
    if token is None:
        return {}
    secret = token.get_secret_value().strip()
    if not _TOKEN.fullmatch(secret):  # httpx would say it, with the token
        raise InputError("holds characters that no token has", field="SF_TOKEN")
    return {"Authorization": f"Bearer {secret}"}


def _failure(response: httpx.Response) -> _Failure | None:
    """The failure that a server of ours tells; None where the answer is another's."""
    try:
        return _Failure.model_validate_json(response.content)
    except ValidationError:
        return None


def _failed_at_json(error: ValidationError) -> bool:
    """Whether the answer is no JSON at all, or nothing like ours."""
    return any(not one["loc"] for one in error.errors(include_url=False, include_input=False))


def _seconds(header: str | None) -> float | None:
    """What `Retry-After` asks for; None where it names a date, or nothing that can be read."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
