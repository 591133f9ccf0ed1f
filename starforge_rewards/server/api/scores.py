"""The score ledger: what a run used, and what an earlier run of the same recorder had."""

import json
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field, JsonValue
from starlette.responses import Response

from starforge_rewards.conversation import Frozen, Prose
from starforge_rewards.registry.records import KeyedScore, Limit, ScoreKey, ScorePage
from starforge_rewards.run import Digest
from starforge_rewards.server.api.access import Asks, TokenFirst
from starforge_rewards.server.api.answers import answer
from starforge_rewards.server.api.body import RawBody, check, object_in, takes
from starforge_rewards.server.api.document import failures
from starforge_rewards.server.api.errors import located
from starforge_rewards.server.api.runs import ADD, MOST, READ, Kept, PathRunId


def _finite(keyed: KeyedScore) -> KeyedScore:
    """A score is numbers; `"NaN"` is none."""
    try:
        json.dumps(keyed.score.model_dump(), allow_nan=False)
    except ValueError:
        raise ValueError("holds a number that is not finite") from None
    return keyed


class ScoreBatch(Frozen):
    """Scores that a run used."""

    scores: Annotated[
        tuple[Annotated[KeyedScore, AfterValidator(_finite)], ...], Field(max_length=MOST)
    ]


class ScoresWanted(Frozen):
    """Keys to look up, of one judge."""

    judge: Digest
    keys: Annotated[tuple[ScoreKey, ...], Field(max_length=MOST)]


class ScoresFound(BaseModel):
    """Those of the keys that are there."""

    scores: Sequence[KeyedScore]


_KEY: JsonValue = {"rubric": "alice/answer-quality@2", "evidence": "0" * 64, "repeat": 0}
_SCORE: JsonValue = {"total": 4.0, "normalized": 0.8, "raw": 0.8, "criteria": {}}

router = APIRouter(prefix="/api", tags=["scores"], route_class=TokenFirst)


@router.post(
    "/runs/{run_id}/scores",
    response_model=Kept,
    responses=ADD,
    openapi_extra=takes(ScoreBatch, {"scores": [{"key": _KEY, "score": _SCORE}]}),
)
def add_scores(asks: Asks, run_id: PathRunId, raw: RawBody) -> Response:
    """Keep scores that a run used; the same again changes nothing."""
    scores = asks.registry().scores
    batch = check(object_in(raw), ScoreBatch).scores
    with located("body", "scores"):
        scores.add(run_id, {keyed.key: keyed.score for keyed in batch})
    return answer({"kept": len(batch)})


@router.get("/runs/{run_id}/scores", response_model=ScorePage, responses=READ)
def list_scores(
    asks: Asks,
    run_id: PathRunId,
    cursor: Prose | None = None,
    limit: Annotated[Limit, Query()] = 200,
) -> Response:
    """The scores that a run used, page by page."""
    return answer(asks.registry().scores.of_run(run_id, cursor=cursor, limit=limit))


@router.post(
    "/scores/find",
    response_model=ScoresFound,
    responses=failures(401, 413, 422, 503),
    openapi_extra=takes(ScoresWanted, {"judge": "0" * 64, "keys": [_KEY]}),
)
def find_scores(asks: Asks, raw: RawBody) -> Response:
    """The asker's own complete scores under these keys."""
    scores = asks.registry().scores
    wanted = check(object_in(raw), ScoresWanted)
    found = scores.find(wanted.judge, wanted.keys)
    return answer(
        {"scores": [KeyedScore(key=key, score=score).model_dump() for key, score in found.items()]}
    )
