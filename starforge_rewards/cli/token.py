"""`starforge token`: who may use a server, written into its database directly."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from starforge_rewards.cli import plain, screen
from starforge_rewards.registry.open import open_database

if TYPE_CHECKING:
    from starforge_rewards.registry.tokens import TokenRecord, Tokens

app = typer.Typer(help="Who may use a server; works on its database directly.")

DatabaseUrl = Annotated[
    str | None, typer.Option("--database", help="Default: SF_DATABASE_URL, else the user's file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("create")
def create(
    owner: Annotated[str, typer.Argument(help="Whose token it is; writes under <owner>/.")],
    admin: Annotated[bool, typer.Option("--admin", help="Reads everybody's rubrics.")] = False,
    label: Annotated[str, typer.Option(help="What it is for, to tell it from others.")] = "",
    database: DatabaseUrl = None,
    json: AsJson = False,
) -> None:
    """Make a token and print it, this once."""
    with _tokens(database) as tokens:
        new = tokens.create(owner, admin=admin, label=label)
    if json:
        screen.print_json({"id": new.id, "owner": new.owner, "token": new.token})
        return
    plain.show(new.token)
    screen.tell(f"Token {new.id} of {new.owner}: it is shown this once. Set SF_TOKEN to it.")


@app.command("list")
def list_tokens(database: DatabaseUrl = None, json: AsJson = False) -> None:
    """List all tokens, the revoked ones too; what they are is kept nowhere."""
    with _tokens(database) as tokens:
        found = tokens.list()
    if json:
        screen.print_json({"tokens": [one.model_dump(mode="json") for one in found]})
        return
    columns = ("id", "owner", "admin", "label", "created", "revoked")
    plain.show_table(columns, map(_cells, found))


@app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `token list` shows it.")],
    database: DatabaseUrl = None,
    json: AsJson = False,
) -> None:
    """Revoke a token: it opens nothing from this moment."""
    with _tokens(database) as tokens:
        tokens.revoke(token_id)
    if json:
        screen.print_json({"id": token_id, "revoked": True})
    else:
        plain.show(f"token {token_id} is revoked")


def _cells(one: "TokenRecord") -> Iterator[str]:
    yield one.id
    yield one.owner
    yield "admin" if one.admin else ""
    yield one.label
    yield plain.moment(one.created_at)
    yield plain.moment(one.revoked_at) if one.revoked_at else ""


@contextmanager
def _tokens(url: str | None) -> "Iterator[Tokens]":
    with open_database(url) as database:
        from starforge_rewards.registry.tokens import Tokens  # late: the server's packages

        yield Tokens(database)
