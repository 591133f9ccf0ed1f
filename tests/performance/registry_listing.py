"""A page of 50 out of 100,000 rubrics, beside the same page out of 1,000.

Nine in ten are public, of fifty owners. `needle` is in 60 descriptions of either, `standard` in
all. The rubrics are written in bulk, with the words that the registry itself would enter.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from sqlalchemy import insert, text

from starforge_rewards.registry import cursor, listing, schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.listing import Entry
from starforge_rewards.registry.records import Listing, RubricQuery, User
from tests import postgresql
from tests.performance.ratio import Ratio, alternate, at_most, seconds

USER = User(owner="owner-07")
ADMIN = User(owner="root", admin=True)
MATCHES = 60
OWNERS = 50


class Size(NamedTuple):
    many: int
    few: int
    pairs: int
    calls: int
    """Of each side of a pair."""


FULL = Size(100_000, 1_000, 21, 5)
QUICK = Size(5_000, 1_000, 9, 3)


class Page(NamedTuple):
    """What is asked for, and how many lines there must be."""

    name: str
    user: User
    query: RubricQuery
    lines: int = 50


def pages() -> list[Page]:
    last = cursor.encode(("standard", "owner-49", "rubric-0"))
    shared = RubricQuery(search="standard")
    return [
        Page("first page", USER, RubricQuery()),
        Page("last page", USER, RubricQuery(cursor=last), lines=0),
        Page("first page, administrator", ADMIN, RubricQuery()),
        Page("last page, administrator", ADMIN, RubricQuery(cursor=last), lines=0),
        Page("search for a word of 60", USER, RubricQuery(search="needle")),
        Page("search for the beginning of one", USER, RubricQuery(search="need")),
        Page("search for a word of all", USER, shared),
        Page("search's last page", USER, shared.model_copy(update={"cursor": last}), lines=0),
        Page("search for two words", USER, RubricQuery(search="needle standard")),
        Page("search among mine", USER, RubricQuery(search="standard", mine=True), lines=0),
    ]


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        urls = {"SQLite": [f"sqlite:///{folder / each}" for each in ("many", "few")]}
        if postgresql.program("initdb") is not None:
            server = stack.enter_context(postgresql.server())
            urls["PostgreSQL"] = [server.new_database() for _ in range(2)]
        for kind, (first, second) in urls.items():
            many, few = Database.open(first), Database.open(second)
            stack.callback(many.close)
            stack.callback(few.close)
            build(many, size.many)
            build(few, size.few)
            for page in pages():
                yield Ratio(
                    what=f"time of a listing's {page.name}, {kind}",
                    size=f"{size.many} / {size.few}",
                    pairs=alternate(_work(many, page, size), _work(few, page, size), size.pairs),
                    target=at_most(2),
                )


def _work(database: Database, page: Page, size: Size) -> Callable[[], float]:
    def once() -> Listing:
        return listing.page(database, page.user, page.query)

    if page.lines and len(once().items) != page.lines:
        raise RuntimeError(f"{page.name}: {len(once().items)} lines")
    return lambda: seconds(lambda: [once() for _ in range(size.calls)])


def build(database: Database, count: int) -> None:
    """`count` rubrics, in one transaction."""
    rubrics: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for number in range(count):
        entry = _entry(number, count)
        rubrics.append(_row(entry))
        about = {"rubric_id": entry.rubric_id, "audience": entry.audience}
        about |= {"owner": entry.owner, "name": entry.name}
        said = f"{entry.owner} {entry.name} {entry.description}"
        words += [about | {"word": word} for word in listing.words_of(said)]
    with database.write() as connection:
        for table, rows in ((schema.rubrics, rubrics), (schema.words, words)):
            for start in range(0, len(rows), 20_000):
                connection.execute(insert(table), rows[start : start + 20_000])
        connection.execute(text("ANALYZE"))


def _entry(number: int, count: int) -> Entry:
    rare = (
        " needle" if number % (count // MATCHES) == 0 and number // (count // MATCHES) < 60 else ""
    )
    return Entry(
        rubric_id=number + 1,
        owner=f"owner-{number % OWNERS:02}",
        name=f"rubric-{number:06}",
        description=f"The standard of team {number % 997}: answers that cite{rare} what is true.",
        visibility="private" if number % 10 == 9 else "public",
        archived=False,
    )


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.rubric_id,
        "owner": entry.owner,
        "name": entry.name,
        "version": 1,
        "kind": "weighted",
        "visibility": entry.visibility,
        "description": entry.description,
        "archived": False,
        "audience": entry.audience,
        "fingerprint": "",
        "updated_at": schema.timestamp(),
    }
