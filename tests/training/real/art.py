"""ART's own gathering of groups with our scorer."""

import asyncio
import tempfile
from pathlib import Path

import art  # type: ignore[import-not-found]

from starforge_rewards.training.art import score_group
from starforge_rewards.training.rubric_reward import RubricReward
from tests.training.conformance import environment


async def _trajectory(said: str) -> art.Trajectory:
    turns = [{"role": "user", "content": "Is it?"}, {"role": "assistant", "content": said}]
    return art.Trajectory(messages_and_choices=turns, reward=0.5)


async def _gathered(scorer: object) -> list[art.TrajectoryGroup]:
    gathered: list[art.TrajectoryGroup] = await art.gather_trajectory_groups(
        [
            art.TrajectoryGroup(_trajectory(one) for one in ("good", "fails", "bad")),
            art.TrajectoryGroup(_trajectory(one) for one in ("fails", "fails 2", "good")),
        ],
        after_each=scorer,
    )
    return gathered


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        scorer = score_group(RubricReward(environment(Path(folder))))
        (kept,) = asyncio.run(_gathered(scorer))
    said = {one.messages()[-1]["content"]: one for one in kept.trajectories}
    assert {name: one.reward for name, one in said.items()} == {"good": 1.0, "bad": 0.0}
    assert said["good"].metrics["sf_valid"] == 1.0
    assert said["good"].metrics["independent_reward"] == 0.5
