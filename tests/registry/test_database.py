import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import text

from starforge_rewards.errors import InputError, Unavailable
from starforge_rewards.registry.database import Database
from starforge_rewards.rubrics.ref import Ref
from tests import postgresql
from tests.registry.samples import put, registry

X = Ref.parse("alice/x")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "er" / "registry.sqlite"


def test_a_sqlite_file_is_made_for_its_owner_alone(file: Path) -> None:
    old = os.umask(0)
    try:
        database = Database.open(f"sqlite:///{file}")
        put(registry(database, "alice"), "alice/x")
    finally:
        os.umask(old)
    names = {f"{file.name}{end}" for end in ("", "-wal", "-shm")}
    assert {each.name for each in file.parent.iterdir()} == names
    for each in file.parent.iterdir():
        assert each.stat().st_mode & 0o777 == 0o600
    database.close()


def test_every_commit_is_on_disk_in_a_write_ahead_log(file: Path) -> None:
    database = Database.open(f"sqlite:///{file}")
    with database.write() as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys")
        found = [connection.exec_driver_sql(f"PRAGMA {each}").scalar() for each in pragmas]
    assert found == ["wal", 2, 1]
    database.close()


def test_a_block_that_fails_writes_nothing(database: Database) -> None:
    insert = text("INSERT INTO tokens VALUES ('t', 'o', :admin, '', 'd', 'now', NULL)")
    with suppress(ZeroDivisionError), database.write() as connection:
        connection.execute(insert, {"admin": True})
        raise ZeroDivisionError
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM tokens")).scalar() == 0


WRONG = (
    "", "x", "registry.sqlite", "sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://h/d",
    "sqlite+aiosqlite:////tmp/x", "sqlite:////tmp/\0x", "sqlite:////tmp/\ud800",
    "sqlite:////tmp/x?mode=ro", "sqlite:///file:x?mode=memory&uri=true", "postgresql://h:port/d",
    "postgresql://[::1/d", "postgresql://127.0.0.1:1/d?none=1",
)  # fmt: skip


@pytest.mark.parametrize("url", WRONG, ids=range(len(WRONG)))
def test_what_is_no_database_url_is_refused_by_its_name(url: str) -> None:
    with pytest.raises(InputError, match=r"^SF_DATABASE_URL: "):
        Database.open(url)


@pytest.mark.parametrize("path", ["/proc/none/x", "/etc/passwd/x", "/etc", f"/tmp/{'x' * 300}"])  # noqa: S108
def test_a_path_that_cannot_be_used_is_named(path: str) -> None:
    with pytest.raises(InputError, match=f"^{path}: cannot be used as a database: "):
        Database.open(f"sqlite:///{path}")


def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    content = b"Nothing that a database wrote.\n" * 100
    file.write_bytes(content)
    with pytest.raises(InputError, match="is no database of ours"):
        Database.open(f"sqlite:///{file}")
    assert file.read_bytes() == content


FOREIGN = (
    "CREATE TABLE customers (id INTEGER)",
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
    "CREATE TABLE rubrics (id INTEGER)",
)


@pytest.mark.parametrize("statement", FOREIGN)
def test_a_database_of_another_program_is_refused_and_left_alone(
    database_url: str, statement: str
) -> None:
    execute(database_url, statement)
    if "alembic" in statement:  # a common number for a first revision
        execute(database_url, "INSERT INTO alembic_version VALUES ('0001')")
    with pytest.raises(InputError, match="holds tables that are not ours"):
        Database.open(database_url)
    table = statement.split()[2]
    execute(database_url, f"DROP TABLE {table}")
    Database.open(database_url).close()


def test_the_schema_of_a_newer_release_is_refused(database: Database, database_url: str) -> None:
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(InputError, match="its schema 9999 is not known here: install"):
        Database.open(database_url)
    execute(database_url, "UPDATE alembic_version SET version_num = '0001'")
    Database.open(database_url).close()


