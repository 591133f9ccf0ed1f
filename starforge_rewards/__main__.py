"""`python -m starforge_rewards` is `starforge`."""

from starforge_rewards.cli.main import run

run()
