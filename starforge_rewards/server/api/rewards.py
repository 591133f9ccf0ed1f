"""`POST /api/rewards/openrlhf/{environment}` and `/api/rewards/slime/{environment}`.

The HTTP contracts of two trainers, on the server's own judge. Neither lets its user set a header,
but both send what stands before the host of a URL as Basic authorization. So the token is the
password of the URL, `http://token:TOKEN@host:8400/api/...`: no path, and so no access log, holds
it. A bearer token does as well.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Security
from fastapi.openapi.models import HTTPBase
from pydantic import BaseModel, Field, JsonValue
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from starforge_rewards.conversation import Frozen, Record, Text
from starforge_rewards.errors import Unauthorized
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.run import RunId
from starforge_rewards.server.api.access import Asker, Bearer, TokenFirst, bearer
from starforge_rewards.server.api.answers import answer
from starforge_rewards.server.api.body import RawBody, check, object_in, takes
from starforge_rewards.server.api.document import failures
from starforge_rewards.server.api.errors import Detail, JudgeFailed, Refused, located, naming
from starforge_rewards.server.environments import Standing, Standings
from starforge_rewards.server.state import State, state_of
from starforge_rewards.training.calls import item_of, value_of
from starforge_rewards.training.openrlhf import Labels, items_in, row_of
from starforge_rewards.training.reward import Item, Reward


class Asked(Frozen):
    """What the URL says besides the environment."""

    run: RunId
    """The training run: recorded under this name, with the versions that it began with."""
    labels: Labels = "reference"
    """What a label is: the reference, or a JSON object of a task's columns."""


class OpenRlhfBody(Record):
    """What OpenRLHF sends: lists of one length."""

    query: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Prompt and response, with the template's tokens."""
    prompts: tuple[Text, ...]
    labels: tuple[JsonValue, ...]


class SlimeBody(Record):
    """What slime sends: one rollout."""

    prompt: Text | tuple[JsonValue, ...]
    response: Text
    label: JsonValue = None


class OpenRlhfAnswer(BaseModel):
    """One of each for each query."""

    rewards: Sequence[float]
    scores: Sequence[float]
    extra_logs: dict[str, Sequence[float]]
    """`sf_valid`: 0 where a number stands in for a failure, as the environment declares."""


class BearerOrBasic(Bearer):
    """Reads `Authorization: Basic`, whose password is the token, or a bearer token."""

    def __init__(self) -> None:
        self.model = HTTPBase(scheme="basic", description="The password is the token.")
        self.scheme_name = "token_as_password"

    async def __call__(self, request: Request) -> Asker:
        scheme, _, said = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return await bearer(request)
        try:
            _, _, token = base64.b64decode(said.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            token = ""
        if not token.strip():
            raise Unauthorized("no token: write it as the URL's password, http://token:TOKEN@host")
        return Asker(state_of(request).database, token.strip())


either = BearerOrBasic()
Asks = Annotated[Asker, Security(either)]


class EitherFirst(TokenFirst):
    """As `TokenFirst`, of a token in either place."""

    reads = either


_FAILURES = failures(401, 404, 409, 413, 422, 429, 502, 503)
_RLHF_EXAMPLE: JsonValue = {
    "query": ["<user>Is it safe?</user>No: it gets hot.</s>"],
    "prompts": ["<user>Is it safe?</user>"],
    "labels": ["No. It gets hot (handbook, section 2)."],
}
_SLIME_EXAMPLE: JsonValue = {
    "prompt": "Is it safe?",
    "response": "No: it gets hot.",
    "label": "No. It gets hot (handbook, section 2).",
}

router = APIRouter(prefix="/api/rewards", tags=["rewards"], route_class=EitherFirst)


@router.post(
    "/openrlhf/{environment}",
    response_model=OpenRlhfAnswer,
    responses=_FAILURES,
    openapi_extra=takes(OpenRlhfBody, _RLHF_EXAMPLE),
)
async def reward_openrlhf(
    request: Request, asks: Asks, raw: RawBody, environment: str, asked: Annotated[Asked, Query()]
) -> Response:
    """Rewards as OpenRLHF reads them (`--reward.remote_url`)."""

    def read() -> list[Item]:
        body = check(object_in(raw), OpenRlhfBody)
        with located("body"):
            return items_in(body.query, body.prompts, body.labels, asked.labels)

    rewards = await _rewards(request, asks, read, environment, asked.run)
    values = [value_of(one) for one in rewards]
    logged = {"sf_valid": [float(one.valid) for one in rewards]}
    return answer({"rewards": values, "scores": values, "extra_logs": logged})


@router.post(
    "/slime/{environment}",
    response_model=float,
    responses=_FAILURES,
    openapi_extra=takes(SlimeBody, _SLIME_EXAMPLE),
)
async def reward_slime(
    request: Request, asks: Asks, raw: RawBody, environment: str, asked: Annotated[Asked, Query()]
) -> Response:
    """A reward as slime reads it (`--rm-type remote_rm --rm-url`): a bare number."""

    def read() -> list[Item]:
        body = check(object_in(raw), SlimeBody)
        with located("body"):
            if asked.labels == "reference":
                return [item_of(body.prompt, body.response, reference=body.label)]
            row = row_of(body.label)
            return [item_of(row.get("prompt", body.prompt), body.response, row)]

    (reward,) = await _rewards(request, asks, read, environment, asked.run)
    return Response(repr(value_of(reward)).encode(), media_type="application/json")


async def _rewards(
    request: Request, asks: Asker, read: Callable[[], list[Item]], environment: str, run: str
) -> list[Reward]:
    """Token, body, judge and environment, in this order; then the rewards, all or none."""
    state = state_of(request)

    def checked() -> tuple[User, list[Item]]:
        user = asks.user()
        items = read()
        if len(items) > (most := min(state.config.most_items, state.buckets.size)):
            said = f"{len(items)} rollouts: at most {most} in one call"
            raise Refused.at(said, "body", "query", type="too_long")
        return user, items

    user, items = await run_in_threadpool(checked)
    judge = await state.judge.opened()
    state.buckets.take(user.owner, len(items))
    standings = _standings(request)

    def standing() -> Standing:
        registry = registry_of(state.database, user)
        with naming("path", "environment"):
            return standings.find(registry, user.owner, environment, run, judge.identity)

    rewards = await (await run_in_threadpool(standing)).numbers(judge, items)
    _count(state, rewards)
    failed = [
        Detail(msg=f"{one.cause}: {one.detail}", loc=("judge", at), type=one.cause or "")
        for at, one in enumerate(rewards)
        if one.value is None
    ]
    if failed:  # the trainer asks again, and in the end has no reward, rather than a 0
        raise JudgeFailed(failed)
    return rewards


def _standings(request: Request) -> Standings:
    """Those of this app; on the event loop alone, so that one is made."""
    if not hasattr(request.app.state, "standings"):
        request.app.state.standings = Standings()
    made: Standings = request.app.state.standings
    return made


def _count(state: State, rewards: Sequence[Reward]) -> None:
    for reward in rewards:
        state.metrics.judged.labels("scored" if reward.valid else "unscored").inc()
