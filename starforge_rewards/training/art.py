"""ART: `score_group`, of the shape of `ruler_score_group`, for `gather_trajectory_groups`.

A trajectory without a score leaves its group, and a group in which fewer than two are left is
dropped: `None`, as ART takes it. Nothing here needs ART to be installed.
"""

from typing import Any

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import Carrier, beside, item_of, known, parted, reward_of
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward


class GroupScorer(Carrier):
    """An async function of a group: `after_each=scorer`."""

    async def __call__(self, group: Any) -> Any:
        """A new `TrajectoryGroup`; the one that was given is left as it is.

        Raises:
            InputError: a trajectory is not a conversation, or has more than one history.
        """
        items = [_item(trajectory) for trajectory in group.trajectories]
        found = await self.reward.ascore(items)
        pairs = zip(group.trajectories, found, strict=True)
        kept = [self._scored(old, one) for old, one in pairs if one.value is not None]
        return group.model_copy(update={"trajectories": kept}) if len(kept) > 1 else None

    def _scored(self, trajectory: Any, found: Reward) -> Any:
        logged = known(beside(found, self.reward.criteria))
        metrics = {**trajectory.metrics, "independent_reward": trajectory.reward, **logged}
        return trajectory.model_copy(update={"reward": found.value, "metrics": metrics})


def score_group(environment: str | RubricReward, judge: str | None = None) -> GroupScorer:
    """What `gather_trajectory_groups(..., after_each=...)` takes."""
    return GroupScorer(reward_of(environment, judge))


def _item(trajectory: Any) -> Item:
    if trajectory.additional_histories:
        raise InputError("more than one history cannot be scored", field="additional_histories")
    prompt, response = parted(trajectory.messages())
    return item_of(prompt, response, trajectory.metadata)
