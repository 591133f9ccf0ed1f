"""`/api/rubrics`: rubrics with every version's text, written, read, compared and looked up."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from pydantic import AfterValidator, BaseModel, Field, JsonValue, StrictBool, StrictInt
from starlette.responses import Response

from starforge_rewards.conversation import Frozen, Prose
from starforge_rewards.errors import InputError
from starforge_rewards.registry.access import own
from starforge_rewards.registry.listing import words_of
from starforge_rewards.registry.records import Current, Listing, RubricQuery, Written
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import Ref, check_segment
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.run import Usage
from starforge_rewards.server.api.access import Asks, TokenFirst
from starforge_rewards.server.api.answers import answer
from starforge_rewards.server.api.body import RawBody, check, object_in, takes
from starforge_rewards.server.api.document import failures
from starforge_rewards.server.api.errors import naming

SEGMENT = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
LARGEST_VERSION = 999_999_999
_MOST_WORDS = 16
"""Of one search; a database plans a join for each."""


def _not_reserved(owner: str) -> str:
    try:
        check_segment("owner", owner, owner)
    except InputError as error:
        raise ValueError(error.problem) from None
    return owner


Owner = Annotated[
    str,
    Path(pattern=SEGMENT, max_length=128, description="Any name but `resolve`."),
    AfterValidator(_not_reserved),
]
Name = Annotated[str, Path(pattern=SEGMENT, max_length=128)]
READ = failures(401, 404, 422, 503)
"""What may come of asking for one rubric."""
Version = Annotated[int, Query(ge=1, le=LARGEST_VERSION)]
WriteKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]+$",
        max_length=128,
        description="Chosen by the caller: a write that is sent twice under it lands once.",
    ),
]
Expected = Annotated[StrictInt, Field(ge=0, le=LARGEST_VERSION)]


class Expectation(Frozen):
    """What a write may say beside the rubric."""

    expected_version: Expected | None = None
    """Refuse the write where the current version is another; 0: where there is one at all."""


class RubricBody(Rubric, Expectation):
    """The body of a write."""


def _short(search: str) -> str:
    if len(words_of(search)) > _MOST_WORDS:
        raise ValueError(f"at most {_MOST_WORDS} words")
    return search


class RubricsAsked(RubricQuery):
    """Which rubrics a listing shows, as a query string says it."""

    search: Annotated[Prose, Field(max_length=500), AfterValidator(_short)] = ""


class ArchivedBody(Frozen):
    """Whether listings hide a rubric."""

    archived: StrictBool


class Resolved(BaseModel):
    """A rubric as a job uses it, pinned to a version."""

    ref: str
    owner: str
    name: str
    version: int
    kind: str
    digest: str
    rubric: dict[str, JsonValue]


class Usages(BaseModel):
    """Which runs cited which version, newest first."""

    usage: Sequence[Usage]


EXAMPLE: JsonValue = {
    "description": "Scoring customer-support answers.",
    "visibility": "private",
    "scale_min": 0,
    "scale_max": 5,
    "criteria": [
        {
            "name": "Factually correct",
            "weight": 3.0,
            "description": "Every claim about the product is true and current.",
        },
        {
            "name": "Answers the question asked",
            "weight": 2.0,
            "description": "Addresses the actual problem of the customer, not an adjacent one.",
        },
        {
            "name": "Cites the handbook",
            "weight": 1.0,
            "description": "Points to the section a human could check.",
        },
    ],
}

router = APIRouter(prefix="/api/rubrics", tags=["rubrics"], route_class=TokenFirst)


@router.get("", response_model=Listing, responses=failures(401, 422, 503))
def list_rubrics(asks: Asks, query: Annotated[RubricsAsked, Query()]) -> Response:
    """Mine and the public ones, page by page."""
    return answer(asks.registry().rubrics.list(query))


@router.get("/resolve", response_model=Resolved, responses=READ)
def resolve(asks: Asks, ref: Annotated[str, Query(examples=["alice/answer-quality"])]) -> Response:
    """A reference resolved as a job resolves it: what answers here can be named anywhere."""
    rubrics = asks.registry().rubrics
    with naming("query", "ref"):
        current = rubrics.show(Ref.parse(ref))
    return answer(
        {
            "ref": str(current.ref),
            "owner": current.owner,
            "name": current.name,
            "version": current.version,
            "kind": current.kind,
            "digest": current.digest,
            "rubric": current.rubric,
        }
    )


@router.put(
    "/{owner}/{name}",
    response_model=Written,
    responses={
        201: {"model": Written, "description": "Created, at version 1."},
        **failures(401, 403, 409, 413, 422, 503),
    },
    openapi_extra=takes(RubricBody, EXAMPLE),
)
def put_rubric(
    asks: Asks, owner: Owner, name: Name, raw: RawBody, write_key: WriteKey = None
) -> Response:
    """Create or replace; every edit is the next version, and an equal body is no edit."""
    user = asks.user()
    own(user, owner)
    data = object_in(raw)
    beside = Expectation.model_fields.keys() & data.keys()
    expectation = check({key: data.pop(key) for key in beside}, Expectation)
    written = registry_of(asks.database, user).rubrics.put(
        Ref(owner=owner, name=name),
        check(data, Rubric),
        expected_version=expectation.expected_version,
        write_key=write_key,
    )
    return answer(written, 201 if written.created else 200)


@router.get("/{owner}/{name}", response_model=Current, responses=READ)
def show_rubric(asks: Asks, owner: Owner, name: Name, version: Version | None = None) -> Response:
    """The current version, or another one."""
    ref = Ref(owner=owner, name=name, version=version)
    return answer(asks.registry().rubrics.show(ref))


@router.get("/{owner}/{name}/usage", response_model=Usages, responses=READ)
def list_usage(asks: Asks, owner: Owner, name: Name) -> Response:
    """Which runs cited which version, and as what; readers who do not own it see their own."""
    usage = asks.registry().rubrics.usage(Ref(owner=owner, name=name))
    return answer({"usage": [one.model_dump() for one in usage]})


@router.put(
    "/{owner}/{name}/archived",
    response_model=Current,
    responses=failures(401, 403, 404, 413, 422, 503),
    openapi_extra=takes(ArchivedBody, {"archived": True}),
)
def archive(asks: Asks, owner: Owner, name: Name, raw: RawBody) -> Response:
    """Hide from listings, or show again; no new version, and everything else works on."""
    rubrics = asks.registry().rubrics
    body = check(object_in(raw), ArchivedBody)
    return answer(rubrics.archive(Ref(owner=owner, name=name), body.archived))
