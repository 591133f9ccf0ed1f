"""What a registry answers with. Records from a newer server may hold more than is known here."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, JsonValue

from starforge_rewards.conversation import Frozen, Prose, Record
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.rubrics.weighted import Rubric, Score
from starforge_rewards.run import Count, Digest, RunRecord

Body = Mapping[str, JsonValue]


class User(Frozen):
    """Who asks: the owner of one namespace. An administrator reads all, and writes only theirs."""

    owner: str
    admin: bool = False


class Revision(Record):
    """One version with its full text."""

    owner: str
    name: str
    version: int
    kind: str
    digest: str
    author: str
    created_at: AwareDatetime
    rubric: dict[str, JsonValue]
    """The whole body, as it may be written again."""

    @property
    def ref(self) -> Ref:
        return Ref(owner=self.owner, name=self.name, version=self.version)

    def resolved(self) -> ResolvedRubric:
        """The rubric as a job uses it: pinned to this version."""
        return ResolvedRubric(
            ref=self.ref, rubric=Rubric.model_validate(self.rubric), digest=self.digest
        )


class Current(Revision):
    """The current version of a rubric."""

    archived: bool = False


class Written(Revision):
    """What a write came to."""

    changed: bool
    """False where the body was equal to the current content: no new version then."""
    created: bool = False


class Listed(Record):
    """A line of the listing."""

    owner: str
    name: str
    version: int
    kind: str
    visibility: Literal["private", "public"]
    description: str
    archived: bool
    updated_at: AwareDatetime


class Listing(Record):
    """One page, in order of owner and name; of a search, in order of the word that was found."""

    items: tuple[Listed, ...]
    next: str | None = None
    """Cursor of the next page; None on the last."""


Limit = Annotated[int, Field(ge=1, le=200)]


class RubricQuery(Frozen):
    """Which rubrics a listing shows: mine and the public ones; to an administrator, all."""

    search: Prose = ""
    """Words of name, owner or description, each by its beginning; all must be there."""
    mine: bool = False
    archived: bool = False
    """The archived ones of mine instead (to an administrator, all of them)."""
    limit: Limit = 50
    cursor: str | None = None


class RunQuery(Frozen):
    """Which runs a listing shows: mine; to an administrator, all. Newest first."""

    role: str | None = None
    status: str | None = None
    rubric: str | None = None
    """Those that cite `owner/name`, at `@version` where one is given."""
    limit: Limit = 50
    cursor: str | None = None


class RunListing(Record):
    """One page of runs, newest first; their citations are left out."""

    items: tuple[RunRecord, ...]
    next: str | None = None


class ScoreKey(Frozen):
    """What a score depends on, besides the judge: the text's version, the evidence, the repeat."""

    rubric: Prose
    """`owner/name@version`."""
    evidence: Digest
    """`Evidence.digest` as hexadecimal."""
    repeat: Count = 0


class KeyedScore(Frozen):
    """A score and what it depends on."""

    key: ScoreKey
    score: Score


class ScorePage(Record):
    """Scores that a run used, in order of their ids."""

    items: tuple[KeyedScore, ...]
    next: str | None = None


def body_of(rubric: Rubric, visibility: str = "private") -> dict[str, JsonValue]:
    """The body that is stored and shown, and that may be written again as it is.

    Args:
        rubric: what was written.
        visibility: of the version before; it holds where the rubric says none.
    """
    criteria: list[JsonValue] = [
        criterion.model_dump(exclude=None if criterion.anchors else {"anchors"})
        for criterion in rubric.criteria
    ]
    said: dict[str, JsonValue] = rubric.model_dump(exclude={"criteria"}, exclude_none=True)
    if "visibility" not in rubric.model_fields_set:
        said["visibility"] = visibility
    return said | {"criteria": criteria}
