"""AReaL: a sync, picklable reward function for its worker processes, and an async one.

AReaL waits 15 s, also for a free worker, and then goes on with 0. So this waits less and raises,
and what it raises is never a `TimeoutError`, which AReaL takes for its own. `acall` needs no
worker process: prefer it in a workflow of your own.
"""

import asyncio
from typing import Any

from starforge_rewards.training.calls import Carrier, item_of, reward_of, value_of
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward

LONGEST = 12.0
"""Seconds: under AReaL's 15, with room for starting a worker."""


class RewardFn(Carrier):
    """What a workflow takes as `reward_fn`."""

    def __init__(self, reward: RubricReward, deadline: float) -> None:
        super().__init__(reward)
        self._deadline = deadline

    def __call__(
        self, prompt: Any, completions: Any, prompt_ids: Any, completion_ids: Any, **data: Any
    ) -> float:
        """The reward of one rollout.

        Raises:
            RewardsFailing: it has no score within the deadline, and nothing may stand in for it.
        """
        return asyncio.run(self.acall(prompt, completions, prompt_ids, completion_ids, **data))

    async def acall(
        self, prompt: Any, completions: Any, prompt_ids: Any, completion_ids: Any, **data: Any
    ) -> float:
        """As the call, on a loop that goes on meanwhile."""
        del prompt_ids, completion_ids
        said = data.get("messages") or prompt  # `prompt` is the templated text
        item = item_of(said, completions, data, data.get("answer"))
        try:
            async with asyncio.timeout(self._deadline):
                (found,) = await self.reward.anumbers([item])
        except TimeoutError:
            raise RewardsFailing(
                f"no score within {self._deadline:g} s, and AReaL would make it 0: give the judge "
                "more replicas, or call `acall`, which has no limit but the judge's"
            ) from None
        return value_of(found)


def reward_fn_of(
    environment: str | RubricReward,
    judge: str | None = None,
    *,
    run_id: str | None = None,
    deadline: float = LONGEST,
) -> RewardFn:
    """The reward function; `deadline` is in seconds, and under AReaL's own."""
    return RewardFn(reward_of(environment, judge, run_id), deadline)
