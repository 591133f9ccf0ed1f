"""ms-swift's own scoring and advantages with our reward."""

import tempfile
from pathlib import Path

import torch
from swift.rewards import orms  # type: ignore[import-not-found]
from swift.rl_core.advantage import compute_advantages  # type: ignore[import-not-found]
from swift.rl_core.data import GRPOSample  # type: ignore[import-not-found]
from swift.rl_core.grpo_algorithm import (  # type: ignore[import-not-found]
    compute_rewards_per_func,
)

from starforge_rewards.training.ms_swift import orm_of
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from tests.training.conformance import environment


def _samples(*said: str) -> list[GRPOSample]:
    return [
        GRPOSample(
            messages=[
                {"role": "user", "content": "Is it?"},
                {"role": "assistant", "content": one},
            ],
            extra={"solution": "Yes."},
        )
        for one in said
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        orms["starforge"] = orm_of(RubricReward(environment(Path(folder))))
        reward = orms["starforge"]()
        cpu = torch.device("cpu")
        found = compute_rewards_per_func(_samples("good", "bad", "fair"), [reward], [None], cpu)
        assert torch.allclose(found[:, 0], torch.tensor([1.0, 0.0, 0.6])), found
        given, _ = compute_advantages(
            rewards_per_func=found,
            reward_weights=torch.ones(1),
            num_generations=3,
            advantage_estimator="grpo",
            scale_rewards="none",
        )
        expected = torch.tensor([1.0, 0.0, 0.6]) - 1.6 / 3
        assert torch.allclose(given, expected, atol=1e-5), given
        try:
            compute_rewards_per_func(_samples("good", "fails", "bad"), [reward], [None], cpu)
        except RewardsFailing:
            return
        raise AssertionError("a failed judgement became a number")
