import math
import pickle
from pathlib import Path

import pytest

from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from tests.training.adapters import ADAPTERS
from tests.training.conformance import Adapter, advantages, check, environment, group

RAISING = [one for one in ADAPTERS if one.failure == "raises"]
LEAVING = [one for one in ADAPTERS if one.failure == "left out"]
LOGGING = [
    one for one in ADAPTERS if one.name in ("verl", "verl-batch", "verl-manager", "openrlhf")
]


def named(adapter: Adapter) -> str:
    return adapter.name


@pytest.mark.parametrize("adapter", ADAPTERS, ids=named)
def test_every_adapter_gives_scores_and_never_makes_a_number_of_a_failure(
    adapter: Adapter, tmp_path: Path
) -> None:
    check(adapter, tmp_path)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=named)
def test_what_fails_once_is_judged_again_where_a_failure_would_end_the_run(
    adapter: Adapter, tmp_path: Path
) -> None:
    reward = RubricReward(environment(tmp_path))
    found = adapter.ask(reward, group("good", f"flaky {tmp_path}", "bad"))
    assert found.worth == ([1.0, 1.0, 0.0] if adapter.failure == "raises" else [1.0, None, 0.0])


@pytest.mark.parametrize("adapter", RAISING, ids=named)
def test_a_declared_stand_in_is_the_median_of_the_prompts_scores(
    adapter: Adapter, tmp_path: Path
) -> None:
    policy = "group_median" if adapter.sees_group else "prompt_median"
    reward = RubricReward(environment(tmp_path, policy))
    found = adapter.ask(reward, group("good", "fair", "bad", "fails"))
    assert found.worth == [1.0, 0.6, 0.0, 0.6]
    assert (reward.metrics().imputed, reward.metrics().scored) == (1, 3)


@pytest.mark.parametrize("adapter", LOGGING, ids=named)
def test_a_stand_in_is_marked_under_the_same_keys_as_a_score(
    adapter: Adapter, tmp_path: Path
) -> None:
    policy = "group_median" if adapter.sees_group else "prompt_median"
    reward = RubricReward(environment(tmp_path, policy))
    found = adapter.ask(reward, group("good", "fair", "fails"))
    assert [one["sf_valid"] for one in found.logged] == [1.0, 1.0, 0.0]
    assert found.logged[0].keys() == found.logged[2].keys()
    assert {"sf_criterion/Right", "sf_criterion/Short"} <= found.logged[0].keys()
    assert math.isnan(found.logged[2]["sf_normalized"])
    assert all(isinstance(value, float) for one in found.logged for value in one.values())


@pytest.mark.parametrize("adapter", RAISING, ids=named)
def test_one_score_is_too_few_to_stand_in_for_another(adapter: Adapter, tmp_path: Path) -> None:
    policy = "group_median" if adapter.sees_group else "prompt_median"
    reward = RubricReward(environment(tmp_path, policy))
    with pytest.raises(RewardsFailing, match="unparseable"):
        adapter.ask(reward, group("good", "fails"))


@pytest.mark.parametrize("adapter", LEAVING, ids=named)
def test_the_baseline_of_the_rest_is_theirs_alone(adapter: Adapter, tmp_path: Path) -> None:
    reward = RubricReward(environment(tmp_path))
    found = adapter.ask(reward, group("good", "fails", "good", "bad"))
    assert advantages(found.worth) == pytest.approx([1 / 3, None, 1 / 3, -2 / 3])


@pytest.mark.parametrize("adapter", LEAVING, ids=named)
def test_a_group_of_failures_has_no_number_at_all(adapter: Adapter, tmp_path: Path) -> None:
    reward = RubricReward(environment(tmp_path))
    assert adapter.ask(reward, group("fails", "fails 2", "fails 3")).worth == [None] * 3


@pytest.mark.parametrize("adapter", ADAPTERS, ids=named)
def test_a_reward_that_travelled_scores_alike(adapter: Adapter, tmp_path: Path) -> None:
    travelled = pickle.dumps(RubricReward(environment(tmp_path)))
    reward: RubricReward = pickle.loads(travelled)  # noqa: S301 - our own
    assert adapter.ask(reward, group("good", "bad")).worth == [1.0, 0.0]
