"""The listing of rubrics and its search: every page is a walk along an index.

Each rubric has one audience: `*` for everyone, its owner, or `-owner` once archived. So "mine and
the public ones" are two walks in the same order, merged, whatever else the table holds. A search is
by the beginnings of words; the first word leads the walk, the others are looked up for each line.
"""

import re
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    delete,
    insert,
    literal,
    select,
    tuple_,
    update,
)

from starforge_rewards.registry import cursor, schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import Listed, Listing, RubricQuery, User

_EVERYONE = "*"
_WORD = re.compile(r"[^\W_]+")
_LONGEST = 64
_MOST_WORDS = 200
_LAST = "\U0010ffff"
_SHOWN = ("owner", "name", "version", "kind", "visibility", "description", "archived", "updated_at")


class Entry(NamedTuple):
    """What decides where a rubric is listed and what finds it."""

    rubric_id: int
    owner: str
    name: str
    description: str
    visibility: str
    archived: bool

    @property
    def audience(self) -> str:
        if self.archived:
            return f"-{self.owner}"
        return _EVERYONE if self.visibility == "public" else self.owner


def words_of(text: str) -> list[str]:
    """The words that find a text: letters and digits, without regard to case."""
    found = (word[:_LONGEST] for word in _WORD.findall(text.casefold()))
    return list(dict.fromkeys(found))[:_MOST_WORDS]


def enter(connection: Connection, entry: Entry) -> None:
    """Bring a rubric's line in the listing up to date, in the transaction that changed it."""
    rubrics, words = schema.rubrics, schema.words
    connection.execute(
        update(rubrics).where(rubrics.c.id == entry.rubric_id).values(audience=entry.audience)
    )
    connection.execute(delete(words).where(words.c.rubric_id == entry.rubric_id))
    connection.execute(
        insert(words),
        [
            {
                "rubric_id": entry.rubric_id,
                "word": word,
                "audience": entry.audience,
                "owner": entry.owner,
                "name": entry.name,
            }
            for word in words_of(f"{entry.owner} {entry.name} {entry.description}")
        ],
    )


def page(database: Database, user: User, query: RubricQuery) -> Listing:
    """One page of what a user may see.

    Raises:
        InputError: the cursor is none of this listing.
    """
    sought = words_of(query.search)
    if query.search.strip() and not sought:
        return Listing(items=())
    walks = [_walk(sought, audience, user, query) for audience in _audiences(user, query)]
    with database.read() as connection:
        found = [row for walk in walks for row in connection.execute(walk).mappings()]
    rows = sorted(found, key=lambda row: (row["word"], row["owner"], row["name"]))
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    last = shown[-1] if more else None
    return Listing(
        items=tuple(Listed.model_validate({key: row[key] for key in _SHOWN}) for row in shown),
        next=cursor.encode((last["word"], last["owner"], last["name"])) if last else None,
    )


def _audiences(user: User, query: RubricQuery) -> list[str | None]:
    """None: everybody's, for an administrator."""
    if user.admin and not query.mine:
        return [None]
    if query.archived:
        return [f"-{user.owner}"]
    return [user.owner, _EVERYONE]


def _walk(
    sought: list[str], audience: str | None, user: User, query: RubricQuery
) -> Select[*tuple[Any, ...]]:
    """One more line than a page shows, in order, from an index."""
    rubrics, words = schema.rubrics, schema.words
    shown = [rubrics.c[key] for key in _SHOWN]
    table = words if sought else rubrics
    order: list[ColumnElement[str]] = [table.c.owner, table.c.name]
    walk: Select[*tuple[Any, ...]]
    if sought:
        lead = max(sought, key=len)
        order.insert(0, words.c.word)
        walk = select(words.c.word, *shown).join(rubrics, rubrics.c.id == words.c.rubric_id)
        walk = walk.where(_begins(words, lead), ~_earlier(lead))
        walk = walk.where(*(_has(word) for word in sought if word != lead))
    else:
        walk = select(literal("").label("word"), *shown)
    if audience is None:
        walk = walk.where(rubrics.c.archived == query.archived)
    else:
        walk = walk.where(table.c.audience == audience)
    if query.mine:
        walk = walk.where(table.c.owner == user.owner)
    if query.cursor is not None:
        key = cursor.decode(query.cursor, 3)[-len(order) :]
        walk = walk.where(tuple_(*order) > tuple_(*map(literal, key)))
    return walk.order_by(*order).limit(query.limit + 1)


def _begins(words: FromClause, beginning: str) -> ColumnElement[bool]:
    return and_(words.c.word >= beginning, words.c.word < beginning + _LAST)


def _earlier(lead: str) -> ColumnElement[bool]:
    """Another word of the same rubric that matches stands before: this line would be its second."""
    other = schema.words.alias()
    words = schema.words
    return (
        select(other.c.word)
        .where(other.c.rubric_id == words.c.rubric_id, other.c.word < words.c.word)
        .where(other.c.word >= lead)
        .exists()
    )


def _has(word: str) -> ColumnElement[bool]:
    other = schema.words.alias()
    matches = other.c.rubric_id == schema.words.c.rubric_id
    return select(other.c.word).where(matches, _begins(other, word)).exists()
