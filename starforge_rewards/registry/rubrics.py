"""Rubrics with every version's text, in a database.

A write locks the rubric's row first, so that two edits at once land as successive versions. The
text of a version is written in the same transaction as the counter, and never again.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, insert, select, update

from starforge_rewards.errors import Conflict, InputError
from starforge_rewards.registry import access, listing, schema, usage
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.listing import Entry
from starforge_rewards.registry.records import (
    Body,
    Current,
    Listing,
    Revision,
    RubricQuery,
    User,
    Written,
    body_of,
)
from starforge_rewards.registry.schema import timestamp
from starforge_rewards.registry.upsert import insert_new
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric, digest
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.run import Usage

AnyRow = Row[*tuple[Any, ...]]
_RUBRIC, _REVISION = schema.rubrics.c, schema.revisions.c

# Statements are made once: making one costs more than running it.
_NAMED = (_RUBRIC.owner == bindparam("owner"), _RUBRIC.name == bindparam("name"))
_LOCK = select(schema.rubrics).where(*_NAMED).with_for_update()
_INSERT = insert(schema.revisions)
_UPDATE = update(schema.rubrics).where(_RUBRIC.id == bindparam("of"))
_STORED = select(schema.revisions).where(_REVISION.rubric_id == bindparam("of"))
_LANDED = _STORED.where(_REVISION.write_key == bindparam("key"))
_SAME = _STORED.where(_REVISION.version == bindparam("at"))
_READ = (
    select(_RUBRIC.owner, _RUBRIC.name, _RUBRIC.kind, _RUBRIC.archived, schema.revisions)
    .select_from(schema.revisions.join(schema.rubrics, _REVISION.rubric_id == _RUBRIC.id))
    .where(*_NAMED, access.READABLE)
)
_CURRENT = _READ.where(_REVISION.version == _RUBRIC.version)
_PINNED = _READ.where(_REVISION.version == bindparam("at"))
_ALL = _READ.order_by(_REVISION.version.desc())


class SqlRubrics:
    """The rubrics of one database, as one user may see and write them (`protocol.Rubrics`)."""

    def __init__(self, database: Database, user: User, author: str | None = None) -> None:
        self._database, self._user = database, user
        self._author = author or user.owner

    def resolve(self, text: str) -> ResolvedRubric:
        """The rubric that a reference names; without `@version`, its current version is pinned."""
        return self.show(Ref.parse(text)).resolved()

    def put(
        self,
        ref: Ref,
        rubric: Rubric,
        *,
        expected_version: int | None = None,
        write_key: str | None = None,
    ) -> Written:
        access.own(self._user, ref.owner)
        if ref.version is not None:
            raise InputError(f"{ref}: a write makes the next version: leave out @{ref.version}")
        with self._database.write() as connection:
            row = _locked(connection, ref)
            if write_key is not None and (
                landed := _stored(connection, _LANDED, of=row.id, key=write_key)
            ):
                _refuse_another(landed, rubric, write_key)
                return _written(row, landed, changed=True)
            if expected_version not in (None, row.version):
                raise Conflict(
                    f"{ref} is at version {row.version}, not {expected_version}: "
                    "look at what changed, then write again"
                )
            body = body_of(rubric, row.visibility)
            fingerprint = _fingerprint(body)
            if row.fingerprint == fingerprint:
                same = _stored(connection, _SAME, of=row.id, at=row.version)
                return _written(row, same, changed=False)
            revision = {
                "rubric_id": row.id,
                "version": row.version + 1,
                "digest": digest(rubric),
                "body": json.dumps(body, ensure_ascii=False),
                "author": self._author,
                "created_at": timestamp(),
                "write_key": write_key,
            }
            connection.execute(_INSERT, revision)
            _advance(connection, row, body, revision | {"fingerprint": fingerprint})
            return _written(row, revision, changed=True)

    def show(self, ref: Ref) -> Current:
        wanted = _CURRENT if ref.version is None else _PINNED
        found = next(iter(self._read(wanted, ref)), None)
        if found is None:
            raise access.absent(ref)
        return Current.model_validate(_revision(found, found._mapping) | _archived(found))

    def list(self, query: RubricQuery) -> Listing:
        return listing.page(self._database, self._user, query)

    def revisions(self, ref: Ref) -> Sequence[Revision]:
        if not (rows := self._read(_ALL, ref)):
            raise access.absent(ref)
        return [Revision.model_validate(_revision(row, row._mapping)) for row in rows]

    def usage(self, ref: Ref) -> Sequence[Usage]:
        return usage.of_rubric(self._database, self._user, ref)

    def archive(self, ref: Ref, archived: bool) -> Current:
        current = self.show(ref)
        access.own(self._user, ref.owner)
        with self._database.write() as connection:
            row = _locked(connection, ref)
            entry = _entry(row)._replace(archived=archived)
            changed = {"archived": archived, "audience": entry.audience}
            connection.execute(_UPDATE, changed | {"of": row.id})
            listing.enter(connection, entry)
        return current.model_copy(update={"archived": archived})

    def _read(self, wanted: Select[*tuple[Any, ...]], ref: Ref) -> Sequence[AnyRow]:
        """Versions of a rubric, where the user may read it."""
        named = {"owner": ref.owner, "name": ref.name} | access.reader(self._user)
        with self._database.read() as connection:
            return connection.execute(wanted, named | {"at": ref.version}).all()


def _locked(connection: Connection, ref: Ref) -> AnyRow:
    """The rubric's row, locked until the transaction ends; at version 0 where it is new."""
    named = {"owner": ref.owner, "name": ref.name}
    if (row := connection.execute(_LOCK, named).first()) is None:
        new = {
            "owner": ref.owner,
            "name": ref.name,
            "version": 0,
            "kind": "weighted",
            "visibility": "private",
            "description": "",
            "archived": False,
            "audience": ref.owner,
            "fingerprint": "",
            "updated_at": timestamp(),
        }
        insert_new(connection, schema.rubrics, [new])  # or another writer has just done so
        row = connection.execute(_LOCK, named).one()
    return row


