"""slime: `--custom-rm-path starforge_rewards.training.slime.rm`, for one sample or a batch.

The arguments' `sf_environment`, `sf_judge` and `sf_run_id` say what is used: set them in the YAML
of `--custom-config-path`. slime has no way to say "no score": a failure ends the run, or is filled
in as the environment declares.
"""

from collections.abc import Sequence
from typing import Any

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import beside, item_of, reward_of, value_of
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward

Worth = float | dict[str, float]


async def rm(args: Any, sample: Any, **kwargs: Any) -> Worth | list[Worth]:
    """A sample's reward, or a list of them for a list of samples.

    With `--reward-key` each is a dictionary with that key and the numbers that are logged.

    Raises:
        InputError: `sf_environment` is not set, or a field of a sample is refused.
        RewardsFailing: a sample has no score, and nothing may stand in for it.
    """
    del kwargs
    named = getattr(args, "sf_environment", None)
    if named is None:
        raise InputError("set it in the file of --custom-config-path", field="sf_environment")
    reward = reward_of(named, getattr(args, "sf_judge", None), getattr(args, "sf_run_id", None))
    several = isinstance(sample, Sequence)
    samples = sample if several else [sample]
    found = await reward.anumbers([_item(one) for one in samples])
    key = getattr(args, "reward_key", None)
    worth = [_worth(reward, one, key) for one in found]
    return worth if several else worth[0]


def _item(sample: Any) -> Item:
    row = sample.metadata if isinstance(sample.metadata, dict) else {}
    return item_of(row.get("prompt") or sample.prompt, sample.response, row, sample.label)


def _worth(reward: RubricReward, found: Reward, key: str | None) -> Worth:
    value = value_of(found)
    return {**beside(found, reward.criteria), key: value} if key else value
