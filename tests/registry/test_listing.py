"""Listing and search beside a model that reads every rubric in plain Python."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, event

from starforge_rewards.errors import InputError
from starforge_rewards.registry import cursor, listing, schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import Listed, RubricQuery, User
from starforge_rewards.rubrics.ref import Ref
from tests.registry.samples import put, registry

PROSE = (
    "Answers, answering; the ANSWER.",
    "Straße ÉCOLE école",
    "日本語 の rubric",
    "snake_case re-use 3.5",
    "…!?",
    "",
    "answer rubric safety",
)
SEARCHES = (
    "", "  ", "a", "answer", "ANSWER rubric", "rubric safety answ", "strasse", "STRASSE", "é",
    "école", "e", "日", "snake", "case snake", "3", "3.5", "!?", "_", "%", "bob", "carol b",
    "x" * 70, "answering answers", "an ans", "-", "b.c", "🙂", "İ", "a b",
)  # fmt: skip


class Kept(NamedTuple):
    owner: str
    name: str
    description: str
    public: bool
    archived: bool


OWNERS = ("alice", "bob", "Carol")
rubrics = st.builds(
    Kept,
    owner=st.sampled_from(OWNERS),
    name=st.sampled_from(["a", "A", "b-c", "b.c", "answer", "Zeta", "answers-9"]),
    description=st.sampled_from(PROSE),
    public=st.booleans(),
    archived=st.booleans(),
)
users = st.builds(User, owner=st.sampled_from(OWNERS), admin=st.booleans())
queries = st.builds(
    RubricQuery,
    search=st.sampled_from(SEARCHES),
    mine=st.booleans(),
    archived=st.booleans(),
    limit=st.integers(min_value=1, max_value=9),
)


def pages(database: Database, user: User, query: RubricQuery) -> Iterator[tuple[Listed, ...]]:
    while True:
        page = listing.page(database, user, query)
        yield page.items
        if page.next is None:
            return
        query = query.model_copy(update={"cursor": page.next})


def expected(kept: list[Kept], user: User, query: RubricQuery) -> list[tuple[str, str]]:
    """What is seen, in order, by the letter of the specification."""
    words = words_in(query.search)
    if query.search.strip() and not words:
        return []
    seen = [one for one in kept if visible(one, user, query)]
    lead = leading(words, seen)
    found = []
    for one in seen:
        own = words_in(f"{one.owner} {one.name} {one.description}")
        if all(any(have.startswith(word) for have in own) for word in words):
            first = min((have for have in own if have.startswith(lead)), default="")
            found.append((first if words else "", one.owner, one.name))
    return [(owner, name) for _, owner, name in sorted(found)]


def leading(words: list[str], seen: list[Kept]) -> str:
    """The word with the fewest lines, of those that no other implies; the longest of several."""
    whole = [word for word in words if not any(o != word and o.startswith(word) for o in words)]
    lines = [
        have
        for one in seen
        for have in set(words_in(" ".join((one.owner, one.name, one.description))))
    ]

    def rank(word: str) -> tuple[int, int, int]:
        count = sum(have.startswith(word) for have in lines)
        return count, -len(word), words.index(word)

    return min(whole, key=rank, default="")


def visible(one: Kept, user: User, query: RubricQuery) -> bool:
    own = one.owner == user.owner
    if one.archived != query.archived or (query.mine and not own):
        return False
    return own or user.admin or (one.public and not query.archived)


def words_in(text: str) -> list[str]:
    return [word[:64] for word in re.split(r"[\W_]+", text.casefold()) if word]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rubrics=st.lists(rubrics, max_size=18, unique_by=lambda one: (one.owner, one.name)),
    asked=st.lists(st.tuples(users, queries), min_size=12, max_size=12),
)
def test_pages_lose_no_line_and_double_none(
    database: Database, rubrics: list[Kept], asked: list[tuple[User, RubricQuery]]
) -> None:
    with database.write() as connection:
        for table in (schema.words, schema.revisions, schema.rubrics):
            connection.execute(delete(table))
    for one in rubrics:
        keep(database, one)
    for user, query in asked:
        shown = list(pages(database, user, query))
        lines = [(line.owner, line.name) for page in shown for line in page]
        assert lines == expected(rubrics, user, query)
        assert all(len(page) == query.limit for page in shown[:-1])
        assert len(shown) == 1 or shown[-1]


def keep(database: Database, one: Kept) -> None:
    owner = registry(database, one.owner)
    ref = Ref(owner=one.owner, name=one.name)
    visibility = "public" if one.public else "private"
    put(owner, str(ref), description=one.description, visibility=visibility)
    if one.archived:
        owner.rubrics.archive(ref, archived=True)


def found(database: Database, search: str, owner: str = "bob") -> list[str]:
    page = listing.page(database, User(owner=owner), RubricQuery(search=search))
    return [f"{line.owner}/{line.name}" for line in page.items]


def test_an_edit_moves_a_rubric_between_who_may_see_it(database: Database) -> None:
    alice = registry(database, "alice")
    put(alice, "alice/x", description="first words")
    assert found(database, "first") == []
    put(alice, "alice/x", description="first words", visibility="public")
    assert found(database, "first") == found(database, "") == ["alice/x"]
    put(alice, "alice/x", description="second words", visibility="public")
    assert found(database, "first") == []
    assert found(database, "second") == ["alice/x"]
    alice.rubrics.archive(Ref.parse("alice/x"), archived=True)
    assert found(database, "second") == found(database, "", "alice") == []
    put(alice, "alice/x", description="third words", visibility="public")
    assert found(database, "third") == []
    alice.rubrics.archive(Ref.parse("alice/x"), archived=False)
    assert found(database, "third") == ["alice/x"]
    put(alice, "alice/x", description="third words", visibility="private")
    assert found(database, "third") == []
    assert found(database, "third", "alice") == ["alice/x"]


def test_a_line_says_what_the_current_version_says(database: Database) -> None:
    alice = registry(database, "alice")
    put(alice, "alice/x", description="One.")
    put(alice, "alice/x", description="Two.", visibility="public")
    (line,) = alice.rubrics.list(RubricQuery()).items
    assert (line.version, line.kind, line.visibility) == (2, "weighted", "public")
    assert (line.description, line.archived) == ("Two.", False)
    assert line.updated_at == alice.rubrics.show(Ref.parse("alice/x")).created_at


def test_long_texts_and_long_searches_are_found(database: Database) -> None:
    alice = registry(database, "alice")
    text = " ".join(f"w{number:03}" for number in range(150)) + " " + "y" * 100
    put(alice, "alice/x", description=text)
    assert found(database, text, "alice") == ["alice/x"]
    assert found(database, f"{text} none", "alice") == []
    put(alice, "alice/long", description=" ".join(f"w{number:05}" for number in range(20_000)))
    assert found(database, "w00001 w00150", "alice") == ["alice/long"]


DAMAGED = (
    "", "x", "=", "====", "AAAAA", "é", "\ud800", "\0", "🙂" * 5, "null", "W10", "WyJhIl0",
    cursor.encode(["a"]), cursor.encode(["a", "b"]), cursor.encode(["a", "b", "c", "d"]),
    cursor.encode(["a", "b", "\0"]), cursor.encode(["a", "\ud800", "c"]),
    "WzEsMiwzXQ", "eyJhIjoxfQ", "W" * 100_000, "W1tb" * 50_000, "WzE" + "x" * 9_000,
    cursor.encode(["a", "b", "c"])[:-3],
)  # fmt: skip


@pytest.mark.parametrize("given", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_cursor_is_refused(database: Database, given: str) -> None:
    for search in ("", "a"):
        query = RubricQuery(search=search, cursor=given)
        with pytest.raises(InputError, match="cursor: is no cursor of this listing"):
            listing.page(database, User(owner="alice"), query)


@given(given=st.text(max_size=40) | st.binary(max_size=40).map(lambda data: data.hex()))
def test_any_text_is_a_key_or_is_refused(given: str) -> None:
    try:
        key = cursor.decode(given, 3)
    except InputError as error:
        key = (str(error.field), "is", "refused")
    assert len(key) == 3
    assert key[0] == "cursor" or cursor.decode(cursor.encode(key), 3) == key


@given(key=st.lists(st.text(st.characters(categories=["L", "N"])), min_size=1, max_size=3))
def test_a_key_comes_back_from_its_cursor(key: list[str]) -> None:
    given = cursor.encode(key)
    assert re.fullmatch("[A-Za-z0-9_-]+", given)
    assert cursor.decode(given, len(key)) == tuple(key)


@pytest.mark.parametrize("admin", [False, True])
@pytest.mark.parametrize("search", ["", "ans", "ans b"])
@pytest.mark.parametrize("mine", [False, True])
@pytest.mark.parametrize("archived", [False, True])
def test_every_page_is_a_walk_along_an_index(
    tmp_path: Path, admin: bool, search: str, mine: bool, archived: bool
) -> None:
    path = tmp_path / "registry.sqlite"
    database = Database.open(f"sqlite:///{path}")
    statements: list[tuple[str, tuple[object, ...]]] = []

    def note(_c: object, _u: object, text: str, given: tuple[object, ...], *_: object) -> None:
        if text.startswith("SELECT"):
            statements.append((text, given))

    event.listen(database.engine, "before_cursor_execute", note)
    for at in (None, cursor.encode(["answer", "bob", "x"])):
        query = RubricQuery(search=search, mine=mine, archived=archived, cursor=at)
        listing.page(database, User(owner="alice", admin=admin), query)
    database.close()
    with sqlite3.connect(path) as connection:
        for text, given in statements:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", given)]
            assert plan
            for step in plan:
                assert "TEMP B-TREE" not in step
                assert not re.match(r"SCAN (rubrics|words)\S*(?! USING INDEX)$", step)
    connection.close()
