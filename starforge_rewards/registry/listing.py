"""The listing of rubrics and its search: every page is a walk along an index.

Each rubric has one audience: `*` for everyone, its owner, or `-owner` once archived. So "mine and
the public ones" are two walks in the same order, merged, whatever else the table holds. A search is
by the beginnings of words; the rarest leads the walk, the others are looked up for each line.
"""

import re
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    tuple_,
    union_all,
)

from starforge_rewards.registry import cursor, schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import Listed, Listing, RubricQuery, User

_EVERYONE = "*"
_WORD = re.compile(r"[^\W_]+")
_LONGEST = 64
_MOST_WORDS = 200
_ORDER = ("word", "owner", "name")
_WEIGHED = 8
"""Words of a search, the longest, of which the rarest leads."""
_MANY = 200
"""Lines of a word beyond which it is not rare, and not counted further."""
_Key = dict[str, str] | None
_LAST = "\U0010ffff"
_FORGET = delete(schema.words).where(schema.words.c.rubric_id == bindparam("of"))
_ENTER = insert(schema.words)
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
    """Bring the words that find a rubric up to date, in the transaction that changed it."""
    connection.execute(_FORGET, {"of": entry.rubric_id})
    connection.execute(
        _ENTER,
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
    key = None
    if query.cursor is not None:
        key = dict(zip(_ORDER, cursor.decode(query.cursor, 3), strict=True))
    scopes = _scopes(sought, user, query)
    # One statement sees one state: a rubric that is published meanwhile is not there twice.
    with database.read() as connection:
        if sought:
            sought = _rarest_first(connection, sought, scopes, key)
        walks = [_walk(sought, scope, key, query) for scope in scopes]
        merged = union_all(*(select(walk.subquery()) for walk in walks))
        found = connection.execute(merged if len(walks) > 1 else walks[0]).mappings().all()
    rows = sorted(found, key=lambda row: (row["word"], row["owner"], row["name"]))
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    last = shown[-1] if more else None
    return Listing(
        items=tuple(Listed.model_validate({key: row[key] for key in _SHOWN}) for row in shown),
        next=cursor.encode((last["word"], last["owner"], last["name"])) if last else None,
    )


def _scopes(sought: list[str], user: User, query: RubricQuery) -> list[ColumnElement[bool]]:
    """Whose rubrics are walked; each is the beginning of an index."""
    table = schema.words if sought else schema.rubrics
    if query.archived and (query.mine or not user.admin):
        return [table.c.audience == f"-{user.owner}"]
    shown = schema.rubrics.c.archived == query.archived
    if query.mine:
        return [and_(table.c.owner == user.owner, shown)]
    if user.admin:
        return [shown]
    return [table.c.audience == user.owner, table.c.audience == _EVERYONE]


def _rarest_first(
    connection: Connection, sought: list[str], scopes: list[ColumnElement[bool]], key: _Key
) -> list[str]:
    """The words with the one first whose lines are walked; a later page keeps that of the first."""
    whole = [word for word in sought if not _implied(word, sought)]
    longest_first = sorted(whole, key=len, reverse=True)
    if key is not None:
        led = [word for word in whole if key["word"].startswith(word)]
    elif len(whole) > 1:
        few = longest_first[:_WEIGHED]
        counts = [_count(word, scope) for word in few for scope in scopes]
        found = iter(connection.execute(select(*counts)).one())
        lines = {word: sum(next(found) for _ in scopes) for word in few}
        led = [min(few, key=lambda word: lines[word])]
    else:
        led = whole
    return list(dict.fromkeys(led + longest_first))


def _implied(word: str, sought: list[str]) -> bool:
    return any(other != word and other.startswith(word) for other in sought)


def _count(word: str, scope: ColumnElement[bool]) -> ScalarSelect[int]:
    """How many lines a word has, as far as that matters."""
    words = schema.words
    lines = select(words.c.word).join(schema.rubrics, schema.rubrics.c.id == words.c.rubric_id)
    some = lines.where(scope, _begins(words, word)).limit(_MANY).subquery()
    return select(func.count()).select_from(some).scalar_subquery()


def _walk(
    sought: list[str], scope: ColumnElement[bool], key: _Key, query: RubricQuery
) -> Select[*tuple[Any, ...]]:
    """One more line than a page shows, in order, from an index."""
    rubrics, words = schema.rubrics, schema.words
    shown = [rubrics.c[key] for key in _SHOWN]
    table = words if sought else rubrics
    names = ["name"] if query.mine and not query.archived else ["owner", "name"]
    walk: Select[*tuple[Any, ...]]
    if sought:
        names.insert(0, "word")
        lead, *others = sought
        walk = select(words.c.word, *shown).join(rubrics, rubrics.c.id == words.c.rubric_id)
        walk = walk.where(*(_has(word) for word in others))
        walk = walk.where(words.c.word < lead + _LAST, ~_earlier(lead))
        if key is None or key["word"] < lead:
            walk, key = walk.where(words.c.word >= lead), None
    else:
        walk = select(literal("").label("word"), *shown)
    order = [table.c[name] for name in names]
    if key is not None:
        walk = walk.where(tuple_(*order) > tuple_(*(literal(key[name]) for name in names)))
    return walk.where(scope).order_by(*order).limit(query.limit + 1)


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
