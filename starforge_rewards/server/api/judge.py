"""`POST /api/judge/score`: one rollout or a batch, scored by the server's judge.

A failed judgement is never a number: one rollout that has no score is a 502 with its cause, and so
is a batch of which none has; in any other batch it is an `unscored` result beside the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, JsonValue, TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from starforge_rewards.conversation import Content, Frozen, Json, Rollout, Text
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import CriterionScore, Rubric, Score, Unscored
from starforge_rewards.run import RunId
from starforge_rewards.server.api.access import Asker, Asks, TokenFirst
from starforge_rewards.server.api.answers import answer
from starforge_rewards.server.api.body import RawBody, check, object_in, takes
from starforge_rewards.server.api.document import failures
from starforge_rewards.server.api.errors import Detail, JudgeFailed, Refused, naming
from starforge_rewards.server.recorded import Call, Judged, score_recorded
from starforge_rewards.server.state import state_of


class Item(Frozen):
    """One rollout to score."""

    prompt: Content
    response: Content
    reference: Text | None = None
    context: Text | None = None

    def rollout(self) -> Rollout:
        return Rollout(
            prompt=self.prompt,
            response=self.response,
            reference=self.reference,
            context=self.context,
        )


class NamedItem(Item):
    """One rollout of a batch."""

    id: Text | None = None
    """Comes back with its result."""


class Asked(Frozen):
    """What a call says of all its rollouts."""

    rubric: Json | Text
    """`owner/name`, `owner/name@version`, or a rubric itself."""
    run: RunId | None = None
    """The caller's own run, under which the call is recorded; default: one is made for it."""


class OneAsked(Item, Asked):
    """The body of a single call."""


class BatchAsked(Asked):
    """The body of a batch."""

    items: Annotated[tuple[NamedItem, ...], Field(min_length=1)]


class Facts(BaseModel):
    """What decided the scores of a call."""

    rubric: str | None
    """`owner/name@version`, or null for a rubric that came with the call."""
    version: int | None
    digest: str
    unversioned: bool
    judge: str
    """Digest of the judge's identity."""
    run: str | None
    """The run under which the call is recorded; null where no registry keeps the rubric."""


class Scored(BaseModel):
    """A rollout's score."""

    outcome: Literal["scored"]
    total: float
    """On the rubric's own scale."""
    normalized: float
    raw: float
    criteria: dict[str, CriterionScore]
    reasons: dict[str, str]
    """By criterion, where the judge gave one."""
    unanswered: dict[str, str]
    """Criteria of weight zero that the judge could not answer, with the cause."""
    decided: Literal["judge", "empty_response"]


class ScoredOne(Scored, Facts):
    """The answer to a single call."""


class ScoredItem(Scored):
    """A result of a batch."""

    id: str | None


class UnscoredItem(BaseModel):
    """A result of a batch that has no number, and why."""

    id: str | None
    outcome: Literal["unscored"]
    cause: str
    detail: str
    missing: Sequence[str]
    answered: dict[str, CriterionScore]


class ScoredBatch(Facts):
    """The answer to a batch: one result for each item, in order."""

    results: Sequence[Annotated[ScoredItem | UnscoredItem, Field(discriminator="outcome")]]


_EXAMPLE: JsonValue = {
    "rubric": "alice/answer-quality",
    "prompt": "How do I reset my password?",
    "response": "Settings, then Security, then Reset password (handbook, section 4).",
}
_MOST_QUESTIONS = 20_000
"""Criteria times rollouts in one call."""
_BODIES: TypeAdapter[object] = TypeAdapter(OneAsked | BatchAsked)

router = APIRouter(prefix="/api/judge", tags=["judge"], route_class=TokenFirst)


@dataclass(frozen=True)
class _Wanted:
    user: User
    call: Call
    ids: tuple[str | None, ...] | None
    """None for a single call."""


