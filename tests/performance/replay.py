"""The statements of a registry's call, and the same ones alone through the database's own driver.

A call on one database is repeated on a twin in the same state: same statements, same parameters,
same order, one transaction, rows fetched, and every commit as durable as the registry's.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

import psycopg
from sqlalchemy import event

from starforge_rewards.registry.database import Database
from tests import postgresql


class Statement(NamedTuple):
    """One call of a driver's cursor."""

    text: str
    given: Any
    many: bool


class Raw(Protocol):
    """A driver's connection that repeats what was said to another database."""

    def repeat(self, statements: list[Statement]) -> None: ...

    def close(self) -> None: ...


class RawSqlite:
    """As the registry sets its connections up."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            self._connection.execute(f"PRAGMA {pragma}")

    def repeat(self, statements: list[Statement]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for text, given, many in statements:
            if many:
                self._connection.executemany(text, given)
            else:
                self._connection.execute(text, given).fetchall()
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class RawPostgresql:
    """psycopg begins a transaction by itself."""

    def __init__(self, url: str) -> None:
        self._connection: psycopg.Connection[Any] = psycopg.connect(url)

    def repeat(self, statements: list[Statement]) -> None:
        with self._connection.cursor() as cursor:
            for text, given, many in statements:
                if many:
                    cursor.executemany(text.encode(), given)
                else:
                    cursor.execute(text.encode(), given)
                    if cursor.description:
                        cursor.fetchall()
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


class Twins(NamedTuple):
    """Two databases of one kind that take the same calls, and what was said to the first."""

    kind: str
    ours: Database
    theirs: Database
    raw: Raw
    said: list[Statement]

    def both(self, call: Callable[[Database], object]) -> None:
        """A call that is measured on neither."""
        call(self.ours)
        call(self.theirs)
        self.said.clear()

    def repeat(self) -> None:
        """What was said since the last time, once more."""
        self.raw.repeat(self.said)
        self.said.clear()


@contextmanager
def twins() -> Iterator[list[Twins]]:
    """A pair of SQLite, and one of PostgreSQL where it is installed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        pairs = [_twins("SQLite", [f"sqlite:///{folder / each}" for each in "ab"], RawSqlite)]
        if postgresql.program("initdb") is None:
            yield pairs
            _close(pairs)
            return
        with postgresql.server() as server:
            urls = [server.new_database() for _ in range(2)]
            pairs.append(_twins("PostgreSQL", urls, RawPostgresql))
            yield pairs
            _close(pairs)


def _twins(kind: str, urls: list[str], raw: Callable[[str], Raw]) -> Twins:
    ours, theirs = map(Database.open, urls)
    said: list[Statement] = []

    def note(_c: object, _u: object, text: str, given: Any, _x: object, many: bool) -> None:
        said.append(Statement(text, given, many))

    event.listen(ours.engine, "before_cursor_execute", note)
    return Twins(kind, ours, theirs, raw(urls[1]), said)


def _close(pairs: list[Twins]) -> None:
    for pair in pairs:
        pair.raw.close()
        pair.ours.close()
        pair.theirs.close()
