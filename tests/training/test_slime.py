from pathlib import Path
from types import SimpleNamespace

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.training.rubric_reward import RubricReward
from starforge_rewards.training.slime import rm
from tests.training.conformance import environment, run

SAMPLE = SimpleNamespace(prompt="<user>Is it?", response="good", label="Yes.", metadata=None)


def test_without_an_environment_it_says_where_to_name_one() -> None:
    with pytest.raises(InputError, match=r"sf_environment: .*--custom-config-path"):
        run(rm(SimpleNamespace(), SAMPLE))


def test_a_reward_key_gets_the_number_with_what_is_logged(tmp_path: Path) -> None:
    reward = RubricReward(environment(tmp_path))
    found = run(rm(SimpleNamespace(sf_environment=reward, reward_key="score"), SAMPLE))
    assert (found["score"], found["sf_valid"], found["sf_criterion/Right"]) == (1.0, 1.0, 5.0)


def test_an_empty_batch_is_an_empty_list(tmp_path: Path) -> None:
    reward = RubricReward(environment(tmp_path))
    assert run(rm(SimpleNamespace(sf_environment=reward), [])) == []
