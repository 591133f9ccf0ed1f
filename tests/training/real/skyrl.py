"""SkyRL's own registry and metrics with our environment."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import skyrl_gym  # type: ignore[import-not-found]

from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from tests.training.conformance import environment


def main() -> None:
    skyrl_gym.register(id="starforge", entry_point="starforge_rewards.training.skyrl:RubricEnv")
    with tempfile.TemporaryDirectory() as folder:
        reward = RubricReward(environment(Path(folder)))

        def step(said: str) -> tuple[float, dict[str, float]]:
            extras = {"reward_spec": {"ground_truth": "Yes."}}
            env = skyrl_gym.make("starforge", env_config={"environment": reward}, extras=extras)
            env.init([{"role": "user", "content": "Is it?"}])
            return env.step(said)["reward"], env.get_metrics()

        with ThreadPoolExecutor(32) as threads:
            found = list(threads.map(step, ["good", "bad", "fair"] * 20))
        assert [one for one, _ in found] == [1.0, 0.0, 0.6] * 20
        from starforge_rewards.training.skyrl import RubricEnv

        averaged = RubricEnv.aggregate_metrics([one for _, one in found])
        assert any("sf_valid" in name for name in averaged), averaged
        try:
            step("fails")
        except RewardsFailing:
            return
        raise AssertionError("a failed judgement became a number")
