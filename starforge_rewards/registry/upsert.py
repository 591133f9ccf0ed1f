"""Inserts that meet a row which is there already: SQLite and PostgreSQL alike.

Rows go in by the order of their keys, so that two writers never wait for each other in a circle.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

_Rows = Sequence[Mapping[str, Any]]


def insert_new(connection: Connection, table: Table, rows: _Rows) -> int:
    """Insert the rows whose key is not there yet; returns how many that were."""
    if not rows:
        return 0
    statement = _insert(connection, table).on_conflict_do_nothing()
    return connection.execute(statement, _in_order(table, rows)).rowcount


def insert_or_replace(connection: Connection, table: Table, rows: _Rows) -> None:
    """Insert rows; one whose key is there takes its place."""
    if not rows:
        return
    statement = _insert(connection, table)
    keys = [column.name for column in table.primary_key]
    changed = {c.name: statement.excluded[c.name] for c in table.c if c.name not in keys}
    statement = statement.on_conflict_do_update(index_elements=keys, set_=changed)
    connection.execute(statement, _in_order(table, rows))


def _insert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def _in_order(table: Table, rows: _Rows) -> list[Mapping[str, Any]]:
    keys = [column.name for column in table.primary_key if column.name in rows[0]]
    return sorted(rows, key=lambda row: [row[key] for key in keys])
