"""atropos's own check of a group before it is sent, on one that a failure made smaller."""

import asyncio
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from atroposlib.envs.base import BaseEnv  # type: ignore[import-not-found]

from starforge_rewards.training.atropos import score_group
from starforge_rewards.training.calls import item_of
from starforge_rewards.training.rubric_reward import RubricReward
from tests.training.conformance import environment


async def _nothing(*_: Any, **__: Any) -> None:
    return None


async def _sent(reward: RubricReward, *said: str) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def keep(found: dict[str, Any] | list[dict[str, Any]]) -> None:
        sent.extend(found if isinstance(found, list) else [found])

    env = SimpleNamespace(
        config=SimpleNamespace(
            group_size=4,
            ensure_scores_are_not_same=True,
            include_messages=False,
            data_path_to_save_groups=None,
        ),
        completion_lengths=[],
        max_token_len=100,
        add_rollouts_for_wandb=_nothing,
        jsonl_writer=None,
        items_sent_this_step=0,
        _send_scored_data_to_api=keep,
    )
    items = [item_of("Is it?", one) for one in said]
    data = {"tokens": [[at] for at in range(len(said))], "masks": [[1]] * len(said), "scores": []}
    if (group := await score_group(reward, data, items)) is not None:
        await BaseEnv.handle_send_to_api(env, group)
    return sent


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        reward = RubricReward(environment(Path(folder)))
        (whole,) = asyncio.run(_sent(reward, "good", "bad", "fair", ""))
        assert whole["scores"] == [1.0, 0.0, 0.6, 0.0]
        (smaller,) = asyncio.run(_sent(reward, "good", "fails", "bad", "fair"))
        assert (smaller["scores"], smaller["tokens"]) == ([1.0, 0.0, 0.6], [[0], [2], [3]])
        assert asyncio.run(_sent(reward, "good", "fails", "fails 2", "good")) == [], "a tie"
