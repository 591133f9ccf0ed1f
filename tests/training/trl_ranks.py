"""One of several ranks of a GRPO run, started by torchrun; on rank 1 no judge can be opened.

Arguments: model folder, environment folder, judge file. Writes what became of each rank.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer  # type: ignore[attr-defined]

from starforge_rewards.training.rubric_reward import RewardsFailing
from starforge_rewards.training.trl import StopWhereFailing, TrlReward, training_dataset


def main(model: str, home: str, judge: str) -> None:
    rank = int(os.environ["RANK"])
    reward = TrlReward(home, judge if rank == 0 else f"{judge}.away.yaml")
    trainer: Any = GRPOTrainer(
        model=model,
        reward_funcs=[reward],
        args=GRPOConfig(
            output_dir=f"{home}/../ranks",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            dataloader_pin_memory=False,
            disable_tqdm=True,
            save_strategy="no",
            logging_steps=1,
            max_steps=3,
            num_generations=4,
            per_device_train_batch_size=2,
            max_completion_length=4,
            ddp_backend="gloo",
        ),
        train_dataset=training_dataset(home),
        processing_class=AutoTokenizer.from_pretrained(model),
        callbacks=[StopWhereFailing(reward)],
    )
    ended = ""
    try:
        trainer.train()
    except RewardsFailing as error:
        ended = str(error)
    told = {
        "steps": trainer.state.global_step,
        "ended": ended,
        "rewards": list(trainer._logs["rewards"][reward.__name__]),
        "advantages": list(trainer._logs["advantages"]),
    }
    Path(f"{home}.{rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
