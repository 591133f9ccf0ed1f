"""`/api/runs`: jobs record themselves, with a result for each of their rows."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator, BaseModel, Field, JsonValue
from starlette.responses import Response

from starforge_rewards.conversation import Frozen
from starforge_rewards.errors import InputError
from starforge_rewards.registry.records import Limit, RunListing, RunQuery
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.run import ResultRow, Role, Run, RunRecord, Status
from starforge_rewards.server.api.access import Asks, TokenFirst
from starforge_rewards.server.api.answers import answer
from starforge_rewards.server.api.body import RawBody, check, object_in, takes
from starforge_rewards.server.api.document import failures

MOST = 500
"""Items in one batch."""
PathRunId = Annotated[str, Path(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{7,127}$")]
ROW = Annotated[int, Query(ge=-1, le=2**31 - 1)]


def _a_reference(text: str) -> str:
    try:
        return str(Ref.parse(text))
    except InputError as error:
        raise ValueError(error.problem) from None


class RunsAsked(RunQuery):
    """Which runs a listing shows, as a query string says it."""

    role: Role | None = None
    status: Status | None = None
    rubric: Annotated[str, AfterValidator(_a_reference)] | None = None


class ResultBatch(Frozen):
    """Rows; one of the same key replaces the one before."""

    results: Annotated[tuple[ResultRow, ...], Field(max_length=MOST)]


class Kept(BaseModel):
    """How many items of a batch are there by now."""

    kept: int


class Results(BaseModel):
    """Rows in order of position."""

    results: Sequence[ResultRow]


_RUN: JsonValue = {
    "role": "benchmark_score",
    "runner": "judge",
    "subject": "our-model step 100",
    "citations": ["alice/answer-quality@2"],
    "status": "running",
}
_RESULT: JsonValue = {
    "results": [
        {"key": "row-1", "position": 0, "outcome": "scored", "total": 4.5, "normalized": 0.9}
    ]
}

router = APIRouter(prefix="/api/runs", tags=["runs"], route_class=TokenFirst)
READ = failures(401, 404, 422, 503)
ADD = failures(401, 404, 413, 422, 503)


@router.get("", response_model=RunListing, responses=failures(401, 422, 503))
def list_runs(asks: Asks, query: Annotated[RunsAsked, Query()]) -> Response:
    """Mine, newest first."""
    return answer(asks.registry().runs.list(query))


@router.put(
    "/{run_id}",
    response_model=RunRecord,
    responses=failures(401, 404, 409, 413, 422, 503),
    openapi_extra=takes(Run, _RUN),
)
def put_run(asks: Asks, run_id: PathRunId, raw: RawBody) -> Response:
    """Record a run, or what is new of it; the same again changes nothing."""
    runs = asks.registry().runs
    return answer(runs.put(run_id, check(object_in(raw), Run)))


@router.get("/{run_id}", response_model=RunRecord, responses=READ)
def show_run(asks: Asks, run_id: PathRunId) -> Response:
    """One run with its citations."""
    return answer(asks.registry().runs.show(run_id))


@router.post(
    "/{run_id}/results",
    response_model=Kept,
    responses=ADD,
    openapi_extra=takes(ResultBatch, _RESULT),
)
def add_results(asks: Asks, run_id: PathRunId, raw: RawBody) -> Response:
    """Keep rows; a row of the same key replaces the one before."""
    runs = asks.registry().runs
    rows = check(object_in(raw), ResultBatch).results
    runs.add_results(run_id, rows)
    return answer({"kept": len(rows)})


@router.get("/{run_id}/results", response_model=Results, responses=READ)
def list_results(
    asks: Asks, run_id: PathRunId, after: ROW = -1, limit: Annotated[Limit, Query()] = 200
) -> Response:
    """Rows at positions beyond `after`."""
    rows = asks.registry().runs.results(run_id, after=after, limit=limit)
    return answer({"results": [row.model_dump() for row in rows]})
