"""SkyRL: a single-turn text environment whose reward is a rubric's.

`step` is called in threads of SkyRL's pool and only waits there. SkyRL has no way to say "no
score": a failure ends the run, or is filled in as the environment declares.
"""

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import (  # type: ignore[import-not-found]
    BaseTextEnv,
    BaseTextEnvStepOutput,
)

from starforge_rewards.training.calls import beside, item_of, known, reward_of, value_of


class RubricEnv(BaseTextEnv):  # type: ignore[misc]
    """Register it under a name of yours.

    `skyrl_gym.register(id="starforge", entry_point="starforge_rewards.training.skyrl:RubricEnv")`
    """

    def __init__(self, env_config: Mapping[str, Any], extras: Mapping[str, Any]) -> None:
        """One for each rollout; the reward behind it is one for the process.

        Args:
            env_config: `environment`, `judge` and `run_id`, from `environment.skyrl_gym.<id>`.
            extras: the dataset's columns.

        Raises:
            InputError: the environment is refused.
        """
        super().__init__()
        self._reward = reward_of(
            env_config["environment"], env_config.get("judge"), env_config.get("run_id")
        )
        self._extras = extras
        self._prompt: object = extras.get("prompt")
        self._logged: dict[str, float] = {}

    def init(self, prompt: Any) -> tuple[Any, dict[str, Any]]:
        """Keeps the prompt; it is given to the policy as it is."""
        self._prompt = prompt
        return prompt, {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Scores the answer, and ends the episode.

        Raises:
            RewardsFailing: it has no score, and nothing may stand in for it.
        """
        self.turns += 1
        truth = (self._extras.get("reward_spec") or {}).get("ground_truth")
        row = self._extras.get("extra_info") or self._extras
        (found,) = self._reward.numbers([item_of(self._prompt, action, row, truth)])
        self._logged = known(beside(found, self._reward.criteria))
        return BaseTextEnvStepOutput(
            observations=[], reward=value_of(found), done=True, metadata=dict(self._logged)
        )

    def get_metrics(self) -> dict[str, Any]:
        """What SkyRL averages over a batch."""
        return dict(self._logged)
