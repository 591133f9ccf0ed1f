"""`starforge run`: what was run, on which versions of which rubrics, and what came of it."""

from collections.abc import Iterator
from typing import Annotated

import typer
from pydantic import ValidationError

from starforge_rewards.cli import plain, screen
from starforge_rewards.cli.rubric import AsJson, Cursor, Limit
from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry.open import open_registry
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import Current, RunQuery
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.run import Citation, RunRecord
from starforge_rewards.settings import Settings

app = typer.Typer(help="What was run, on which versions of which rubrics.")


@app.command("list")
def list_runs(
    role: Annotated[str | None, typer.Option(help="Such as training_reward.")] = None,
    status: Annotated[str | None, typer.Option(help="running, finished or failed.")] = None,
    rubric: Annotated[
        str | None, typer.Option(help="Those that cite <owner>/<name>, or @<version> of it.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_owner: screen.AsOwner = None,
    json: AsJson = False,
) -> None:
    """List my runs, newest first."""
    said = {"role": role, "status": status, "rubric": rubric, "limit": limit, "cursor": cursor}
    try:
        query = RunQuery.model_validate(said)
    except ValidationError as error:
        raise InputError.of(error) from None
    with open_registry(Settings.read(), as_owner) as registry:
        page = registry.runs.list(query)
    if json:
        left_out = {"items": {"__all__": {"citations": True}}}  # `run show` has them
        screen.print_json(page.model_dump(mode="json", exclude=left_out))
        return
    columns = ("run", "as", "subject", "status", "score", "recorded")
    plain.show_table(columns, map(_cells, page.items))
    plain.show_next(page.next)


@app.command("show")
def show(
    run_id: Annotated[str, typer.Argument(metavar="ID", help="The run.")],
    as_owner: screen.AsOwner = None,
    json: AsJson = False,
) -> None:
    """Print a run and the whole text of each version that it cites."""
    with open_registry(Settings.read(), as_owner) as registry:
        record = registry.runs.show(run_id)
        texts = _cited(registry, record.citations)
        about = record.model_dump(mode="json", exclude={"citations"})
        if json:
            cited = [
                citation.model_dump() | {"text": text and text.model_dump(mode="json")}
                for citation, text in texts
            ]
            screen.print_json({**about, "citations": cited})
            return
        plain.show(plain.as_yaml({key: value for key, value in about.items() if value is not None}))
        for citation, text in texts:
            unreadable = f"# {citation.rubric}: you cannot read it any more"
            plain.show(f"---\n{plain.revision_text(text) if text else unreadable}")


def _cells(one: RunRecord) -> Iterator[str]:
    yield one.id
    yield plain.role_text(one.role, one.runner)
    yield one.subject
    yield one.status
    yield plain.number(one.outcome.score if one.outcome else None)
    yield plain.moment(one.created_at)


def _cited(
    registry: Registry, citations: tuple[Citation, ...]
) -> Iterator[tuple[Citation, Current | None]]:
    """Each citation with the version's text, where it can be read."""
    for citation in citations:
        try:
            yield citation, registry.rubrics.show(Ref.parse(citation.rubric))
        except NotFound:
            yield citation, None
