"""OpenRLHF: `--reward.remote_url configs/trainers/openrlhf_reward.py`, on every node.

Each of OpenRLHF's engines loads this file. Set the environment, and the pool that all share.
"""

import os

from starforge_rewards.training.openrlhf import reward_func_of

reward_func = reward_func_of(
    os.environ.get("SF_ENVIRONMENT", "support-desk"),  # a shipped name, or a folder
    judge=os.environ.get("SF_JUDGE"),  # such as pool:team; default: the environment's
    run_id=os.environ.get("SF_RUN"),  # one name for all engines: they are one run
)
