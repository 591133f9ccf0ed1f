"""verifiers up to 0.3.1: a `Rubric` of theirs whose reward is a rubric of ours.

There a reward function that raises counts as 0, and nothing can say "no score". So rollouts are
judged before their functions run: a failure ends the run, or is filled in as the environment's
`on_failure` declares, and is marked by the metric `sf_valid`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import verifiers as vf  # type: ignore[import-not-found]

from starforge_rewards.training.calls import beside, item_of, reward_of, value_of
from starforge_rewards.training.reward import Item
from starforge_rewards.training.rubric_reward import RubricReward
from starforge_rewards.training.turns import unwrapped

_KEPT = "sf_numbers"
"""The key of a state under which what was found waits for the functions."""
_CRITERIA = "sf_criteria"


class LegacyRubric(vf.Rubric):  # type: ignore[misc]
    """`vf.SingleTurnEnv(rubric=LegacyRubric("support-desk"), ...)`."""

    def __init__(
        self,
        environment: str | RubricReward,
        judge: str | None = None,
        *,
        weight: float = 1.0,
        run_id: str | None = None,
    ) -> None:
        """The reward, with `sf_valid` and each criterion as metrics.

        Raises:
            InputError: the environment is refused.
            NotFound: there is none, or it names nothing readable.
        """
        self.reward = reward_of(environment, judge, run_id)
        super().__init__(funcs=[_reads(self.reward.__name__, "value")], weights=[weight])
        self.add_metric(_reads("sf_valid", "sf_valid"))

    async def score_rollout(self, state: Any) -> None:
        """As theirs.

        Raises:
            RewardsFailing: the rollout has no score, and nothing may stand in for it.
        """
        await self._judge([state])
        await super().score_rollout(state)
        _show([state])

    async def score_group(self, states: list[Any]) -> None:
        """As theirs; here `on_failure: group_median` has a group to look at.

        Raises:
            RewardsFailing: a rollout has no score, and nothing may stand in for it.
        """
        await self._judge(states)
        await super().score_group(states)
        _show(states)

    async def _judge(self, states: Sequence[Any]) -> None:
        found = await self.reward.anumbers([_item(state) for state in states])
        for state, one in zip(states, found, strict=True):
            state[_KEPT] = {"value": value_of(one), **beside(one)}
            state[_CRITERIA] = {f"sf_criterion/{name}": at for name, at in one.criteria.items()}


def _show(states: Sequence[Any]) -> None:
    """Criteria, as metrics that no weight counts: one that is not known would make a total NaN."""
    for state in states:
        state["metrics"] |= state[_CRITERIA]


def _reads(name: str, key: str) -> Callable[..., Any]:
    """A reward function that is called by this name, and has only to look."""

    async def read(state: Mapping[str, Any]) -> float:
        return float(state[_KEPT][key])

    read.__name__ = name
    return read


def _item(state: Any) -> Item:
    info = state.get("info") or {}
    row = info if isinstance(info, Mapping) else {}
    answer = state.get("answer") or None
    return unwrapped(item_of(state["prompt"], state["completion"], row, answer))
