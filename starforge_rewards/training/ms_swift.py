"""ms-swift: a rubric among `orms`, for `--reward_funcs`.

A plugin file says `orms["starforge"] = orm_of("support-desk", judge="pool:team")`. ms-swift reads
None as "nothing from this function" and counts it as 0, so a failure ends the run, or is filled in
as the environment declares.
"""

from collections.abc import Sequence
from typing import Any

from swift.rewards import AsyncORM  # type: ignore[import-not-found]

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import items_of, parted, reward_of, value_of
from starforge_rewards.training.rubric_reward import RubricReward


class RubricORM(AsyncORM):  # type: ignore[misc]
    """One reward for each completion of a batch."""

    reward: RubricReward

    async def __call__(self, completions: Sequence[str], **kwargs: Any) -> list[float]:
        """`messages` is each rollout's conversation; a task's columns are lists beside it.

        Raises:
            InputError: there are no messages, or a column is refused.
            RewardsFailing: one has no score, and nothing may stand in for it.
        """
        if len(said := kwargs.get("messages") or ()) != len(completions):
            raise InputError("there must be one conversation for each completion", field="messages")
        halves = [parted(turns) for turns in said]
        references = kwargs.get("solution")
        items = items_of(
            [h.prompt for h in halves], [h.response for h in halves], kwargs, references
        )
        return [value_of(one) for one in await self.reward.anumbers(items)]


def orm_of(environment: str | RubricReward, judge: str | None = None) -> type[RubricORM]:
    """A class, as `orms` holds them."""
    made = reward_of(environment, judge)
    return type("StarforgeORM", (RubricORM,), {"reward": made})