@router.post(
    "/score",
    response_model=ScoredOne | ScoredBatch,
    responses=failures(401, 404, 409, 413, 422, 429, 502, 503),
    openapi_extra=takes(_BODIES, _EXAMPLE),
)
async def score_rollouts(request: Request, asks: Asks, raw: RawBody) -> Response:
    """Score one rollout, or a batch with one rubric."""
    state = state_of(request)
    most = min(state.config.most_items, state.buckets.size)
    reuse = state.judge.remembers
    wanted = await run_in_threadpool(_read, asks, raw, most, reuse)
    judge = await state.judge.opened()
    state.buckets.take(wanted.user.owner, len(wanted.call.rollouts))
    registry = registry_of(state.database, wanted.user)
    judged = await score_recorded(wanted.call, judge, registry)
    for result in judged.results:
        outcome = "scored" if isinstance(result, Score) else "unscored"
        state.metrics.judged.labels(outcome).inc()
    facts = _facts(wanted.call.rubric, judge.identity.digest, judged)
    return await run_in_threadpool(_answer, wanted, judged, facts)


def _read(asks: Asker, raw: bytes, most: int, reuse: bool) -> _Wanted:
    """Checks token, body and rubric, in this order."""
    user = asks.user()
    data = object_in(raw)
    ids: tuple[str | None, ...] | None = None
    if "items" in data:
        batch = check(data, BatchAsked)
        if len(batch.items) > most:
            said = f"{len(batch.items)} items: at most {most} in one call"
            raise Refused.at(said, "body", "items", type="too_long")
        asked: Asked = batch
        rollouts = [item.rollout() for item in batch.items]
        ids = tuple(item.id for item in batch.items)
    else:
        one = check(data, OneAsked)
        asked, rollouts = one, [one.rollout()]
    rubric = _rubric(asked.rubric, registry_of(asks.database, user))
    if (questions := len(rubric.rubric.criteria) * len(rollouts)) > _MOST_QUESTIONS:
        said = f"asks {questions} questions: at most {_MOST_QUESTIONS} in one call"
        raise Refused.at(said, "body", "rubric", type="too_long")
    return _Wanted(user=user, call=Call(rubric, rollouts, asked.run, reuse), ids=ids)


def _rubric(given: Mapping[str, JsonValue] | str, registry: Registry) -> ResolvedRubric:
    if isinstance(given, str):
        with naming("body", "rubric"):
            return registry.rubrics.resolve(given)
    return ResolvedRubric.pin(check(given, Rubric, "body", "rubric"))


def _facts(rubric: ResolvedRubric, judge: str, judged: Judged) -> dict[str, object]:
    return {
        "rubric": str(rubric.ref) if rubric.ref else None,
        "version": rubric.ref.version if rubric.ref else None,
        "digest": rubric.digest,
        "unversioned": rubric.unversioned,
        "judge": judge,
        "run": judged.run,
    }


def _answer(wanted: _Wanted, judged: Judged, facts: Mapping[str, object]) -> Response:
    failed = [
        _detail(result, *(() if wanted.ids is None else ("items", index)))
        for index, result in enumerate(judged.results)
        if isinstance(result, Unscored)
    ]
    if len(failed) == len(judged.results):
        raise JudgeFailed(failed)
    said = [_said(result) for result in judged.results]
    if wanted.ids is None:
        return answer({**said[0], **facts})
    results = [{"id": name, **one} for name, one in zip(wanted.ids, said, strict=True)]
    return answer({"results": results, **facts})


def _said(result: Score | Unscored) -> dict[str, object]:
    if isinstance(result, Unscored):
        return {"outcome": "unscored", **result.model_dump()}
    reasons = {name: one.reason for name, one in result.criteria.items() if one.reason}
    return {"outcome": "scored", **result.model_dump(), "reasons": reasons}


def _detail(result: Unscored, *item: int | str) -> Detail:
    loc = ("judge", *item, *result.missing[:1])
    said = f"{result.cause}: {result.detail}" if result.detail else result.cause
    return Detail(msg=said, loc=loc, type=result.cause)
