"""One server process: its socket, its log, and how it ends.

The log has no query strings and no headers, so nothing that a client keeps secret. A server is one
process, since rate limits and the console's pages live in it.
"""

import asyncio
import logging
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from starforge_rewards.errors import EngineFailed, InputError, NotFound
from starforge_rewards.judge.config import AnyJudge, PoolJudge
from starforge_rewards.judge.open import Tell, open_judge
from starforge_rewards.registry.database import Database
from starforge_rewards.server.app import create_app
from starforge_rewards.server.config import ServerConfig
from starforge_rewards.server.console.mount import mount

_CONFIG = "SF_SERVER_CONFIG"
"""How `--reload` hands the configuration to the process that it starts."""
_DATABASE = "SF_DATABASE_URL"


class WithoutQuery(logging.Filter):
    """Cuts the query string off a line of uvicorn's access log."""

    def filter(self, record: logging.LogRecord) -> bool:
        match record.args:
            case (client, method, str() as path, *rest):
                record.args = (client, method, path.partition("?")[0], *rest)
        return True


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "%(asctime)s %(levelname)s %(message)s"},
        "access": {
            "()": "uvicorn.logging.AccessFormatter",
            "fmt": "%(asctime)s %(client_addr)s %(request_line)s %(status_code)s",
            "use_colors": False,
        },
    },
    "filters": {"without_query": {"()": WithoutQuery}},
    "handlers": {
        "plain": {"class": "logging.StreamHandler", "formatter": "plain"},
        "access": {
            "class": "logging.StreamHandler",
            "formatter": "access",
            "filters": ["without_query"],
        },
    },
    "loggers": {
        "uvicorn": {"handlers": ["plain"], "level": "WARNING", "propagate": False},
        "uvicorn.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
        "starforge_rewards": {"handlers": ["plain"], "level": "INFO", "propagate": False},
    },
}


def listen(config: ServerConfig) -> socket.socket:
    """The server's socket.

    Raises:
        InputError: the address is none of this machine's, or the port is in use.
    """
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)
        return socket.create_server((config.host, config.port), family=found[0][0], backlog=2048)
    except (OSError, UnicodeError) as error:
        said = f"cannot listen on {config.host}:{config.port}: {error}"
        raise InputError(f"{said}; choose others with --host and --port") from None


def check_judge(config: AnyJudge, tell: Tell) -> None:
    """Opens a judge once, so that a mistake in its configuration ends the command and not a call.

    Raises:
        InputError: the configuration names something that is not there.
    """
    if isinstance(config, PoolJudge):
        return  # it may come later

    async def opened() -> None:
        async with open_judge(config, tell=tell):
            pass

    with suppress(NotFound, EngineFailed):
        asyncio.run(opened())


def run(config: ServerConfig, database: Database, listening: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way are finished first."""
    app = create_app(config, database)
    mount(app)
    server = uvicorn.Server(uvicorn.Config(app, **_options(config)))
    # uvicorn raises a signal again when it has stopped; the process is to end with 0 all the same.
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    try:
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    finally:
        signal.signal(signal.SIGTERM, before)


def run_reloading(config: ServerConfig, url: str) -> None:
    """Serve for development: the app is made anew when a file of the package changes."""
    os.environ[_CONFIG], os.environ[_DATABASE] = config.model_dump_json(), url
    uvicorn.run(
        "starforge_rewards.server.process:reloaded",
        factory=True,
        reload=True,
        reload_dirs=[str(Path(__file__).parents[1])],
        host=config.host,
        port=config.port,
        **_options(config),
    )


def reloaded() -> FastAPI:
    """The app of a process that `run_reloading` started."""
    config = ServerConfig.model_validate_json(os.environ[_CONFIG])
    app = create_app(config, Database.open(os.environ[_DATABASE]))
    mount(app)
    return app


def _options(config: ServerConfig) -> dict[str, Any]:
    return {
        "lifespan": "on",
        "log_config": LOGGING,
        "server_header": False,
        "proxy_headers": bool(config.trusted_proxies),
        "forwarded_allow_ips": list(config.trusted_proxies),
        "timeout_graceful_shutdown": config.shutdown_timeout,
    }
