"""Which runs cited which version, seen from the rubric: its owner and administrators see all."""

import json
from collections.abc import Sequence

from sqlalchemy import select

from starforge_rewards.registry import access, schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import User
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.run import Usage


def of_rubric(database: Database, user: User, ref: Ref) -> Sequence[Usage]:
    """Newest first, of one version where `ref` pins one; other readers see their own runs.

    Raises:
        NotFound: absent, or not readable to the asker.
    """
    rubrics, runs, citations = schema.rubrics, schema.runs, schema.citations
    named = (rubrics.c.owner == ref.owner) & (rubrics.c.name == ref.name)
    lookup = select(rubrics.c.id).where(named, access.readable(user))
    found = (
        select(citations.c.version, runs)
        .join(runs, runs.c.id == citations.c.run_id)
        .order_by(runs.c.created_at.desc(), runs.c.id, citations.c.version.desc())
    )
    if ref.version is not None:
        lookup = lookup.where(rubrics.c.version >= ref.version)
        found = found.where(citations.c.version == ref.version)
    if not user.admin and ref.owner != user.owner:
        found = found.where(runs.c.owner == user.owner)
    with database.read() as connection:
        rubric_id = connection.execute(lookup).scalar()
        rows = connection.execute(found.where(citations.c.rubric_id == rubric_id)).all()
    if rubric_id is None:
        raise access.absent(ref)
    return [_usage(dict(row._mapping)) for row in rows]


def _usage(row: dict[str, object]) -> Usage:
    outcome = json.loads(str(row["outcome"])) if row["outcome"] else {}
    about = {key: outcome.get(key) for key in ("score", "normalized")}
    return Usage.model_validate(row | about | {"run": row["id"]})
