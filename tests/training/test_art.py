import asyncio
from pathlib import Path

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.training.art import score_group
from starforge_rewards.training.rubric_reward import RubricReward
from tests.training import conformance, venvs
from tests.training.art_stub import Trajectory, TrajectoryGroup


def test_a_trajectory_with_more_than_one_history_is_refused(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Is it?"}]
    group = TrajectoryGroup([Trajectory(messages_and_choices=turns, additional_histories=[1])])
    scorer = score_group(RubricReward(conformance.environment(tmp_path)))
    with pytest.raises(InputError, match="additional_histories"):
        asyncio.run(scorer(group))


def test_arts_own_gathering_drops_what_has_no_score() -> None:
    venvs.run("art", "tests.training.real.art")


def test_it_conforms_where_art_is_installed() -> None:
    venvs.conforms("art", "art")
