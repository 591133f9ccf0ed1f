"""GRPO on this machine's CPU: a small policy, rewarded by a rubric that the embedded judge reads.

From a clone, after `make install`:  .venv/bin/pip install trl==1.16.0
                                     .venv/bin/python configs/trainers/trl_grpo.py
On a GPU, name a policy of your own and a judge that you trust, such as `--judge pool:team`.
"""

import argparse

import torch
from trl import GRPOConfig, GRPOTrainer

from starforge_rewards.engine import embedded
from starforge_rewards.settings import Settings
from starforge_rewards.training.trl import StopWhereFailing, TrlReward, training_dataset


def main() -> None:
    """Train, and log the rubric's rewards."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--environment", default="support-desk", help="a shipped name or a folder")
    options.add_argument("--judge", help="default: the environment's, which is the embedded one")
    options.add_argument("--policy", help="a model; default: the one that the judge is made of")
    options.add_argument("--steps", type=int, default=2)
    options.add_argument("--output", default="trl-grpo")
    given = options.parse_args()

    reward = TrlReward(given.environment, given.judge)  # pins the rubric for the whole run
    on_gpu = torch.cuda.is_available()
    trainer = GRPOTrainer(
        model=given.policy or str(embedded.prepare(Settings.read().cache_dir)),
        reward_funcs=[reward],  # the only one: beside a second, TRL takes "no score" for 0
        train_dataset=training_dataset(given.environment),
        callbacks=[StopWhereFailing(reward)],
        args=GRPOConfig(
            output_dir=given.output,
            max_steps=given.steps,
            per_device_train_batch_size=8,
            num_generations=4,
            max_completion_length=64,
            use_cpu=not on_gpu,
            bf16=on_gpu,
            gradient_checkpointing=on_gpu,
            dataloader_pin_memory=on_gpu,
            logging_steps=1,
            disable_tqdm=True,
            report_to="none",
        ),
    )
    trainer.train()


if __name__ == "__main__":
    main()
