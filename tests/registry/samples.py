"""What the registry's tests write: small rubrics, runs and scores."""

from pydantic import JsonValue

from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import ScoreKey, User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import CriterionScore, Rubric, Score
from starforge_rewards.run import JudgeRecord, Run

RUN = "run-00000001"
JUDGE = JudgeRecord.of({"model": "m"})
OTHER_JUDGE = JudgeRecord.of({"model": "n"})


def registry(database: Database, owner: str, *, admin: bool = False) -> Registry:
    return registry_of(database, User(owner=owner, admin=admin))


def rubric(**changes: JsonValue) -> Rubric:
    criteria: JsonValue = [{"name": "Correct", "weight": 1.0}, {"name": "Style", "weight": 0.0}]
    body: dict[str, JsonValue] = {"criteria": criteria}
    return Rubric.model_validate(body | changes)


def put(of: Registry, name: str, **changes: JsonValue) -> Ref:
    """Writes a version of `<owner>/<name>`; its pinned reference."""
    return of.rubrics.put(Ref.parse(name), rubric(**changes)).ref


def run(*cited: Ref | str, **about: object) -> Run:
    said = {"role": "adhoc_score", "judge": JUDGE, "citations": [str(each) for each in cited]}
    return Run.model_validate(said | about)


def key(ref: Ref | str, number: int = 0, *, repeat: int = 0) -> ScoreKey:
    return ScoreKey(rubric=str(ref), evidence=f"{number:064x}", repeat=repeat)


def score(value: float = 0.5, **about: object) -> Score:
    one = CriterionScore(
        value=value,
        normalized=value,
        label="1",
        probabilities=(0.25, 0.75),
        origin="asked",
    )
    said = {"total": value, "normalized": value, "raw": value, "criteria": {"Correct": one}}
    return Score.model_validate(said | about)
