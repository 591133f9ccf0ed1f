"""Brings a database to the present schema, from empty and from every released one."""

import threading
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from starforge_rewards.errors import InputError

HEAD = "0001"
"""The newest revision in `migrations/versions`."""
_OURS = {"alembic_version", "rubrics", "revisions"}
"""Tables of every revision; other programs have the first one too."""
_LOCK = 7_305_112
"""Of PostgreSQL's advisory locks, the one for migrating: two servers may start at once."""
_ALONE = threading.Lock()
"""Alembic runs one migration of a process at a time: what it works on is global."""


def upgrade(connection: Connection) -> None:
    """Migrate within the transaction of a connection.

    Raises:
        InputError: the database belongs to a newer release, or holds other tables.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if (found := _revision(connection)) == HEAD:
        return
    from alembic import command, util  # late: most times there is nothing to do
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    try:
        with _ALONE:
            command.upgrade(config, "head")
    except util.CommandError:
        said = f"its schema {found} is not known here: install the release that wrote it"
        raise InputError(said, field="SF_DATABASE_URL") from None


def _revision(connection: Connection) -> str | None:
    tables = inspect(connection).get_table_names()
    if _OURS.issubset(tables):
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return str(found)
    if tables:
        said = f"holds tables that are not ours ({', '.join(sorted(tables)[:3])}): name another"
        raise InputError(said, field="SF_DATABASE_URL")
    return None
