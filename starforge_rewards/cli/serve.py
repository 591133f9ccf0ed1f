"""`starforge serve`: rubrics, runs, the judge and the console over HTTP, in one process."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from starforge_rewards.cli import screen
from starforge_rewards.judge.config import load_judge
from starforge_rewards.settings import Settings, default_database

if TYPE_CHECKING:
    from starforge_rewards.server.config import ServerConfig

_ANY = {"0.0.0.0", "::"}  # noqa: S104  # only to show them as this machine


def serve(
    config: Annotated[
        str, typer.Argument(help="A server file, or a shipped name: local, cluster.")
    ] = "local",
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0: any free one.")] = None,
    judge: Annotated[
        str | None, typer.Option(help="A judge file, a shipped name, or pool:NAME.")
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="Its URL; default: SF_DATABASE_URL, else a SQLite file.")
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Reload when code changes.")] = False,
) -> None:
    """Serve until stopped; the database is made, or brought up to date, first.

    The rubrics that ship with the project are public in it.
    """
    from starforge_rewards.registry import shipped  # late: the server's packages
    from starforge_rewards.registry.database import Database
    from starforge_rewards.registry.tokens import Tokens
    from starforge_rewards.server import process
    from starforge_rewards.server.config import load_server

    given = {"host": host, "port": port, "judge": judge}
    said = {key: value for key, value in given.items() if value is not None}
    settled = load_server(config).model_copy(update=said)
    process.check_judge(load_judge(settled.judge), screen.tell)
    url = database or Settings.read().database_url or default_database()
    with closing(Database.open(url)) as opened, process.listen(settled) as listening:
        shipped.publish(opened)
        settled = settled.model_copy(update={"port": listening.getsockname()[1]})
        has_token = any(token.revoked_at is None for token in Tokens(opened).list())
        where = f" --database {opened.shown}" if database else ""
        create = None if has_token else f"starforge token create OWNER{where}"
        _greet(settled, opened.shown, create)
        if not reload:
            process.run(settled, opened, listening)
            return
    process.run_reloading(settled, url)


def _greet(config: "ServerConfig", database: str, create: str | None) -> None:
    """Says where it is; `create` makes the first token, where there is none."""
    host = "localhost" if config.host in _ANY else config.host
    address = f"http://{f'[{host}]' if ':' in host else host}:{config.port}"
    lines = [
        f"Starforge serves {address}",
        f"  console   {address}/console",
        f"  database  {database}",
        "  log in    with a token that `starforge token create` printed",
    ]
    if create is not None:
        lines[-1:] = ["  log in    nobody has a token yet: make one with", f"            {create}"]
    for line in lines:
        screen.err.print(line, soft_wrap=True, markup=False)
