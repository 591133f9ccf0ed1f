"""`/api/rubrics/<owner>/<name>/revisions` and `/diff`: what each version said, and what changed."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel
from starlette.responses import Response

from starforge_rewards.registry.records import Revision
from starforge_rewards.rubrics.diff import Diff, diff
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.server.api.access import Asks, TokenFirst
from starforge_rewards.server.api.answers import answer
from starforge_rewards.server.api.rubrics import LARGEST_VERSION, READ, Name, Owner, Version


class Revisions(BaseModel):
    """Every version, newest first."""

    revisions: Sequence[Revision]


router = APIRouter(prefix="/api/rubrics", tags=["rubrics"], route_class=TokenFirst)


@router.get("/{owner}/{name}/revisions", response_model=Revisions, responses=READ)
def list_revisions(asks: Asks, owner: Owner, name: Name) -> Response:
    """Every version with its full text, newest first."""
    revisions = asks.registry().rubrics.revisions(Ref(owner=owner, name=name))
    return answer({"revisions": [revision.model_dump() for revision in revisions]})


@router.get("/{owner}/{name}/revisions/{version}", response_model=Revision, responses=READ)
def show_revision(
    asks: Asks,
    owner: Owner,
    name: Name,
    version: Annotated[int, Path(ge=1, le=LARGEST_VERSION)],
) -> Response:
    """One version with its full text."""
    current = asks.registry().rubrics.show(Ref(owner=owner, name=name, version=version))
    return answer(current.model_dump(exclude={"archived"}))


@router.get("/{owner}/{name}/diff", response_model=Diff, responses=READ)
def compare(asks: Asks, owner: Owner, name: Name, before: Version, after: Version) -> Response:
    """What changed from one version to another."""
    rubrics = asks.registry().rubrics
    old, new = (
        rubrics.show(Ref(owner=owner, name=name, version=version)).resolved().rubric
        for version in (before, after)
    )
    return answer(diff(old, new))
