"""One database: its connections, its transactions, and what it means when it cannot be used.

SQLite runs in WAL mode, every commit on disk before it is acknowledged; its writers of one process
queue here, those of several wait for its lock. A lost database is `Unavailable`, never a hang.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import sqlalchemy
from sqlalchemy import Connection, Engine, event, exc, make_url, text

from starforge_rewards.errors import DatabaseAway, InputError
from starforge_rewards.registry import migration

_WAIT = 30.0
"""Seconds that a writer waits for others, and that a statement may take."""


class Database:
    """Open until closed; safe to use from any thread."""

    def __init__(self, engine: Engine, wait: float = _WAIT) -> None:
        self.engine, self._wait = engine, wait
        self._writer = engine.execution_options(write=True)
        if engine.dialect.name == "sqlite":
            # One writer at a time: within a process they queue, first come first served.
            self._turn: threading.Lock | None = threading.Lock()
            self._reader = engine
        else:  # where each statement sees its own moment anyway, it needs no transaction
            self._turn = None
            self._reader = engine.execution_options(isolation_level="AUTOCOMMIT")

    @classmethod
    def open(cls, url: str, *, wait: float = _WAIT) -> Self:
        """The database at a URL, at the present schema.

        Args:
            url: `sqlite:///<path>` (the file and its folders are made) or `postgresql://…`.
            wait: seconds that a writer waits for others, and that a statement may take.

        Raises:
            InputError: not such a URL, no database of ours, or one of a newer release.
            Unavailable: it does not answer.
        """
        database = cls(_engine(url, wait), wait)
        try:
            with database.write() as connection:
                migration.upgrade(connection)
        except BaseException:
            database.close()
            raise
        return database

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Statements that only read; on SQLite they all see one moment.

        Raises:
            Unavailable: the database cannot be used.
        """
        with _available(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends, or did not happen.

        Raises:
            Unavailable: the database cannot be used.
        """
        with _available(), self._in_turn(), self._writer.begin() as connection:
            yield connection

    def ping(self) -> None:
        """Answers where the database does.

        Raises:
            Unavailable: it does not.
        """
        with self.read() as connection:
            connection.execute(text("SELECT count(*) FROM tokens"))

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if self._turn is None:
            yield
        elif self._turn.acquire(timeout=self._wait):
            try:
                yield
            finally:
                self._turn.release()
        else:
            raise DatabaseAway(f"other writers kept the database busy for {self._wait:g} s")


@contextmanager
def _available() -> Iterator[None]:
    try:
        yield
    except (exc.IntegrityError, exc.ProgrammingError, exc.DataError):
        raise  # a mistake of ours
    except exc.DBAPIError as error:  # its own words alone: the parameters are nobody's business
        raise DatabaseAway(f"the database cannot be used: {_first_line(error.orig)}") from None
    except sqlite3.Error as error:  # where a transaction begins
        raise DatabaseAway(f"the database cannot be used: {_first_line(error)}") from None
    except exc.TimeoutError:
        raise DatabaseAway("the database has no free connection") from None


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _engine(url: str, wait: float) -> Engine:
    try:
        if "\0" in url or not url.encode():
            raise ValueError
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise InputError("is no database URL", field="SF_DATABASE_URL") from None
    if parsed.drivername == "sqlite":
        return _sqlite(parsed, wait)
    if parsed.drivername in {"postgresql", "postgres", "postgresql+psycopg"}:
        from starforge_rewards.registry import postgresql  # late: nothing else needs its driver

        return postgresql.engine(parsed, wait)
    said = f"{parsed.drivername} is not supported: give sqlite:///<path> or postgresql://…"
    raise InputError(said, field="SF_DATABASE_URL")


def _sqlite(url: sqlalchemy.URL, wait: float) -> Engine:
    if not url.database or url.database == ":memory:" or url.query:
        raise InputError("name a file: sqlite:///<path>", field="SF_DATABASE_URL")
    path = Path(url.database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # private from the start
    except OSError as error:
        raise InputError(f"cannot be used as a database: {error.strerror}", file=path) from None
    engine = sqlalchemy.create_engine(
        url,
        connect_args={"timeout": wait},
        pool_size=16,
        max_overflow=32,
        pool_timeout=wait,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says
    try:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise InputError(f"is no database of ours: {error}", field="SF_DATABASE_URL") from None


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("write", False)
    raw = connection.connection.driver_connection
    if raw is not None:  # itself: twice as fast as through SQLAlchemy
        raw.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
