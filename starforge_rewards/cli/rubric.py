"""`starforge rubric`: rubrics with every version, on a server (`SF_URL`) or on a database."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from pydantic import ValidationError

from starforge_rewards import documents
from starforge_rewards.cli import plain, score, screen
from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry.open import open_registry, open_resolver
from starforge_rewards.registry.protocol import Registry, Rubrics
from starforge_rewards.registry.records import RubricQuery, body_of
from starforge_rewards.rubrics.diff import diff as compare
from starforge_rewards.rubrics.lint import lint as advise
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.run import Usage
from starforge_rewards.settings import Settings

app = typer.Typer(help="Rubrics with every version, on a server or on a database.")

Named = Annotated[str, typer.Argument(metavar="REF", help="<owner>/<name>.")]
Pinned = Annotated[str, typer.Argument(metavar="REF", help="<owner>/<name>, or @<version> of it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="Lines of one page.")]
Cursor = Annotated[str | None, typer.Option(help="Go on where a page ended.")]


@app.command("put")
def put(
    ref: Named,
    file: Annotated[Path, typer.Argument(help="The whole rubric, YAML or JSON.")],
    expected_version: Annotated[
        int | None, typer.Option(min=0, help="Write only over this version; 0: only a new one.")
    ] = None,
    as_owner: screen.AsOwner = None,
    json: AsJson = False,
) -> None:
    """Create a rubric, or write its next version. Advice on the text goes to standard error."""
    named, rubric = Ref.parse(ref), documents.load(file, Rubric)
    with open_registry(Settings.read(), as_owner) as registry:
        advice = advise(rubric, _current(registry.rubrics, named))
        written = registry.rubrics.put(named, rubric, expected_version=expected_version)
    plain.show_advice(advice, aside=True)
    if json:
        screen.print_json(written.model_dump(mode="json"))
    else:
        outcome = "created" if written.created else "written" if written.changed else "unchanged"
        plain.show(f"{written.ref} {outcome}")


@app.command("show")
def show(ref: Pinned, as_owner: screen.AsOwner = None, json: AsJson = False) -> None:
    """Print a version's whole text, as a file that may be put again."""
    with open_registry(Settings.read(), as_owner) as registry:
        current = registry.rubrics.show(Ref.parse(ref))
    if json:
        screen.print_json(current.model_dump(mode="json"))
    else:
        plain.show(plain.revision_text(current))


