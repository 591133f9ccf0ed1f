import asyncio
from pathlib import Path

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import item_of
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from tests.training import conformance, venvs

from starforge_rewards.training.atropos import RubricRewardFunction, score_group  # isort: skip


def test_a_failure_is_raised_and_is_not_atroposs_list_of_zeros(tmp_path: Path) -> None:
    function = RubricRewardFunction(RubricReward(conformance.environment(tmp_path)))
    with pytest.raises(RewardsFailing):
        function(["good", "fails"], prompts=["Is it?", "Is it?"])


def test_the_weight_is_applied(tmp_path: Path) -> None:
    function = RubricRewardFunction(RubricReward(conformance.environment(tmp_path)), weight=0.5)
    assert function(["good", "bad"], prompts=["Is it?", "Is it?"]) == [0.5, 0.0]


def test_prompts_are_asked_for(tmp_path: Path) -> None:
    function = RubricRewardFunction(RubricReward(conformance.environment(tmp_path)))
    with pytest.raises(InputError, match="prompts"):
        function(["good"])


def test_a_smaller_group_loses_every_value_of_what_failed(tmp_path: Path) -> None:
    reward = RubricReward(conformance.environment(tmp_path))
    items = [item_of("Is it?", said) for said in ("good", "fails", "bad")]
    data = {
        "tokens": [[1], [2], [3]],
        "masks": [[1], [2], [3]],
        "messages": [["a"], ["b"], ["c"]],
        "ref_logprobs": None,
        "group_overrides": {"env": "x"},
    }
    found = asyncio.run(score_group(reward, data, items))
    assert found == {
        "tokens": [[1], [3]],
        "masks": [[1], [3]],
        "messages": [["a"], ["c"]],
        "ref_logprobs": None,
        "scores": [1.0, 0.0],
        "group_overrides": {"env": "x", "group_size": 2},
    }


def test_atroposs_own_check_takes_a_group_that_a_failure_made_smaller() -> None:
    venvs.run("atropos", "tests.training.real.atropos")


def test_it_conforms_where_atropos_is_installed() -> None:
    venvs.conforms("atropos", "atropos-function", "atropos-group")
