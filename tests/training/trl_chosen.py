"""TRL's own trainers over completions that a test chose; writes what the trainers made of them.

Only what would be sampled is replaced: TRL asks for rewards, groups them and makes advantages of
them. A row's `metadata` holds what the policy says to its prompt, one text for each generation.
Arguments: model folder, environment folder, judge file, and `grpo:STEPS` or `rloo:STEPS`.
"""

import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer  # type: ignore[attr-defined]

from starforge_rewards.training.rubric_reward import RewardsFailing
from starforge_rewards.training.trl import StopWhereFailing, TrlReward, training_dataset

GENERATIONS = 4


class Chosen:
    """Says to each prompt what its row says, in turn."""

    _tokenizer: Any

    def __init__(self, *given: Any, **named: Any) -> None:
        self._said: dict[str, list[str]] = {}
        self._times: dict[str, int] = defaultdict(int)
        for row in named["train_dataset"]:
            self._said[row["prompt"][0]["content"]] = json.loads(row["metadata"])["said"]
        super().__init__(*given, **named)

    def _generate_single_turn(self, prompt_ids: list[list[int]], *others: Any) -> Any:
        del others
        ids = [self._next(self._tokenizer.decode(one)) for one in prompt_ids]
        return (ids, None) if isinstance(self, GRPOTrainer) else ids

    def _next(self, prompt: str) -> list[int]:
        key = next(key for key in self._said if f"{key}<" in prompt)
        self._times[key] += 1
        text = self._said[key][(self._times[key] - 1) % GENERATIONS]
        tokenizer = self._tokenizer
        return [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]


class ChosenGRPO(Chosen, GRPOTrainer):
    pass


class ChosenRLOO(Chosen, RLOOTrainer):
    pass


def trained(kind: str, steps: int, model: Path, home: Path, judge: str) -> dict[str, Any]:
    reward = TrlReward(str(home), judge)
    rows = training_dataset(home)
    trainer_type, config_type = {
        "grpo": (ChosenGRPO, GRPOConfig),
        "rloo": (ChosenRLOO, RLOOConfig),
    }[kind]
    args = config_type(
        output_dir=str(home.parent / kind),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        dataloader_pin_memory=False,
        disable_tqdm=True,
        save_strategy="no",
        logging_steps=1,
        max_steps=steps,
        beta=0.0,
        num_generations=GENERATIONS,
        per_device_train_batch_size=GENERATIONS * len(rows),
        max_completion_length=16,
    )
    trainer: Any = trainer_type(
        model=str(model),
        reward_funcs=[reward],
        args=args,
        train_dataset=rows,
        processing_class=AutoTokenizer.from_pretrained(model),
        callbacks=[StopWhereFailing(reward)],
    )
    before = torch.cat([one.detach().flatten().clone() for one in trainer.model.parameters()])
    ended = ""
    try:
        trainer.train()
    except RewardsFailing as error:
        ended = str(error)
    after = torch.cat([one.detach().flatten() for one in trainer.model.parameters()])
    logs = trainer._logs
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for at, prompt in enumerate(logs["prompt"]):
        extra = {key: values[at] for key, values in logs["extra"].items()}
        value = logs["rewards"][reward.__name__][at]
        groups[prompt[0]["content"]].append(
            {
                "said": logs["completion"][at][0]["content"],
                "reward": None if math.isnan(value) else value,
                "advantage": logs["advantages"][at],
                **extra,
            }
        )
    return {
        "groups": groups,
        "log": trainer.state.log_history,
        "steps": trainer.state.global_step,
        "ended": ended,
        "moved": bool((before != after).any()),
        "finite": bool(torch.isfinite(after).all()),
    }


if __name__ == "__main__":
    model, home, judge, *plan = sys.argv[1:]
    told = {}
    for name in plan:
        kind, steps = name.split(":")
        told[kind] = trained(kind, int(steps), Path(model), Path(home), judge)
    Path(f"{home}.json").write_text(json.dumps(told))
