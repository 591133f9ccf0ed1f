"""Rubrics with every version, runs with what they cite and used, tokens and sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _sorted(length: int) -> sa.String:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    """Make every table, on an empty database."""
    op.create_table(
        "rubrics",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("owner", _sorted(128), nullable=False),
        sa.Column("name", _sorted(128), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("audience", _sorted(130), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rubrics")),
        sa.UniqueConstraint("owner", "name", name=op.f("uq_rubrics_owner_name")),
    )
    op.create_index(
        op.f("ix_rubrics_audience_owner_name"),
        "rubrics",
        ["audience", "owner", "name"],
        unique=False,
    )
    op.create_table(
        "runs",
        sa.Column("id", _sorted(128), nullable=False),
        sa.Column("owner", sa.String(length=128), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("runner", sa.String(length=16), nullable=True),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("judge_digest", sa.String(length=64), nullable=True),
        sa.Column("judge", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_created_at_id"), "runs", ["created_at", "id"], unique=False)
    op.create_index(
        op.f("ix_runs_owner_created_at_id"), "runs", ["owner", "created_at", "id"], unique=False
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=128), nullable=False),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("revoked_at", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
    )
    op.create_table(
        "results",
        sa.Column("run_id", _sorted(128), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_results_run_id")),
        sa.PrimaryKeyConstraint("run_id", "key", name=op.f("pk_results")),
    )
    op.create_index(
        op.f("ix_results_run_id_position"), "results", ["run_id", "position"], unique=False
    )
    op.create_table(
        "revisions",
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("author", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("write_key", sa.String(length=128), nullable=True),
        sa.ForeignKeyConstraint(["rubric_id"], ["rubrics.id"], name=op.f("fk_revisions_rubric_id")),
        sa.PrimaryKeyConstraint("rubric_id", "version", name=op.f("pk_revisions")),
        sa.UniqueConstraint(
            "rubric_id", "write_key", name=op.f("uq_revisions_rubric_id_write_key")
        ),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("token_id", sa.String(length=32), nullable=False),
        sa.Column("expires_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name=op.f("fk_sessions_token_id")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sessions")),
    )
    op.create_table(
        "words",
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("word", _sorted(64), nullable=False),
        sa.Column("audience", _sorted(130), nullable=False),
        sa.Column("owner", _sorted(128), nullable=False),
        sa.Column("name", _sorted(128), nullable=False),
        sa.ForeignKeyConstraint(["rubric_id"], ["rubrics.id"], name=op.f("fk_words_rubric_id")),
        sa.PrimaryKeyConstraint("rubric_id", "word", name=op.f("pk_words")),
    )
    op.create_index(
        op.f("ix_words_audience_word_owner_name"),
        "words",
        ["audience", "word", "owner", "name"],
        unique=False,
    )
    op.create_index(
        op.f("ix_words_word_owner_name"), "words", ["word", "owner", "name"], unique=False
    )
    op.create_index(
        op.f("ix_words_owner_word_name"), "words", ["owner", "word", "name"], unique=False
    )
    op.create_table(
        "citations",
        sa.Column("run_id", _sorted(128), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["rubric_id", "version"],
            ["revisions.rubric_id", "revisions.version"],
            name=op.f("fk_citations_rubric_id_version"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_citations_run_id")),
        sa.PrimaryKeyConstraint("run_id", "rubric_id", "version", name=op.f("pk_citations")),
    )
    op.create_index(
        op.f("ix_citations_rubric_id_version"), "citations", ["rubric_id", "version"], unique=False
    )
    op.create_table(
        "scores",
        sa.Column("id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("judge", sa.String(length=64), nullable=False),
        sa.Column("evidence", sa.String(length=64), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("served", sa.Boolean(), nullable=False),
        sa.Column("total", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["rubric_id", "version"],
            ["revisions.rubric_id", "revisions.version"],
            name=op.f("fk_scores_rubric_id_version"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scores")),
    )
    op.create_table(
        "run_scores",
        sa.Column("run_id", _sorted(128), nullable=False),
        sa.Column("score_id", sa.LargeBinary(length=32), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_scores_run_id")),
        sa.ForeignKeyConstraint(["score_id"], ["scores.id"], name=op.f("fk_run_scores_score_id")),
        sa.PrimaryKeyConstraint("run_id", "score_id", name=op.f("pk_run_scores")),
    )
