from pathlib import Path
from types import SimpleNamespace

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import item_of
from starforge_rewards.training.rubric_reward import RubricReward
from tests.training import conformance, venvs

from starforge_rewards.training.openenv import StarforgeRubric  # isort: skip


def test_a_checkpoint_of_another_rubric_is_refused(tmp_path: Path) -> None:
    rubric = StarforgeRubric(RubricReward(conformance.environment(tmp_path)))
    rubric.load_state_dict(rubric.state_dict())
    with pytest.raises(InputError, match="the checkpoint used alice/other@3"):
        rubric.load_state_dict({"pinned": ["alice/other@3"]})


def test_an_environment_may_say_how_its_actions_are_read(tmp_path: Path) -> None:
    rubric = StarforgeRubric(
        RubricReward(conformance.environment(tmp_path)),
        read=lambda action, observation: item_of(observation.question, action.move),
    )
    assert rubric(SimpleNamespace(move="fair"), SimpleNamespace(question="Is it?")) == 0.6


def test_an_action_that_says_nothing_is_refused(tmp_path: Path) -> None:
    rubric = StarforgeRubric(RubricReward(conformance.environment(tmp_path)))
    with pytest.raises(InputError, match="action"):
        rubric(SimpleNamespace(), SimpleNamespace(prompt="Is it?"))


def test_it_conforms_where_openenv_is_installed() -> None:
    venvs.conforms("openenv", "openenv", "openenv-async")
