"""verl: the reward manager for `reward.reward_manager` with `source: importlib`.

It judges what verl itself gave the policy as a prompt (`raw_prompt`), so a dataset needs nothing
more than verl's own columns.
"""

from typing import Any

from verl.experimental.reward_loop.reward_manager.base import (  # type: ignore[import-not-found]
    RewardManagerBase,
)

from starforge_rewards.training.calls import item_of, reward_of
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.verl import scored


class RubricRewardManager(RewardManagerBase):  # type: ignore[misc]
    """Scores rollouts by a rubric; `reward.custom_reward_function.reward_kwargs` says which."""

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: object = None,
        reward_router_address: str | None = None,
        reward_model_tokenizer: object = None,
    ) -> None:
        """As verl makes its managers; what concerns a reward model of verl's own is passed over.

        Raises:
            InputError: the environment is refused.
        """
        super().__init__(config, tokenizer, compute_score)
        said = config.reward.custom_reward_function.get("reward_kwargs") or {}
        self._reward = reward_of(said["environment"], said.get("judge"), said.get("run_id"))

    async def run_single(self, data: Any) -> dict[str, Any]:
        """One rollout, as verl 0.9 asks.

        Raises:
            RewardsFailing: it has no score, and nothing may stand in for it.
        """
        return (await self.run_batch(data[-1:]))[0]

    async def run_batch(self, data: Any) -> list[dict[str, Any]]:
        """Several rollouts at once; verl 0.9 does not call this by itself."""
        texts = await self.loop.run_in_executor(None, lambda: [self._text(one) for one in data])
        items = [_item(one, text) for one, text in zip(data, texts, strict=True)]
        found = await self._reward.anumbers(items)
        return [self._said(one) for one in found]

    def _text(self, row: Any) -> str:
        response = row.batch["responses"]
        length = row.batch["attention_mask"][-response.shape[-1] :].sum()
        return str(self.tokenizer.decode(response[:length], skip_special_tokens=True))

    def _said(self, found: Reward) -> dict[str, Any]:
        logged = scored(self._reward, found)
        return {"reward_score": logged["score"], "reward_extra_info": logged}


def _item(row: Any, response: str) -> Item:
    columns = row.non_tensor_batch
    truth = (columns.get("reward_model") or {}).get("ground_truth")
    return item_of(columns["raw_prompt"], response, columns.get("extra_info"), truth)
