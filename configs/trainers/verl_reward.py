"""verl: a file for `reward.custom_reward_function.path`, where you want code of your own around it.

Without such code name the function itself: `path: pkg://starforge_rewards.training.verl`.
"""

from collections.abc import Mapping
from typing import Any

from starforge_rewards.training import verl


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any],
    **given: Any,
) -> dict[str, float]:
    """The rubric's reward; what you add to the result must be in every row, and a number."""
    return await verl.compute_score(data_source, solution_str, ground_truth, extra_info, **given)
