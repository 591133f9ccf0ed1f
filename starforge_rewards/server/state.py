"""What all requests of one app share."""

from dataclasses import dataclass

from starlette.requests import Request

from starforge_rewards.registry.database import Database
from starforge_rewards.server.api.limits import Buckets
from starforge_rewards.server.config import ServerConfig
from starforge_rewards.server.judge import SharedJudge
from starforge_rewards.server.metrics import Metrics


@dataclass(frozen=True)
class State:
    """Made with the app, in `app.state.shared`."""

    config: ServerConfig
    database: Database
    judge: SharedJudge
    buckets: Buckets
    metrics: Metrics


def state_of(request: Request) -> State:
    """The state of the app that a request came to."""
    shared: State = request.app.state.shared
    return shared
