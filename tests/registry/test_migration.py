"""The schema from empty, and from every earlier revision with what was kept under it."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, Table, inspect, select, text

from starforge_rewards.registry import migration, schema
from starforge_rewards.registry.database import Database

FOLDER = Path(migration.__file__).parent / "migrations"
CONFIG = Config()
CONFIG.set_main_option("script_location", str(FOLDER))
SCRIPTS = ScriptDirectory.from_config(CONFIG)
REVISIONS = [each.revision for each in reversed(list(SCRIPTS.walk_revisions()))]


def test_the_revisions_are_one_line_that_ends_at_the_head() -> None:
    assert SCRIPTS.get_heads() == [migration.HEAD]
    assert len(REVISIONS) == len(list((FOLDER / "versions").glob("[0-9]*.py")))


def test_an_empty_database_is_brought_to_the_present_schema(database: Database) -> None:
    assert_present(database)


def assert_present(database: Database) -> None:
    with database.read() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, schema.metadata) == []
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        assert found == migration.HEAD
        for table in schema.metadata.sorted_tables:  # autogenerate does not look at these
            columns = {each["name"]: each for each in inspect(connection).get_columns(table.name)}
            for column in table.c:
                assert columns[column.name]["nullable"] == column.nullable
            key = inspect(connection).get_pk_constraint(table.name)
            assert key["constrained_columns"] == [each.name for each in table.primary_key]


def test_names_sort_by_code_point(database: Database) -> None:
    names = ["A", "B", "Z.a", "Z_a", "Za", "a", "a-b", "a.b", "ab"]
    now = schema.timestamp()
    with database.write() as connection:
        for number, name in enumerate(reversed(names)):
            row = filled(schema.rubrics, number) | {"owner": "o", "name": name, "updated_at": now}
            connection.execute(schema.rubrics.insert().values(row))
        ordered = select(schema.rubrics.c.name).order_by(schema.rubrics.c.name)
        assert list(connection.scalars(ordered)) == sorted(names) == names


def test_opening_again_changes_nothing(database: Database) -> None:
    rows = fill(database)
    Database.open(database.engine.url.render_as_string(hide_password=False)).close()
    assert kept(database) == rows
    assert_present(database)


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_earlier_schema_is_upgraded_with_what_it_kept(database_url: str, revision: str) -> None:
    """Every table of that revision has a row; columns that are still there keep their values."""
    database = Database.open(database_url)
    with database.write() as connection:
        config = Config()
        config.set_main_option("script_location", str(FOLDER))
        config.attributes["connection"] = connection
        drop_all(connection)
        command.upgrade(config, revision)
    rows = fill(database)
    assert set(rows) >= {"rubrics", "revisions", "runs", "scores", "tokens"}
    database.close()
    database = Database.open(database_url)
    after = kept(database)
    for table, before in rows.items():
        if table in after:
            still = before.keys() & after[table].keys()
            assert still
            assert {name: after[table][name] for name in still} == {
                name: before[name] for name in still
            }
    assert_present(database)
    database.close()


def drop_all(connection: sa.Connection) -> None:
    held = MetaData()
    held.reflect(connection)
    held.drop_all(connection)


def fill(database: Database) -> dict[str, dict[str, Any]]:
    """One row in every table that the database has."""
    held = MetaData()
    with database.write() as connection:
        held.reflect(connection)
        for table in held.sorted_tables:
            if table.name != "alembic_version":
                connection.execute(table.insert().values(filled(table, 1)))
    return kept(database)


def filled(table: Table, number: int) -> dict[str, Any]:
    """A row that every foreign key of the same row number finds."""
    return {column.name: value(column, number) for column in table.c}


def value(column: sa.Column[Any], number: int) -> Any:
    match column.type:
        case sa.Boolean():
            return True
        case sa.Integer():
            return number
        case sa.Float():
            return number + 0.1
        case sa.LargeBinary():
            return bytes([number]) * 32
        case sa.DateTime():
            return datetime(2026, 12, 1, tzinfo=UTC)
    return str(number)


def kept(database: Database) -> dict[str, dict[str, Any]]:
    """The one row of every table."""
    held = MetaData()
    with database.read() as connection:
        held.reflect(connection)
        return {
            table.name: dict(connection.execute(select(table)).mappings().one())
            for table in held.sorted_tables
            if table.name != "alembic_version"
        }


OPEN = """\
import sys
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.tokens import Tokens

sys.stdin.readline()
database = Database.open(sys.argv[1])
print(Tokens(database).create("alice").id)
database.close()
"""


def test_many_processes_open_an_empty_database_at_once(database_url: str) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, database_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for one in both:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    made = [one.communicate()[0].strip() for one in both]
    assert [one.returncode for one in both] == [0] * 4
    database = Database.open(database_url)
    with database.read() as connection:
        assert set(connection.scalars(select(schema.tokens.c.id))) == set(made)
    assert_present(database)
    database.close()


def test_many_threads_open_empty_databases_at_once(tmp_path: Path, database_url: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    urls = [database_url, *(f"sqlite:///{tmp_path / str(number)}.db" for number in range(5))] * 2
    with ThreadPoolExecutor(len(urls)) as pool:
        for database in pool.map(Database.open, urls):
            assert_present(database)
            database.close()
