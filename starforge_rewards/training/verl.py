"""verl: `compute_score` for `reward.custom_reward_function`, one rollout at a time or a batch.

verl passes no prompt here, so it is read from `extra_info`; `verl_manager` sees it by itself. verl
has no way to say "no score": a failure ends the run, or is filled in as the environment declares.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import beside, item_of, reward_of, value_of
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward


async def compute_score(  # noqa: PLR0913 - verl's signature
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any],
    reward_router_address: str | None = None,
    reward_model_tokenizer: object = None,
    *,
    environment: str | RubricReward,
    judge: str | None = None,
    run_id: str | None = None,
) -> dict[str, float]:
    """The reward of one rollout as verl's `score`, with numbers that verl logs.

    Args:
        data_source: passed over, as are verl's own reward model's address and tokenizer.
        solution_str: what the policy answered.
        ground_truth: the reference, where `extra_info` has none.
        extra_info: the dataset's; `prompt` (a text or turns) must be in it.
        reward_router_address: see `data_source`.
        reward_model_tokenizer: see `data_source`.
        environment: of `reward_kwargs`: a shipped name or a folder.
        judge: of `reward_kwargs`: in place of the environment's, such as `pool:team`.
        run_id: of `reward_kwargs`: the run that all reward workers are part of.

    Raises:
        InputError: there is no prompt, or a field of the row is refused.
        RewardsFailing: the rollout has no score, and nothing may stand in for it.
    """
    del data_source, reward_router_address, reward_model_tokenizer
    reward = reward_of(environment, judge, run_id)
    (found,) = await reward.anumbers([_item(solution_str, ground_truth, extra_info)])
    return scored(reward, found)


def compute_scores(  # noqa: PLR0913 - verl's signature
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[object],
    extra_infos: Sequence[Mapping[str, Any]],
    *,
    environment: str | RubricReward,
    judge: str | None = None,
    run_id: str | None = None,
) -> list[dict[str, float]]:
    """As `compute_score`, for the `batch` reward manager of older releases."""
    del data_sources
    reward = reward_of(environment, judge, run_id)
    rows = zip(solution_strs, ground_truths, extra_infos, strict=True)
    found = reward.numbers([_item(*row) for row in rows])
    return [scored(reward, one) for one in found]


def scored(reward: RubricReward, found: Reward) -> dict[str, float]:
    """`score` and what is logged: verl needs the same keys in every row, and numbers only."""
    return {"score": value_of(found), **beside(found, reward.criteria)}


def _item(solution: str, ground_truth: object, extra_info: Mapping[str, Any]) -> Item:
    if extra_info.get("prompt") is None:
        said = "is not there: verl passes no prompt to a reward function, so keep it in this column"
        raise InputError(said, field="extra_info.prompt")
    return item_of(extra_info["prompt"], solution, extra_info, ground_truth)
