"""verl's own loader, managers and advantages with our function and our manager."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import verl  # type: ignore[import-not-found]
from omegaconf import OmegaConf  # type: ignore[import-not-found]
from tensordict import TensorDict  # type: ignore[import-not-found]
from verl import DataProto
from verl.trainer.ppo import core_algos  # type: ignore[import-not-found]
from verl.trainer.ppo.reward import load_reward_manager  # type: ignore[import-not-found]

from starforge_rewards.training.rubric_reward import RewardsFailing
from tests.training.conformance import environment

_PLAIN = "num_workers"
"""A key of verl's that holds a number."""
_FUNCTION: dict[str, Any] = {
    "path": "pkg://starforge_rewards.training.verl",
    "name": "compute_score",
}
_MANAGER = {
    "source": "importlib",
    "name": "RubricRewardManager",
    "module": {"path": "pkg://starforge_rewards.training.verl_manager"},
}


class _Letters:
    def decode(self, ids: Any, *, skip_special_tokens: bool) -> str:
        return "".join(chr(int(one)) for one in ids if not skip_special_tokens or one)


def _batch(responses: list[str]) -> Any:
    width = max(len(one) for one in responses) + 2
    ids = torch.tensor([[ord(c) for c in one] + [0] * (width - len(one)) for one in responses])
    mask = torch.cat([torch.ones(len(responses), 2, dtype=torch.long), (ids > 0).long()], dim=1)
    tensors = {"prompts": torch.ones(len(responses), 2), "responses": ids, "attention_mask": mask}
    columns: dict[str, list[Any]] = {
        "data_source": ["data"] * len(responses),
        "reward_model": [{"ground_truth": "Yes."}] * len(responses),
        "extra_info": [{"prompt": "Is it?", "index": at} for at in range(len(responses))],
        "raw_prompt": [[{"role": "user", "content": "Is it?"}]] * len(responses),
    }
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        arrays[name] = np.empty(len(values), dtype=object)
        arrays[name][:] = values
    return DataProto(batch=TensorDict(tensors, batch_size=len(responses)), non_tensor_batch=arrays)


def _config(folder: Path, function: dict[str, Any], manager: dict[str, Any]) -> Any:
    named = {"reward_kwargs": {"environment": str(folder)}}
    made = {"custom_reward_function": {**function, **named}, "reward_manager": manager}
    return OmegaConf.create({"reward": made})


async def _each(config: Any, batch: Any) -> list[dict[str, Any]]:
    manager = load_reward_manager(config, _Letters())
    return [await manager.run_single(batch[at : at + 1]) for at in range(len(batch))]


def main() -> None:
    with tempfile.TemporaryDirectory() as stop, tempfile.TemporaryDirectory() as median:
        stopping = environment(Path(stop))
        filling = environment(Path(median), "prompt_median")
        naive = {"source": "register", "name": "naive"}
        for function, manager in ((_FUNCTION, naive), ({"path": None}, _MANAGER)):
            _scores(_config(stopping, function, manager))
            _failures(_config(stopping, function, manager))
            _stand_ins(_config(filling, function, manager))
        _scores(_shipped(stopping))


def _shipped(folder: Path) -> Any:
    """`configs/trainers/verl.yaml` laid over verl's own defaults, for another environment."""
    root = Path(__file__).parents[3]
    ours = OmegaConf.load(root / "configs" / "trainers" / "verl.yaml")
    theirs = OmegaConf.load(Path(verl.__file__).parent / "trainer/config/reward/reward.yaml")
    for section, said in ours.reward.items():
        assert section in theirs, section
        unknown = set(said) - {"reward_kwargs"} - set(theirs[section]) if section != _PLAIN else ()
        assert not unknown, unknown
    ours.reward.custom_reward_function.reward_kwargs = {"environment": str(folder)}
    return OmegaConf.create({"reward": OmegaConf.merge(theirs, ours.reward)})


def _scores(config: Any) -> None:
    batch = _batch(["good", "bad", "fair and more"])
    found = asyncio.run(_each(config, batch))
    assert [one["reward_score"] for one in found] == [1.0, 0.0, 0.6]
    kinds = {tuple(one["reward_extra_info"]) for one in found}
    assert len(kinds) == 1, kinds
    manager = type(asyncio.run(_made(config)))
    placed = manager.assemble_rm_scores(batch, [one["reward_score"] for one in found])
    assert placed[0, len("good") - 1] == 1.0
    assert placed[2, len("fair and more") - 1] == torch.tensor(0.6)
    assert int((placed != 0).sum()) == 2


def _failures(config: Any) -> None:
    try:
        asyncio.run(_each(config, _batch(["good", "fails", "bad"])))
    except RewardsFailing:
        return
    raise AssertionError("a failed judgement became a number")


def _stand_ins(config: Any) -> None:
    """Of a group with a stand-in, verl's own advantages keep the order and centre of the rest."""
    batch = _batch(["good", "fair", "bad", "fails"])
    found = asyncio.run(_each(config, batch))
    assert [one["reward_extra_info"]["sf_valid"] for one in found] == [1.0, 1.0, 1.0, 0.0]
    scores = torch.tensor([[one["reward_score"]] for one in found])
    given, _ = core_algos.compute_grpo_outcome_advantage(
        scores,
        torch.ones_like(scores),
        np.array(["p"] * 4),
        norm_adv_by_std_in_grpo=False,
    )
    expected = torch.tensor([1.0, 0.6, 0.0, 0.6]) - 0.55
    assert torch.allclose(given[:, 0], expected, atol=1e-5), given


async def _made(config: Any) -> Any:
    return load_reward_manager(config, _Letters())
