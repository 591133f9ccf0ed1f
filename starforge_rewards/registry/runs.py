"""Runs in a database: they record themselves, and saying the same again changes nothing.

A run is its recorder's, and is shown to nobody else but administrators.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, literal, select, tuple_, update

from starforge_rewards.errors import Conflict, InputError, NotFound
from starforge_rewards.registry import access, cursor, schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import RunListing, RunQuery, User
from starforge_rewards.registry.schema import timestamp
from starforge_rewards.registry.upsert import insert_new, insert_or_replace
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.run import Citation, ResultRow, Run, RunRecord

AnyRow = Row[*tuple[Any, ...]]
_TABLE = schema.runs
_FIXED = ("role", "runner", "subject", "judge_digest")
_TOGETHER = 500
"""Names in one query; SQLite has a limit on parameters."""


class Version(NamedTuple):
    """A version by its key."""

    rubric_id: int
    version: int


class SqlRuns:
    """The runs of one database, as one user may see and write them (`protocol.Runs`)."""

    def __init__(self, database: Database, user: User) -> None:
        self._database, self._user = database, user

    def put(self, run_id: str, run: Run) -> RunRecord:
        with self._database.write() as connection:
            row = self._begun(connection, run_id, run)
            changed: dict[str, Any] = {"status": run.status}
            if run.outcome is not None:
                changed["outcome"] = run.outcome.model_dump_json()
            if any(row._mapping[key] != value for key, value in changed.items()):
                changed["updated_at"] = timestamp()
                connection.execute(update(_TABLE).where(_TABLE.c.id == run_id).values(changed))
            self._cite(connection, run_id, run.citations)
            return self._record(connection, dict(row._mapping) | changed)

    def show(self, run_id: str) -> RunRecord:
        with self._database.read() as connection:
            return self._record(connection, dict(self.visible(connection, run_id)._mapping))

    def list(self, query: RunQuery) -> RunListing:
        newest_first = select(_TABLE).order_by(_TABLE.c.created_at.desc(), _TABLE.c.id.desc())
        asked = newest_first.where(*self._asked(query)).limit(query.limit + 1)
        with self._database.read() as connection:
            rows = [dict(row) for row in connection.execute(asked).mappings()]
        shown = rows[: query.limit]
        last = shown[-1] if len(rows) > query.limit else None
        return RunListing(
            items=tuple(_run(row) for row in shown),
            next=cursor.encode((last["created_at"], last["id"])) if last else None,
        )

    def add_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        stored = {
            row.key: {
                "run_id": run_id,
                "key": row.key,
                "position": row.position,
                "body": row.model_dump_json(),
            }
            for row in rows
        }
        with self._database.write() as connection:
            self.written(connection, run_id)
            self.cited(connection, run_id, {row.rubric for row in rows if row.rubric is not None})
            insert_or_replace(connection, schema.results, list(stored.values()))

    def results(self, run_id: str, *, after: int = -1, limit: int = 200) -> Sequence[ResultRow]:
        table = schema.results
        beyond = (table.c.run_id == run_id) & (table.c.position > after)
        # To the end of the last position: rows that share one are not parted by a page.
        page = select(table.c.position).where(beyond).order_by(table.c.position).limit(limit)
        last = select(func.max(page.subquery().c.position)).scalar_subquery()
        found = (
            select(table.c.body)
            .where(beyond, table.c.position <= last)
            .order_by(table.c.position, table.c.key)
        )
        with self._database.read() as connection:
            self.visible(connection, run_id)
            return [ResultRow.model_validate_json(body) for body in connection.scalars(found)]

    def visible(self, connection: Connection, run_id: str) -> AnyRow:
        """A run that the user may see.

        Raises:
            NotFound: absent, or another's.
        """
        found = select(_TABLE).where(_TABLE.c.id == run_id)
        if not self._user.admin:
            found = found.where(_TABLE.c.owner == self._user.owner)
        if (row := connection.execute(found).first()) is None:
            raise NotFound(f"no run {run_id!r} of yours")
        return row

    def written(self, connection: Connection, run_id: str) -> AnyRow:
        """A run of the user's own, administrators included.

        Raises:
            NotFound: absent, or another's.
        """
        mine = (_TABLE.c.id == run_id) & (_TABLE.c.owner == self._user.owner)
        if (row := connection.execute(select(_TABLE).where(mine)).first()) is None:
            raise NotFound(f"no run {run_id!r} of yours")
        return row

    def cited(
        self, connection: Connection, run_id: str, texts: Collection[str]
    ) -> dict[str, Version]:
        """The versions that a run cites, of those named.

        Raises:
            InputError: one is not among its citations.
        """
        rubrics, citations = schema.rubrics, schema.citations
        found: dict[str, Version] = {}
        for some in _chunks([Ref.parse(text) for text in texts]):
            held = (
                select(rubrics.c.owner, rubrics.c.name, citations.c.rubric_id, citations.c.version)
                .join(citations, citations.c.rubric_id == rubrics.c.id)
                .where(citations.c.run_id == run_id)
                .where(
                    tuple_(rubrics.c.owner, rubrics.c.name).in_([(r.owner, r.name) for r in some])
                )
            )
            for row in connection.execute(held):
                found[f"{row.owner}/{row.name}@{row.version}"] = Version(row.rubric_id, row.version)
        for text in texts:
            if text not in found:
                raise InputError(f"{text} is not among the run's citations: put them first")
        return found

    def _begun(self, connection: Connection, run_id: str, run: Run) -> AnyRow:
        """The run's row, locked; made where it is new.

        Raises:
            Conflict: it is another run than this one.
        """
        moment = timestamp()
        new = {
            "id": run_id,
            "owner": self._user.owner,
            "role": run.role,
            "runner": run.runner,
            "subject": run.subject,
            "judge_digest": run.judge.digest if run.judge else None,
            "judge": run.judge.model_dump_json() if run.judge else None,
            "status": run.status,
            "created_at": moment,
            "updated_at": moment,
        }
        insert_new(connection, _TABLE, [new])
        row = connection.execute(
            select(_TABLE).where(_TABLE.c.id == run_id).with_for_update()
        ).one()
        if row.owner != self._user.owner:
            raise Conflict(f"the run id {run_id!r} is taken: make another")
        for field in _FIXED:
            if row._mapping[field] != new[field]:
                what = field.removesuffix("_digest")
                raise Conflict(f"run {run_id!r} has another {what}: a run keeps it for its life")
        return row

    def _cite(self, connection: Connection, run_id: str, cited: Sequence[str]) -> None:
        table, rubrics = schema.citations, schema.rubrics
        held = (
            select(rubrics.c.owner, rubrics.c.name, table.c.version)
            .join(rubrics, rubrics.c.id == table.c.rubric_id)
            .where(table.c.run_id == run_id)
        )
        there = {f"{row.owner}/{row.name}@{row.version}" for row in connection.execute(held)}
        new = {text: _pinned(text, at) for at, text in enumerate(cited) if text not in there}
        for some in _chunks(list(new.values())):
            rows = connection.execute(access.versions(some, self._user)).all()
            ids = {(row.owner, row.name): row for row in rows}
            rows_new = []
            for ref in some:
                row = ids.get((ref.owner, ref.name))
                if row is None or not 1 <= (ref.version or 0) <= row.version:
                    raise access.absent(ref)
                rows_new.append({"run_id": run_id, "rubric_id": row.id, "version": ref.version})
            insert_new(connection, table, rows_new)

    def _record(self, connection: Connection, row: dict[str, Any]) -> RunRecord:
        rubrics, revisions, citations = schema.rubrics, schema.revisions, schema.citations
        found = (
            select(rubrics.c.owner, rubrics.c.name, rubrics.c.visibility, revisions.c.version)
            .add_columns(revisions.c.digest)
            .select_from(citations)
            .join(rubrics, rubrics.c.id == citations.c.rubric_id)
            .join(
                revisions,
                (revisions.c.rubric_id == citations.c.rubric_id)
                & (revisions.c.version == citations.c.version),
            )
            .where(citations.c.run_id == row["id"])
            .order_by(rubrics.c.owner, rubrics.c.name, revisions.c.version)
        )
        cited = tuple(
            Citation(
                rubric=f"{each.owner}/{each.name}@{each.version}",
                digest=each.digest,
                readable=access.may_read(self._user, each.owner, each.visibility),
            )
            for each in connection.execute(found)
        )
        return _run(row).model_copy(update={"citations": cited})

    def _asked(self, query: RunQuery) -> Iterable[Any]:
        if not self._user.admin:
            yield _TABLE.c.owner == self._user.owner
        if query.role is not None:
            yield _TABLE.c.role == query.role
        if query.status is not None:
            yield _TABLE.c.status == query.status
        if query.rubric is not None:
            yield _TABLE.c.id.in_(_citing(Ref.parse(query.rubric)))
        if query.cursor is not None:
            key = cursor.decode(query.cursor, 2)
            yield tuple_(_TABLE.c.created_at, _TABLE.c.id) < tuple_(*map(literal, key))


def _citing(ref: Ref) -> Any:
    rubrics, citations = schema.rubrics, schema.citations
    found = (
        select(citations.c.run_id)
        .join(rubrics, rubrics.c.id == citations.c.rubric_id)
        .where(rubrics.c.owner == ref.owner, rubrics.c.name == ref.name)
    )
    return found if ref.version is None else found.where(citations.c.version == ref.version)


def _pinned(text: str, at: int) -> Ref:
    field = f"citations[{at}]"
    try:
        ref = Ref.parse(text)
    except InputError as error:
        raise InputError(error.problem, field=field) from None
    if ref.version is None:
        raise InputError(f"{text}: cite a version, as in {text}@1", field=field)
    return ref


def _chunks(refs: Sequence[Ref]) -> Iterable[list[Ref]]:
    for start in range(0, len(refs), _TOGETHER):
        yield list(refs[start : start + _TOGETHER])


def _run(row: dict[str, Any]) -> RunRecord:
    """Without its citations."""
    read = {key: json.loads(row[key]) if row[key] else None for key in ("judge", "outcome")}
    return RunRecord.model_validate(row | read)
