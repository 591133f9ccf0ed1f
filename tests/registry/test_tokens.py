import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from starforge_rewards.errors import InputError, NotFound, Unauthorized
from starforge_rewards.registry import schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import User
from starforge_rewards.registry.schema import timestamp
from starforge_rewards.registry.tokens import SESSION, Tokens


@pytest.fixture
def tokens(database: Database) -> Tokens:
    return Tokens(database)


def test_a_token_opens_its_owners_namespace(tokens: Tokens) -> None:
    one = tokens.create("alice")
    root = tokens.create("root", admin=True, label="laptop")
    assert tokens.check(one.token) == User(owner="alice")
    assert tokens.check(root.token) == User(owner="root", admin=True)
    assert re.fullmatch(r"sf_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", one.token)
    listed = tokens.list()
    assert [(each.id, each.owner, each.admin, each.label) for each in listed] == [
        (one.id, "alice", False, ""),
        (root.id, "root", True, "laptop"),
    ]
    assert all(each.revoked_at is None for each in listed)
    assert one.token not in str(listed)


def test_two_tokens_of_one_owner_are_apart(tokens: Tokens) -> None:
    first, second = tokens.create("alice"), tokens.create("alice")
    mixed = first.token[:20] + second.token[20:]
    with pytest.raises(Unauthorized):
        tokens.check(mixed)
    tokens.revoke(first.id)
    assert tokens.check(second.token).owner == "alice"


def test_secrets_are_nowhere_in_the_database(database: Database, tokens: Tokens) -> None:
    made = [tokens.create(f"owner{number}") for number in range(20)]
    sessions = [tokens.begin_session(one.token) for one in made]
    tokens.revoke(made[0].id)
    secrets = [one.token[-43:] for one in made] + sessions
    kept = everything(database)
    assert made[1].id in kept
    for secret in secrets:
        assert secret not in kept
    if database.engine.dialect.name == "sqlite":
        file = Path(database.engine.url.database or "")
        data = b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*"))
        assert made[1].id.encode() in data
        for secret in secrets:
            assert secret.encode() not in data


def everything(database: Database) -> str:
    with database.read() as connection:
        return "\n".join(
            str(connection.execute(select(table)).all()) for table in schema.metadata.sorted_tables
        )


def test_a_revoked_token_opens_nothing_nor_do_its_sessions(tokens: Tokens) -> None:
    one, other = tokens.create("alice"), tokens.create("alice")
    session, kept = tokens.begin_session(one.token), tokens.begin_session(other.token)
    tokens.revoke(one.id)
    for refused in (tokens.check, tokens.begin_session):
        with pytest.raises(Unauthorized, match="no valid token"):
            refused(one.token)
    with pytest.raises(Unauthorized):
        tokens.session_user(session)
    assert tokens.session_user(kept) == User(owner="alice")
    revoked = {each.id: each.revoked_at for each in tokens.list()}
    assert revoked[one.id] is not None
    assert revoked[other.id] is None
    for absent in (one.id, "0" * 16, "", one.token):
        with pytest.raises(NotFound):
            tokens.revoke(absent)


def test_a_session_lasts_its_time_and_not_longer(database: Database, tokens: Tokens) -> None:
    one = tokens.create("root", admin=True)
    session = tokens.begin_session(one.token)
    assert tokens.session_user(session) == User(owner="root", admin=True)
    table = schema.sessions
    with database.read() as connection:
        expires = connection.execute(select(table.c.expires_at)).scalar_one()
    created = tokens.list()[0].created_at
    assert timestamp(created + SESSION) <= expires < timestamp(created + SESSION * 1.01)
    with database.write() as connection:
        connection.execute(update(table).values(expires_at=timestamp()))
    with pytest.raises(Unauthorized):
        tokens.session_user(session)
    tokens.begin_session(one.token)
    with database.read() as connection:  # what is over is cleared away
        assert len(connection.execute(select(table)).all()) == 1


def test_a_session_that_is_ended_opens_nothing(tokens: Tokens) -> None:
    one = tokens.create("alice")
    session, kept = tokens.begin_session(one.token), tokens.begin_session(one.token)
    assert session != kept
    tokens.end_session(session)
    tokens.end_session("never began")
    with pytest.raises(Unauthorized):
        tokens.session_user(session)
    assert tokens.session_user(kept).owner == "alice"
    assert tokens.check(one.token).owner == "alice"


MALFORMED = ("", "sf_", "sf__", "x" * 100_000, "\0", "\ud800", "sf_é_" + "a" * 43, "🙂")


@pytest.mark.parametrize("given", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_token_is_refused_like_an_unknown_one(tokens: Tokens, given: str) -> None:
    one = tokens.create("alice")
    session = tokens.begin_session(one.token)
    said = set()
    unknown = f"sf_{'0' * 16}_{'a' * 43}"
    near = (f"{one.token} ", f"{one.token}\n", one.token[:-1], one.token.upper(), f"{session}\n")
    for text in (given, unknown, one.token[:-43] + "a" * 43, *near):
        for look in (tokens.check, tokens.begin_session, tokens.session_user):
            with pytest.raises(Unauthorized) as caught:
                look(text)
            said.add(str(caught.value))
        tokens.end_session(text)
    assert len(said) == 1
    assert tokens.session_user(session).owner == "alice"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(max_size=30) | st.from_regex(r"sf_[0-9a-f]{16}_[A-Za-z0-9_-]{43}"))
def test_no_text_that_was_not_made_here_is_a_token(tokens: Tokens, text: str) -> None:
    for look in (tokens.check, tokens.session_user):
        with pytest.raises(Unauthorized):
            look(text)


@pytest.mark.parametrize("owner", ["", "a/b", "resolve", "ä", "x" * 129, ".a", "a\n", "\0"])
def test_what_cannot_own_a_rubric_has_no_token(tokens: Tokens, owner: str) -> None:
    with pytest.raises(InputError):
        tokens.create(owner)
    assert tokens.list() == []


@pytest.mark.parametrize("label", ["\0", "\ud800", "a\x1b[2J"])
def test_a_label_that_cannot_be_shown_is_refused(tokens: Tokens, label: str) -> None:
    with pytest.raises(InputError, match="label"):
        tokens.create("alice", label=label)
    assert tokens.list() == []
