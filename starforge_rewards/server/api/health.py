"""Whether the process lives, whether it can serve, and what it has counted. No token is asked."""

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from starforge_rewards.server.api.answers import answer
from starforge_rewards.server.api.document import failures
from starforge_rewards.server.metrics import CONTENT_TYPE
from starforge_rewards.server.state import state_of

router = APIRouter(tags=["operations"])


@router.get("/healthz", response_model=dict[str, str])
async def healthz() -> Response:
    """The process lives."""
    return answer({"status": "ok"})


@router.get("/readyz", response_model=dict[str, str], responses=failures(503))
async def readyz(request: Request) -> Response:
    """The database answers and the judge is open."""
    state = state_of(request)
    await run_in_threadpool(state.database.ping)
    await state.judge.opened()
    return answer({"status": "ready"})


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Counters and timings, for Prometheus."""
    return Response(state_of(request).metrics.exposed(), media_type=CONTENT_TYPE)
