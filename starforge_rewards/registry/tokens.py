"""Who may ask: tokens, kept as hashes, shown once; and the console's sessions that rest on them.

A token is `sf_<id>_<secret>`: the id finds the row, the secret is compared in constant time. No
secret is ever kept, logged or part of a message.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, TypeAdapter, ValidationError
from sqlalchemy import Row, bindparam, insert, select, update
from sqlalchemy.sql.expression import delete

from starforge_rewards.conversation import Frozen, Prose, Record
from starforge_rewards.errors import InputError, NotFound, Unauthorized, first_problem
from starforge_rewards.registry import schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import User
from starforge_rewards.registry.schema import timestamp
from starforge_rewards.rubrics.ref import check_segment

_FORM = re.compile(r"sf_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_NOBODY = hashlib.sha256(secrets.token_bytes()).hexdigest()
_KNOWN = select(schema.tokens).where(schema.tokens.c.id == bindparam("named"))
_LABEL = TypeAdapter(Prose)
SESSION = timedelta(hours=12)
"""How long a console session lasts."""


class NewToken(Frozen):
    """A token on the one occasion on which it is shown."""

    id: str
    owner: str
    token: str


class TokenRecord(Record):
    """What is kept of a token, without its secret."""

    id: str
    owner: str
    admin: bool
    label: str
    created_at: AwareDatetime
    revoked_at: AwareDatetime | None


class Tokens:
    """The tokens of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, owner: str, admin: bool = False, label: str = "") -> NewToken:
        """A new token for the namespace of `owner`.

        Raises:
            InputError: not a name of an owner, or a label that cannot be shown.
        """
        check_segment("owner", owner, owner)
        try:
            _LABEL.validate_python(label)
        except ValidationError as error:
            raise InputError(first_problem(error).said, field="label") from None
        token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        row = {
            "id": token_id,
            "owner": owner,
            "admin": admin,
            "label": label,
            "digest": _hashed(secret),
            "created_at": timestamp(),
        }
        with self._database.write() as connection:
            connection.execute(insert(schema.tokens).values(row))
        return NewToken(id=token_id, owner=owner, token=f"sf_{token_id}_{secret}")

    def list(self) -> Sequence[TokenRecord]:
        """All tokens, oldest first, the revoked ones too."""
        table = schema.tokens
        with self._database.read() as connection:
            rows = connection.execute(select(table).order_by(table.c.created_at)).mappings()
            return [TokenRecord.model_validate(dict(row)) for row in rows]

    def revoke(self, token_id: str) -> None:
        """From this moment the token, and every session that rests on it, opens nothing.

        Raises:
            NotFound: no token that is valid has this id.
        """
        table = schema.tokens
        with self._database.write() as connection:
            held = update(table).where(table.c.id == token_id, table.c.revoked_at.is_(None))
            if not connection.execute(held.values(revoked_at=timestamp())).rowcount:
                raise NotFound(f"no valid token {token_id!r}: see `starforge token list`")

    def check(self, token: str) -> User:
        """Whose a token is.

        Raises:
            Unauthorized: it is not of the form, not known, or revoked; which, is not said.
        """
        return _user(self._find(token))

    def begin_session(self, token: str) -> str:
        """What a browser holds in place of the token, for `SESSION`.

        Raises:
            Unauthorized: as for `check`.
        """
        row = self._find(token)
        _user(row)
        session, moment = secrets.token_urlsafe(32), datetime.now(UTC)
        values = {
            "digest": _hashed(session),
            "token_id": row.id if row else "",
            "expires_at": timestamp(moment + SESSION),
        }
        with self._database.write() as connection:
            table = schema.sessions
            connection.execute(delete(table).where(table.c.expires_at < timestamp(moment)))
            connection.execute(insert(table).values(values))
        return session

    def session_user(self, session: str) -> User:
        """Whose a session is.

        Raises:
            Unauthorized: not known, over, or its token is revoked.
        """
        token, held = schema.tokens, schema.sessions
        found = (
            select(token.c.owner, token.c.admin, token.c.revoked_at)
            .join(held, held.c.token_id == token.c.id)
            .where(held.c.digest == _hashed(session), held.c.expires_at > timestamp())
        )
        with self._database.read() as connection:
            return _user(connection.execute(found).first())

    def end_session(self, session: str) -> None:
        table = schema.sessions
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.digest == _hashed(session)))

    def _find(self, token: str) -> Row[*tuple[Any, ...]] | None:
        form = _FORM.fullmatch(token)
        token_id, secret = form.groups() if form else ("", "")
        with self._database.read() as connection:
            row = connection.execute(_KNOWN, {"named": token_id}).first()
        same = hmac.compare_digest(row.digest if row else _NOBODY, _hashed(secret))
        return row if same else None


def _user(row: Row[*tuple[Any, ...]] | None) -> User:
    if row is None or row.revoked_at is not None:
        raise Unauthorized("no valid token: give one that `starforge token create` printed")
    return User(owner=row.owner, admin=row.admin)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
