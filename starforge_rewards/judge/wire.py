"""HTTP to one OpenAI-compatible server: requests, their failures as values, responses as types.

Owns the one client of a judge, what is tried again, and what each failure is called. The key is in
a header only: it is taken out of a server's words before any of them are kept.
"""

import asyncio
import json
import math
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import httpx
from pydantic import BaseModel, Field, JsonValue, ValidationError

from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import EndpointJudge
from starforge_rewards.judge.reply import snippet
from starforge_rewards.judge.retry import Backoff, Failure, asked_wait, repeated
from starforge_rewards.question import Tokens

_OVERLONG = re.compile(
    r"context[ _](?:length|window)|maximum context|too long|too many (?:input )?tokens",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[ _](?:filter|management|policy)", re.IGNORECASE)
_NEVER = -9999.0  # vLLM writes minus infinity so

M = TypeVar("M", bound=BaseModel)


class Wire:
    """One HTTP client for as long as the judge lives."""

    def __init__(self, config: EndpointJudge) -> None:
        """Connects to nothing yet.

        Raises:
            InputError: the address or the key's variable cannot be used.
        """
        self._base = _address(config.base_url)
        self._timeout = config.timeout
        self._backoff = Backoff(config.attempts)
        self._key = _key(config.api_key_env)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            limits=httpx.Limits(max_connections=config.max_in_flight),
            timeout=None,  # noqa: S113 - each request has one for the whole of it
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def chat(self, body: Mapping[str, JsonValue], until: float) -> "Completion | Failure":
        """One chat request, tried again where that may help; fields that are null are left out.

        Args:
            body: the request, by the server's own names.
            until: deadline on the running loop's clock.
        """
        sent = {key: value for key, value in body.items() if value is not None}
        return await self._asked(f"{self._base}/chat/completions", sent, Completion, until)

    async def tokenize(self, model: str, text: str, until: float) -> "Tokenized | Failure":
        """The ids of a text, from vLLM's own route beside `/v1`."""
        body: dict[str, JsonValue] = {"model": model, "prompt": text, "add_special_tokens": False}
        root = self._base.removesuffix("/v1")
        return await self._asked(f"{root}/tokenize", body, Tokenized, until)

    async def _asked(
        self, url: str, body: Mapping[str, JsonValue], model: type[M], until: float
    ) -> M | Failure:
        content = json.dumps(body).encode()  # ASCII, so that a lone surrogate cannot fail here

        async def once() -> M | Failure:
            got = await self._post(url, content, until)
            return got if isinstance(got, Failure) else self._read(got, model)

        return await repeated(once, self._backoff, until)

    async def _post(self, url: str, content: bytes, until: float) -> httpx.Response | Failure:
        limit = asyncio.get_running_loop().time() + self._timeout
        try:
            async with asyncio.timeout_at(min(limit, until)):
                return await self._client.post(
                    url, content=content, headers={"Content-Type": "application/json"}
                )
        except TimeoutError:
            return Failure("timeout", f"no response in {self._timeout:g} s", passing=True)
        except httpx.RequestError as error:
            return Failure("unreachable", f"{type(error).__name__}: {error}", passing=True)

    def _read(self, response: httpx.Response, model: type[M]) -> M | Failure:
        words = response.text.replace(self._key, "***") if self._key else response.text
        if not response.is_success:
            return failure_of(response.status_code, words, response.headers.get("Retry-After"))
        try:
            return model.model_validate_json(response.content)
        except ValidationError:
            said = f"not a response of this API: {snippet(words)}"
            return Failure("unreachable", said, passing=True)


def failure_of(status: int, words: str, retry_after: str | None = None) -> Failure:
    """What a response with a status other than success means; its words go into the detail.

    A wrong key, model or field fails every question alike, so it is not tried again.
    """
    said = f"HTTP {status}: {snippet(_message(words))}"
    if status == 413 or (status in (400, 422) and _OVERLONG.search(words)):
        return Failure("overlong", said, passing=False)
    if status in (400, 403) and _FILTERED.search(words):
        return Failure("refused", said, passing=False)
    return Failure(
        "timeout" if status in (408, 504) else "unreachable",
        said,
        passing=status in (408, 429) or status >= 500,
        wait=asked_wait(retry_after, datetime.now(UTC)),
    )


class _Problem(BaseModel):
    message: str


class _Error(BaseModel):
    error: _Problem


def _message(words: str) -> str:
    """The sentence in an error response of this API, else all of it."""
    try:
        return _Error.model_validate_json(words).error.message
    except ValidationError:
        return words


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Entry(BaseModel):
    token: str
    logprob: float | None = None


class _Position(BaseModel):
    top_logprobs: list[_Entry] = []


class _Logprobs(BaseModel):
    content: list[_Position] | None = None


class Written(BaseModel):
    """One turn that the model wrote, and why it stopped."""

    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None

    def masses(self, ids: tuple[int, ...]) -> tuple[float, ...] | None:
        """The probability of each id as the first token; None unless every one is there."""
        positions = (self.logprobs and self.logprobs.content) or [_Position()]
        found = {entry.token: entry.logprob for entry in positions[0].top_logprobs}
        masses = []
        for each in ids:
            logprob = found.get(f"token_id:{each}")
            if logprob is None or not _NEVER < logprob < math.inf:
                return None
            masses.append(math.exp(logprob))
        return tuple(masses)


class _Details(BaseModel):
    cached_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class Completion(BaseModel):
    """A chat response; keys that are not read here are ignored."""

    choices: Annotated[list[Written], Field(min_length=1)]
    usage: _Usage | None = None

    @property
    def tokens(self) -> Tokens:
        used = self.usage or _Usage()
        details = used.prompt_tokens_details or _Details()
        return Tokens(
            prompt=used.prompt_tokens or 0,
            cached=details.cached_tokens or 0,
            generated=used.completion_tokens or 0,
        )


class Tokenized(BaseModel):
    """A text as token ids."""

    tokens: list[int]


def _key(variable: str | None) -> str:
    """The key without what a file or a shell put around it; "" where none is configured."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        problem = f"the environment variable {variable} is not set, or holds no key"
        raise InputError(problem, field="api_key_env")
    return key


def _address(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise InputError(str(error), field="base_url") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError("not an address such as https://host:8000/v1", field="base_url")
    if url.userinfo:  # it would stand in identities and logs
        raise InputError("holds credentials: name a variable in api_key_env", field="base_url")
    return base_url.rstrip("/")
