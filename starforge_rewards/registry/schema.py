"""The tables. What a person wrote and what a judge answered is JSON text, never changed in place.

Names sort by code point on every database, so that a cursor means the same on each. Times are
ISO 8601 in UTC with microseconds, which sort as text.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _sorted(length: int) -> String:
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def _time() -> String:
    return String(32)


rubrics = Table(
    "rubrics",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("owner", _sorted(128), nullable=False),
    Column("name", _sorted(128), nullable=False),
    Column("version", Integer, nullable=False),  # the current one; all from 1 to it are there
    Column("kind", String(16), nullable=False),
    Column("visibility", String(16), nullable=False),
    Column("description", Text, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("audience", _sorted(130), nullable=False),  # see listing.py
    Column("fingerprint", String(64), nullable=False),  # sha256 of the whole current body
    Column("updated_at", _time(), nullable=False),
    UniqueConstraint("owner", "name"),
    Index(None, "audience", "owner", "name"),
)

revisions = Table(
    "revisions",
    metadata,
    Column("rubric_id", ForeignKey("rubrics.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("body", Text, nullable=False),
    Column("author", String(128), nullable=False),
    Column("created_at", _time(), nullable=False),
    Column("write_key", String(128)),
    UniqueConstraint("rubric_id", "write_key"),
)

words = Table(
    "words",
    metadata,
    Column("rubric_id", ForeignKey("rubrics.id"), primary_key=True),
    Column("word", _sorted(64), primary_key=True),
    Column("audience", _sorted(130), nullable=False),
    Column("owner", _sorted(128), nullable=False),
    Column("name", _sorted(128), nullable=False),
    Index(None, "audience", "word", "owner", "name"),
    Index(None, "word", "owner", "name"),
    Index(None, "owner", "word", "name"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", _sorted(128), primary_key=True),
    Column("owner", String(128), nullable=False),
    Column("role", String(32), nullable=False),
    Column("runner", String(16)),
    Column("subject", Text, nullable=False),
    Column("judge_digest", String(64)),
    Column("judge", Text),
    Column("status", String(16), nullable=False),
    Column("outcome", Text),
    Column("created_at", _time(), nullable=False),
    Column("updated_at", _time(), nullable=False),
    Index(None, "owner", "created_at", "id"),
    Index(None, "created_at", "id"),
)

citations = Table(
    "citations",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("rubric_id", Integer, primary_key=True),
    Column("version", Integer, primary_key=True),
    ForeignKeyConstraint(["rubric_id", "version"], ["revisions.rubric_id", "revisions.version"]),
    Index(None, "rubric_id", "version"),
)

results = Table(
    "results",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Index(None, "run_id", "position"),
)

scores = Table(
    "scores",
    metadata,
    Column("id", LargeBinary(32), primary_key=True),  # see scores.py
    Column("rubric_id", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("judge", String(64), nullable=False),
    Column("evidence", String(64), nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("served", Boolean, nullable=False),  # found by later runs
    Column("total", Float, nullable=False),
    Column("body", Text, nullable=False),
    ForeignKeyConstraint(["rubric_id", "version"], ["revisions.rubric_id", "revisions.version"]),
)

run_scores = Table(
    "run_scores",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("score_id", ForeignKey("scores.id"), primary_key=True),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", String(128), nullable=False),
    Column("admin", Boolean, nullable=False),
    Column("label", Text, nullable=False),
    Column("digest", String(64), nullable=False),  # sha256 of the secret part
    Column("created_at", _time(), nullable=False),
    Column("revoked_at", _time()),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", String(64), primary_key=True),  # sha256 of what the browser holds
    Column("token_id", ForeignKey("tokens.id"), nullable=False),
    Column("expires_at", _time(), nullable=False),
)


def timestamp(moment: datetime | None = None) -> str:
    """A moment as the tables keep it; default: this one."""
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="microseconds")
