from pathlib import Path

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.training.rubric_reward import RubricReward
from tests.training import conformance, venvs

from starforge_rewards.training.ms_swift import orm_of  # isort: skip


def test_without_the_conversations_it_asks_for_them(tmp_path: Path) -> None:
    orm = orm_of(RubricReward(conformance.environment(tmp_path)))()
    with pytest.raises(InputError, match="messages"):
        conformance.run(orm(["good"]))


def test_ms_swifts_own_scoring_and_advantages_take_it() -> None:
    venvs.run("ms_swift", "tests.training.real.ms_swift")


def test_it_conforms_where_ms_swift_is_installed() -> None:
    venvs.conforms("ms_swift", "ms_swift")
