"""OpenEnv: our rubric as one of its `Rubric`s, for an environment's `rubric`, alone or in a sum.

A failed judgement is raised: OpenEnv has no way to say "no score".
"""

from collections.abc import Callable, Mapping
from typing import Any

from openenv.core.rubrics.base import Rubric  # type: ignore[import-not-found]

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import item_of, reward_of, value_of
from starforge_rewards.training.reward import Item
from starforge_rewards.training.rubric_reward import RubricReward

Read = Callable[[Any, Any], Item]
"""From an action and its observation to what is judged."""


def spoken(action: Any, observation: Any) -> Item:
    """An action's `message`, `content` or `text` as the answer to the observation's `prompt`.

    Columns of the task are looked for in the observation's `metadata`.

    Raises:
        InputError: the one or the other has none of these.
    """
    said = (getattr(action, name, None) for name in ("message", "content", "text"))
    response = next((one for one in said if one is not None), None)
    if response is None:
        raise InputError("has neither message, content nor text: say `read`", field="action")
    metadata = getattr(observation, "metadata", None) or {}
    prompt = getattr(observation, "prompt", None) or metadata.get("prompt")
    return item_of(prompt, response, metadata)


class StarforgeRubric(Rubric):  # type: ignore[misc]
    """Scores an action; waits in this thread."""

    def __init__(
        self, environment: str | RubricReward, judge: str | None = None, *, read: Read = spoken
    ) -> None:
        super().__init__()
        self._reward, self._read = reward_of(environment, judge), read

    def forward(self, action: Any, observation: Any) -> float:
        """The reward.

        Raises:
            RewardsFailing: there is none.
        """
        (found,) = self._reward.numbers([self._read(action, observation)])
        return value_of(found)

    def state_dict(self) -> dict[str, Any]:
        """The run, and the versions that it holds to."""
        return {"run_id": self._reward.run_id, "pinned": self._reward.pinned}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on only with the rubrics of the checkpoint.

        Raises:
            InputError: a rubric was edited since.
        """
        if state.get("pinned", self._reward.pinned) != self._reward.pinned:
            said = ", ".join(state["pinned"])
            raise InputError(f"the checkpoint used {said}: pin it in the environment", field="ref")


class AsyncStarforgeRubric(StarforgeRubric):
    """As the other, for environments that await their rubric."""

    async def forward(self, action: Any, observation: Any) -> float:  # type: ignore[override]
        (found,) = await self._reward.anumbers([self._read(action, observation)])
        return value_of(found)
