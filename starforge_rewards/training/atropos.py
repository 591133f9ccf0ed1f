"""atropos: scores for a group in `collect_trajectories`, and a `RewardFunction`.

A rollout without a score leaves its group, and a group in which fewer than two are left is
dropped: `None`, as atropos takes it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from atroposlib.envs.reward_fns.reward_function import (  # type: ignore[import-not-found]
    RewardFunction,
)

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import content, items_of, reward_of, value_of
from starforge_rewards.training.reward import Item
from starforge_rewards.training.rubric_reward import RubricReward

_OF_EACH = (
    "tokens",
    "masks",
    "advantages",
    "ref_logprobs",
    "messages",
    "inference_logprobs",
    "overrides",
    "images",
    "distill_token_ids",
    "distill_logprobs",
)
"""The keys of a group that hold one value for each rollout."""


async def score_group(
    reward: RubricReward, group: Mapping[str, Any], items: Sequence[Item]
) -> dict[str, Any] | None:
    """A group with its scores, without the rollouts that have none.

    Args:
        reward: whose scores.
        group: a `ScoredDataGroup`; its `scores` are set here.
        items: its rollouts, as `calls.item_of` makes them, in its order.

    Returns:
        The group, saying its new size where it became smaller; None where fewer than two are left.
    """
    found = await reward.ascore(items)
    kept = [at for at, one in enumerate(found) if one.value is not None]
    if len(kept) < 2:
        return None
    scored = dict(group)
    for key in _OF_EACH:
        if (values := group.get(key)) is not None:
            scored[key] = [values[at] for at in kept]
    scored["scores"] = [value_of(found[at]) for at in kept]
    if len(kept) < len(found):  # else atropos takes it for broken
        scored["group_overrides"] = {
            **(group.get("group_overrides") or {}),
            "group_size": len(kept),
        }
    return scored


class RubricRewardFunction(RewardFunction):  # type: ignore[misc]
    """For `CombinedReward` and the registry, where nothing can be dropped.

    `prompts`, and any of a task's columns, are lists among the keyword arguments.
    """

    def __init__(
        self,
        environment: str | RubricReward,
        judge: str | None = None,
        weight: float = 1.0,
        name: str | None = None,
        **config: Any,
    ) -> None:
        super().__init__(weight=weight, name=name, **config)
        self.reward = reward_of(environment, judge)

    def compute(self, completions: Sequence[Any], **columns: Any) -> list[float]:
        """One reward for each completion, before the weight.

        Raises:
            InputError: there are no prompts, or a column is refused.
            RewardsFailing: one has no score, and nothing may stand in for it.
        """
        if "prompts" not in columns:
            raise InputError("is not there: pass the prompts as a list", field="prompts")
        said = [content(one, "completions") for one in completions]
        items = items_of(columns["prompts"], said, columns)
        return [value_of(one) for one in self.reward.numbers(items)]

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float]:
        """As atropos's own, but that a failure is raised: there it becomes zeros."""
        rewards = self.compute(completions, **columns)
        weighted = [reward * self.weight for reward in rewards]
        self.log_metrics(rewards, weighted)
        return weighted
