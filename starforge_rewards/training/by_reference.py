"""A rubric as a reward without an environment's folder: for trainers that bring their own tasks."""

import threading
from pathlib import Path

from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import reward_of
from starforge_rewards.training.environment import Environment, Loaded, RubricVerifier, Value
from starforge_rewards.training.rubric_reward import RubricReward

_rewards: dict[tuple[str | None, ...], RubricReward] = {}
_making = threading.Lock()  # two threads that come first make one reward


def reward_by(
    rubric: str = "",
    environment: str = "",
    judge: str | None = None,
    *,
    value: Value = "total",
    run_id: str | None = None,
) -> RubricReward:
    """This process's reward for a rubric, or for an environment: pinned at the first call.

    Args:
        rubric: `owner/name` or `owner/name@version`; or give `environment`.
        environment: a shipped name or a folder; or give `rubric`.
        judge: a shipped name, a file or `pool:NAME`; default: the environment's, or embedded.
        value: with a rubric, what the number is: on its own scale, or in [0, 1].
        run_id: of the run that all processes are part of.

    Raises:
        InputError: neither or both are given, or what is named is refused.
        NotFound: it names nothing that is readable.
    """
    if bool(rubric) == bool(environment):
        raise InputError("give one of rubric and environment", field="rubric")
    if environment:
        return reward_of(environment, judge, run_id)
    key = (rubric, judge, value, run_id)
    with _making:
        if key not in _rewards:
            _rewards[key] = RubricReward(_alone(rubric, value), judge=judge, run_id=run_id)
        return _rewards[key]


def _alone(rubric: str, value: Value) -> Loaded:
    """An environment of this rubric alone; its rows are the trainer's."""
    verifier = RubricVerifier(kind="rubric", ref=rubric)
    named = Environment(name=rubric, dataset="rows.jsonl", verifier=verifier, value=value)
    return Loaded(named, Path())