def execute(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute(statement)
        connection.commit()
        connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute(statement.encode())


def test_a_password_is_not_shown() -> None:
    with pytest.raises(Unavailable) as caught:
        Database.open("postgresql://alice:hunter2@127.0.0.1:1/registry")
    assert "hunter2" not in str(caught.value)


LOCK = """\
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_file_that_another_process_keeps_locked_is_unavailable_after_the_wait(file: Path) -> None:
    database = Database.open(f"sqlite:///{file}", wait=0.5)
    alice = registry(database, "alice")
    put(alice, "alice/x")
    holder = subprocess.Popen(
        [sys.executable, "-c", LOCK, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    assert alice.rubrics.show(X).version == 1  # reading goes on
    began = time.monotonic()
    with pytest.raises(Unavailable, match="locked"):
        put(alice, "alice/x", description="New.")
    assert 0.4 < time.monotonic() - began < 5
    holder.communicate()
    assert put(alice, "alice/x", description="New.").version == 2
    database.close()


def test_writers_of_one_process_that_wait_too_long_are_told(file: Path) -> None:
    database = Database.open(f"sqlite:///{file}", wait=0.2)
    with database.write():
        refused: list[BaseException] = []

        def write() -> None:
            with pytest.raises(Unavailable) as caught:
                put(registry(database, "alice"), "alice/x")
            refused.append(caught.value)

        other = threading.Thread(target=write)
        other.start()
        other.join()
    assert str(refused[0]) == "other writers kept the database busy for 0.2 s"
    assert put(registry(database, "alice"), "alice/x").version == 1
    database.close()


def test_a_file_that_is_damaged_while_open_is_unavailable(file: Path) -> None:
    database = Database.open(f"sqlite:///{file}")
    put(registry(database, "alice"), "alice/x")
    database.close()
    database = Database.open(f"sqlite:///{file}")
    data = file.read_bytes()
    file.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises(Unavailable, match="the database cannot be used: "):
        registry(database, "alice").rubrics.show(X)
    database.close()


@pytest.fixture
def server() -> Iterator[postgresql.Server]:
    """A server that a test may stop."""
    if postgresql.program("initdb") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with postgresql.server() as one:
        yield one


@pytest.mark.postgres
def test_a_server_that_goes_away_is_unavailable_at_once_and_comes_back(
    server: postgresql.Server,
) -> None:
    database = Database.open(server.new_database())
    alice = registry(database, "alice")
    put(alice, "alice/x")
    for version in (2, 3):
        with database.read(), database.read(), database.read():
            pass  # several connections wait in the pool
        server.stop()
        for _ in range(4):
            began = time.monotonic()
            with pytest.raises(Unavailable, match="the database cannot be used: "):
                alice.rubrics.show(X)
            with pytest.raises(Unavailable):
                put(alice, "alice/x", description=f"{version}")
            with pytest.raises(Unavailable):
                database.ping()
            assert time.monotonic() - began < 5
        server.start()
        database.ping()
        assert put(alice, "alice/x", description=f"{version}").version == version
        for _ in range(4):
            assert alice.rubrics.show(X).version == version
    database.close()


@pytest.mark.postgres
def test_a_server_lost_in_the_middle_of_a_write_wrote_nothing(server: postgresql.Server) -> None:
    database = Database.open(server.new_database())
    with pytest.raises(Unavailable):
        _delete_while_it_stops(database, server)
    server.start()
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    database.close()


def _delete_while_it_stops(database: Database, server: postgresql.Server) -> None:
    with database.write() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
        server.stop()


@pytest.mark.postgres
def test_a_frozen_server_is_unavailable_after_the_wait_and_comes_back(
    server: postgresql.Server,
) -> None:
    database = Database.open(server.new_database(), wait=0.2)
    alice = registry(database, "alice")
    put(alice, "alice/x")
    began = time.monotonic()
    with frozen(server), pytest.raises(Unavailable):
        alice.rubrics.show(X)
    assert time.monotonic() - began < 20  # a pooled connection, then a new one
    assert alice.rubrics.show(X).version == 1
    assert put(alice, "alice/x", description="New.").version == 2
    database.close()


@contextmanager
def frozen(server: postgresql.Server) -> Iterator[None]:
    """The server and its children do nothing while the block lasts."""
    (main,) = [
        each
        for each in psutil.process_iter(["name", "cmdline"])
        if str(server.port) in (each.info["cmdline"] or []) and each.info["name"] == "postgres"
    ]
    both = [main, *main.children(recursive=True)]
    for each in both:
        each.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for each in both:
            each.send_signal(signal.SIGCONT)


@pytest.mark.postgres
def test_a_statement_that_waits_too_long_for_a_lock_is_unavailable(
    postgres: postgresql.Server,
) -> None:
    database = Database.open(postgres.new_database(), wait=0.3)
    alice = registry(database, "alice")
    put(alice, "alice/x")
    with database.write() as connection:
        connection.execute(text("SELECT * FROM rubrics FOR UPDATE"))
        with pytest.raises(Unavailable, match="timeout"):
            put(alice, "alice/x", description="New.")
    assert put(alice, "alice/x", description="New.").version == 2
    database.close()
