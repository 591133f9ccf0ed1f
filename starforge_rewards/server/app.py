"""`create_app(config, database)`: the one place that stacks middleware, routes and pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from starforge_rewards import __version__
from starforge_rewards.judge.config import AnyJudge, load_judge
from starforge_rewards.registry.database import Database
from starforge_rewards.server.api import (
    document,
    errors,
    health,
    judge,
    revisions,
    rewards,
    rubrics,
    runs,
    scores,
)
from starforge_rewards.server.api.limits import Buckets
from starforge_rewards.server.config import ServerConfig
from starforge_rewards.server.judge import SharedJudge
from starforge_rewards.server.metrics import CountRequests, Metrics
from starforge_rewards.server.middleware import AnswerForAsker, LimitBody
from starforge_rewards.server.state import State

_ROUTERS = (
    rubrics.router,
    revisions.router,
    runs.router,
    scores.router,
    judge.router,
    rewards.router,
    health.router,
)


def create_app(
    config: ServerConfig, database: Database, *, judge_config: AnyJudge | None = None
) -> FastAPI:
    """The server's app; its lifespan opens the judge, and the caller closes the database.

    Args:
        config: how to serve.
        database: open, at the present schema.
        judge_config: in place of what `config.judge` names.

    Raises:
        InputError: the judge's configuration is refused.
    """
    shared = SharedJudge(judge_config or load_judge(config.judge), config.judge_timeout)
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with shared.running():
            yield

    app = FastAPI(
        title="Starforge Rewards",
        version=__version__,
        description="Rubrics as owned, versioned and cited assets, and a judge that uses them.",
        lifespan=lifespan,
        docs_url=None,  # its page would load from other servers
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.shared = State(config, database, shared, Buckets(config.judge_per_minute), metrics)
    errors.install(app)
    for router in _ROUTERS:
        app.include_router(router)
    document.describe(app)
    # The console is mounted by the process (`console.mount`): NiceGUI keeps one app in each.
    app.add_middleware(LimitBody, most=int(config.max_body_mb * 1_000_000))
    app.add_middleware(AnswerForAsker)
    app.add_middleware(CountRequests, metrics=metrics)  # outermost: counts what the others refuse
    return app
