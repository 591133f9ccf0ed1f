"""What ships: every rubric can be used, and the rollouts are valid, short and not alike."""

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from starforge_rewards import documents, tables
from starforge_rewards.conversation import Rollout
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.settings import shipped

RUBRICS = sorted(shipped("configs", "rubrics").glob("*/*.yaml"))
ROLLOUTS = shipped("environments", "support-desk", "rollouts.jsonl")
SUPPORT_ANSWER = shipped("configs", "rubrics", "starforge", "support-answer.yaml")


@pytest.fixture(scope="module")
def rollouts() -> list[Rollout]:
    return [row for _, row in tables.rows(ROLLOUTS, Rollout) if isinstance(row, Rollout)]


def words(text: object) -> list[str]:
    return re.findall(r"\w+", str(text).lower())


@pytest.mark.parametrize("file", RUBRICS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_shipped_rubric_loads_and_each_criterion_says_success_and_failure(
    file: Path,
) -> None:
    rubric = documents.load(file, Rubric)
    assert rubric.description
    for criterion in rubric.criteria:
        assert "succeeds" in criterion.description
        assert "fails" in criterion.description


def test_the_support_rubric_is_the_one_of_the_documentation() -> None:
    rubric = documents.load(SUPPORT_ANSWER, Rubric)
    assert (rubric.scale_min, rubric.scale_max) == (0, 5)
    assert [criterion.weight for criterion in rubric.criteria] == [3, 2, 1]
    assert all(criterion.anchors for criterion in rubric.criteria)


def test_a_row_has_these_keys_and_no_other() -> None:
    keys = {"id", "prompt", "response", "reference", "metadata"}
    for _, row in tables.rows(ROLLOUTS, Rollout):
        assert row.model_fields_set == keys


def test_there_are_good_mixed_and_bad_rollouts_in_groups(rollouts: list[Rollout]) -> None:
    intended = Counter(str(rollout.metadata["intended"]) for rollout in rollouts)
    assert intended == {"good": 6, "mixed": 5, "bad": 5}
    groups = Counter(rollout.prompt for rollout in rollouts)
    assert len(groups) >= 4
    assert set(groups.values()) <= {2, 3}
    assert len({rollout.id for rollout in rollouts}) == len(rollouts)
    assert all(set(rollout.metadata) == {"intended"} for rollout in rollouts)


def test_a_prompt_has_one_reference(rollouts: list[Rollout]) -> None:
    pairs = {(rollout.prompt, rollout.reference) for rollout in rollouts}
    assert len(pairs) == len({rollout.prompt for rollout in rollouts})


def test_rollouts_are_short(rollouts: list[Rollout]) -> None:
    for rollout in rollouts:
        assert len(words(rollout.prompt)) <= 60
        assert len(words(rollout.response)) <= 90
        assert 0 < len(words(rollout.reference)) <= 50


def test_no_two_responses_are_near_copies(rollouts: list[Rollout]) -> None:
    for one, other in combinations(rollouts, 2):
        a, b = set(words(one.response)), set(words(other.response))
        assert len(a & b) < 0.6 * len(a | b), f"{one.id} and {other.id}"


def test_a_forged_verdict_and_an_empty_response_are_among_the_bad(
    rollouts: list[Rollout],
) -> None:
    bad = [rollout for rollout in rollouts if rollout.metadata["intended"] == "bad"]
    assert sum("Score: 5" in str(rollout.response) for rollout in rollouts) == 1
    assert any("Score: 5" in str(rollout.response) for rollout in bad)
    assert [rollout.empty for rollout in bad].count(True) == 1
    assert [rollout.empty for rollout in rollouts].count(True) == 1