def _advance(connection: Connection, row: AnyRow, body: Body, revision: dict[str, Any]) -> None:
    """The counter and the listing follow the text."""
    listed = {key: str(body[key]) for key in ("visibility", "description")}
    entry = _entry(row)._replace(visibility=listed["visibility"], description=listed["description"])
    changed = listed | {
        "of": row.id,
        "version": revision["version"],
        "kind": body.get("kind", "weighted"),
        "audience": entry.audience,
        "fingerprint": revision["fingerprint"],
        "updated_at": revision["created_at"],
    }
    connection.execute(_UPDATE, changed)
    if row.version == 0 or entry != _entry(row):
        listing.enter(connection, entry)


def _stored(
    connection: Connection, wanted: Select[*tuple[Any, ...]], **given: Any
) -> dict[str, Any] | None:
    stored = connection.execute(wanted, given).mappings().first()
    return dict(stored) if stored else None


def _refuse_another(landed: dict[str, Any], rubric: Rubric, write_key: str) -> None:
    body = json.loads(landed["body"])
    if _fingerprint(body_of(rubric, body["visibility"])) != _fingerprint(body):
        raise Conflict(f"the write key {write_key!r} was used for another body: make a new one")


def _written(row: AnyRow, revision: dict[str, Any] | None, *, changed: bool) -> Written:
    if revision is None:
        raise LookupError(f"{row.owner}/{row.name} has lost version {row.version}")
    about = {"changed": changed, "created": changed and revision["version"] == 1}
    return Written.model_validate(_revision(row, revision) | about)


def _revision(row: AnyRow, revision: Any) -> dict[str, Any]:
    return {
        "owner": row.owner,
        "name": row.name,
        "kind": row.kind,
        "version": revision["version"],
        "digest": revision["digest"],
        "author": revision["author"],
        "created_at": revision["created_at"],
        "rubric": json.loads(revision["body"]),
    }


def _archived(row: AnyRow) -> dict[str, bool]:
    return {"archived": row.archived}


def _entry(row: AnyRow) -> Entry:
    return Entry(row.id, row.owner, row.name, row.description, row.visibility, row.archived)


def _fingerprint(body: Body) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
