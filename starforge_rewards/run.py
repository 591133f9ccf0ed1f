"""Who cited which version of a rubric, as what, and what came of it.

A run is one execution of a job: a training, a benchmark, a file scored by hand. It says what it is
by itself, under an id that it makes, and cites rubrics at pinned versions.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, JsonValue, StrictInt, model_validator

from starforge_rewards.conversation import Frozen, Json, Prose, Record, RowId, Text
from starforge_rewards.errors import FieldError

Role = Literal["training_reward", "benchmark_score", "conversation_grading", "gate", "adhoc_score"]
Runner = Literal["judge", "safety"]
Status = Literal["running", "finished", "failed"]
Count = Annotated[StrictInt, Field(ge=0, le=2**31 - 1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
RunId = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{7,127}$")]


class JudgeRecord(Frozen):
    """Who answered, as the judge's identity says it."""

    digest: Digest
    identity: Json

    @classmethod
    def of(cls, identity: dict[str, JsonValue]) -> Self:
        """The record of a judge with this identity."""
        return cls(digest=identity_digest(identity), identity=identity)

    @model_validator(mode="after")
    def _digest_is_the_identitys(self) -> Self:
        if self.digest != identity_digest(self.identity):
            raise FieldError("is not the digest of the identity beside it", "digest")
        return self


def identity_digest(identity: Mapping[str, JsonValue]) -> str:
    """Sha256 of a judge's identity as sorted JSON: on its way its order may change."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


class Outcome(Frozen):
    """What came of a run, over all its rows. A row without a score is in no mean."""

    rows: Count
    scored: Count
    unscored: dict[Prose, Count] = {}
    """Rows without a score, by cause."""
    score: Number | None = None
    """Mean total of the scored rows, on the rubric's own scale; None for rubrics of several."""
    normalized: Share | None = None
    """Mean normalized score of the scored rows, in [0, 1]."""
    metrics: dict[Prose, JsonValue] = {}

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.scored + sum(self.unscored.values()) != self.rows:
            raise FieldError("must be the scored rows and the unscored ones together", "rows")
        for field in ("score", "normalized"):
            if not self.scored and getattr(self, field) is not None:
                raise FieldError("nothing is scored, so there is no mean", field)
        return self


class Run(Frozen):
    """What a job says of itself. Status, outcome and citations may be said again, and grow."""

    role: Role
    runner: Runner | None = None
    """How a benchmark scores; only with `benchmark_score`, and always there."""
    subject: Prose = ""
    """What was trained or tested: a model, a checkpoint, a file."""
    judge: JudgeRecord | None = None
    citations: Annotated[tuple[Prose, ...], Field(max_length=100_000)] = ()
    """The versions that it uses, each as `owner/name@version`."""
    status: Status = "running"
    outcome: Outcome | None = None

    @model_validator(mode="after")
    def _benchmarks_have_a_runner(self) -> Self:
        if (self.role == "benchmark_score") != (self.runner is not None):
            said = "judge or safety with role benchmark_score, and left out with any other"
            raise FieldError(said, "runner")
        return self


class ResultRow(Frozen):
    """What one row of a run got: the number that it counted with, or why it has none."""

    key: RowId
    """The row's id; a row that is sent again replaces the one before."""
    position: Count = 0
    """Its place in the run, from 0, and no other row's."""
    outcome: Literal["scored", "unscored"]
    cause: Prose | None = None
    detail: Text = ""
    total: Number | None = None
    normalized: Share | None = None
    rubric: Prose | None = None
    """`owner/name@version`, or None for one that no registry keeps."""
    evidence: Digest | None = None
    """Digest of what the judge was shown: with rubric and repeat it names the score."""
    repeat: Count = 0
    facts: Json = {}

    @model_validator(mode="after")
    def _a_number_or_a_cause(self) -> Self:
        if (self.outcome == "scored") != (self.total is not None):
            raise FieldError("a scored row has a total, and no other has", "total")
        if (self.outcome == "unscored") != (self.cause is not None):
            raise FieldError("an unscored row has a cause, and no other has", "cause")
        return self


class Citation(Record):
    """One version that a run cites."""

    rubric: str
    """`owner/name@version`."""
    digest: str
    readable: bool = True
    """False where the rubric is private by now, to the one who asks."""


class RunRecord(Record):
    """A run as the registry keeps it."""

    id: str
    owner: str
    """Who recorded it."""
    role: Role
    runner: Runner | None = None
    subject: str = ""
    judge: JudgeRecord | None = None
    citations: tuple[Citation, ...] = ()
    status: Status
    outcome: Outcome | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime


class Usage(Record):
    """One citation, as the rubric's side sees it."""

    version: int
    run: str
    owner: str
    role: Role
    runner: Runner | None = None
    status: Status
    score: float | None = None
    """The run's aggregate score, on the rubric's own scale."""
    normalized: float | None = None
    created_at: AwareDatetime
