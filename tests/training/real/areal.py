"""AReaL's own wrapper, with its worker processes, around our reward function."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from areal.api.reward_api import AsyncRewardWrapper  # type: ignore[import-not-found]

from starforge_rewards.training.areal import reward_fn_of
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from tests.training.conformance import environment


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        reward_fn = reward_fn_of(RubricReward(environment(Path(folder))), deadline=0.5)
        wrapper = AsyncRewardWrapper(reward_fn, max_workers=1, max_retries=1)
        asyncio.run(_ask(wrapper))


async def _ask(wrapper: AsyncRewardWrapper) -> None:
    said = {"prompt": "Is it?", "prompt_ids": [1], "completion_ids": [2], "answer": "Yes."}
    assert await wrapper(completions="good", **said) == 1.0
    assert await wrapper(completions="bad", **said) == 0.0
    for failing, why in (("fails", "unparseable"), ("slow", "no score within")):
        with pytest.raises(RewardsFailing, match=why):
            await wrapper(completions=failing, **said)