@app.command("list")
def list_rubrics(
    search: Annotated[str, typer.Option(help="Words of name, owner or description.")] = "",
    mine: Annotated[bool, typer.Option("--mine", help="Only my own.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="The archived ones.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_owner: screen.AsOwner = None,
    json: AsJson = False,
) -> None:
    """List my rubrics and the public ones."""
    said = {"search": search, "mine": mine, "archived": archived, "limit": limit, "cursor": cursor}
    try:
        query = RubricQuery.model_validate(said)
    except ValidationError as error:
        raise InputError.of(error) from None
    with open_registry(Settings.read(), as_owner) as registry:
        page = registry.rubrics.list(query)
    if json:
        screen.print_json(page.model_dump(mode="json"))
        return
    rows = (
        (f"{one.owner}/{one.name}@{one.version}", one.visibility, one.description)
        for one in page.items
    )
    plain.show_table(("rubric", "who may read", "description"), rows)
    plain.show_next(page.next)


@app.command("revisions")
def revisions(ref: Named, as_owner: screen.AsOwner = None, json: AsJson = False) -> None:
    """Print every version's whole text, newest first."""
    with open_registry(Settings.read(), as_owner) as registry:
        found = registry.rubrics.revisions(Ref.parse(ref))
    if json:
        screen.print_json({"revisions": [one.model_dump(mode="json") for one in found]})
    else:
        plain.show("\n---\n".join(map(plain.revision_text, found)))


@app.command("diff")
def diff(
    before: Annotated[str, typer.Argument(metavar="REF", help="<owner>/<name>@<version>.")],
    after: Annotated[
        str | None, typer.Argument(metavar="REF", help="Default: the current version.")
    ] = None,
    from_version: Annotated[
        int | None, typer.Option("--from", min=1, help="In place of REF@<version>.")
    ] = None,
    to_version: Annotated[
        int | None, typer.Option("--to", min=1, help="In place of the second REF.")
    ] = None,
    as_owner: screen.AsOwner = None,
    json: AsJson = False,
) -> None:
    """Show what changes between two versions, and which criteria are asked again."""
    old, new = _compared(before, after, from_version, to_version)
    with open_registry(Settings.read(), as_owner) as registry:
        newer = registry.rubrics.show(new).resolved()
        if old.version is None and newer.ref and newer.ref.version:
            if newer.ref.version == 1:
                raise InputError(f"{newer} is the first version: there is none before it")
            old = old.model_copy(update={"version": newer.ref.version - 1})
        older = registry.rubrics.show(old).resolved()
    found = compare(older.rubric, newer.rubric)
    if json:
        about = {"before": str(older), "after": str(newer)}
        screen.print_json(about | found.model_dump(mode="json"))
    else:
        plain.show_diff(older, newer, found)


@app.command("usage")
def usage(ref: Pinned, as_owner: screen.AsOwner = None, json: AsJson = False) -> None:
    """List which runs cited which version, and as what."""
    with open_registry(Settings.read(), as_owner) as registry:
        found = registry.rubrics.usage(Ref.parse(ref))
    if json:
        screen.print_json({"usage": [one.model_dump(mode="json") for one in found]})
        return
    columns = ("run", "version", "as", "status", "score", "owner", "recorded")
    plain.show_table(columns, map(_usage_cells, found))


@app.command("resolve")
def resolve(ref: Pinned, as_owner: screen.AsOwner = None, json: AsJson = False) -> None:
    """Resolve a reference the way a job does."""
    held = _Opened(as_owner).resolve(ref)
    named = held.ref or Ref.parse(ref)
    if json:
        about = {"ref": str(named), **named.model_dump(), "kind": held.rubric.kind}
        body = body_of(held.rubric, held.rubric.visibility)
        screen.print_json(about | {"digest": held.digest, "rubric": body})
    else:
        unversioned = " (unversioned)" if held.unversioned else ""
        plain.show(f"{named}{unversioned} {held.digest}")


@app.command("lint")
def lint(
    named: Annotated[str, typer.Argument(metavar="FILE|REF", help="A file, or <owner>/<name>.")],
    as_owner: screen.AsOwner = None,
    json: AsJson = False,
) -> None:
    """Advise on how a rubric is written. Exit code 1 where there is advice."""
    advice = advise(score.resolve(named, _Opened(as_owner)).rubric)
    if json:
        screen.print_json({"advice": [one.model_dump() for one in advice]})
    else:
        plain.show_advice(advice)
    if advice:
        raise typer.Exit(1)


@app.command("archive")
def archive(
    ref: Named,
    undo: Annotated[bool, typer.Option("--undo", help="Show it in listings again.")] = False,
    as_owner: screen.AsOwner = None,
    json: AsJson = False,
) -> None:
    """Hide a rubric from listings; everything else works on."""
    with open_registry(Settings.read(), as_owner) as registry:
        current = registry.rubrics.archive(Ref.parse(ref), not undo)
    if json:
        screen.print_json(current.model_dump(mode="json"))
    else:
        state = "archived" if current.archived else "in listings again"
        plain.show(f"{current.owner}/{current.name} is {state}")


def _usage_cells(one: Usage) -> Iterator[str]:
    yield one.run
    yield f"@{one.version}"
    yield plain.role_text(one.role, one.runner)
    yield one.status
    yield plain.number(one.score)
    yield one.owner
    yield plain.moment(one.created_at)


class _Opened(NamedTuple):
    """Opens the registry only where a reference is to be resolved: a file needs none."""

    as_owner: str | None

    def resolve(self, text: str) -> ResolvedRubric:
        with open_resolver(Settings.read(), self.as_owner) as found:
            resolver = found.rubrics if isinstance(found, Registry) else found
            return resolver.resolve(text)


def _current(rubrics: Rubrics, ref: Ref) -> Rubric | None:
    """What a write replaces, where it can be read."""
    with suppress(NotFound, ValidationError):
        return rubrics.show(ref).resolved().rubric
    return None


def _compared(before: str, after: str | None, start: int | None, end: int | None) -> list[Ref]:
    """Two references; a version that neither says is left open."""
    pair = [Ref.parse(before), Ref.parse(after or before.partition("@")[0])]
    for at, version in enumerate((start, end)):
        if version is not None and pair[at].version is not None:
            raise InputError(f"{pair[at]} says its version already: leave out --from and --to")
        if version is not None:
            pair[at] = pair[at].model_copy(update={"version": version})
    return pair
