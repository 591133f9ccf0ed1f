"""What a person writes to run a server: one YAML file, strict, each key with its meaning."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from starforge_rewards import documents
from starforge_rewards.conversation import Frozen
from starforge_rewards.judge.config import Count, Seconds
from starforge_rewards.settings import shipped


class ServerConfig(Frozen):
    """How one server process listens, and what it lets each user do."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, strict=True)] = 8400
    """0: any free one."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies whose word on the client's address and scheme is taken."""
    judge: str = "embedded"
    """A shipped judge's name, a judge file, or `pool:NAME`."""
    judge_per_minute: Count = 600
    """Rollouts that one user may have scored in a minute, and at once."""
    judge_timeout: Seconds = 600
    """Seconds for one scoring call; what has no score by then has the cause `timeout`."""
    most_items: Count = 256
    """Rollouts in one scoring call."""
    max_body_mb: Annotated[float, Field(gt=0, le=1024, strict=True)] = 4.0
    """Largest body of a request, in MB."""
    shutdown_timeout: Count = 30
    """Seconds that requests under way are given when the server is told to stop."""


def load_server(named: str) -> ServerConfig:
    """The configuration in a file, or of a shipped name (`local`).

    Raises:
        InputError: the file is absent or refused, with its line and field.
    """
    path = Path(named)
    if not path.suffix and not path.is_file():
        path = shipped("configs", "servers", f"{named}.yaml")
    return documents.load(path, ServerConfig)
