"""eval-protocol, and reward-kit as it was called before: a rubric as a `reward_function`.

A failed judgement is a result with `is_score_valid=False`; its score, which their type demands, is
their own 0.0 and means nothing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starforge_rewards.training.calls import item_of, parted, reward_of
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward

try:
    from eval_protocol.models import EvaluateResult, MetricResult  # type: ignore[import-not-found]
    from eval_protocol.typed_interface import reward_function  # type: ignore[import-not-found]
except ModuleNotFoundError:
    from reward_kit.models import EvaluateResult, MetricResult  # type: ignore[import-not-found]
    from reward_kit.typed_interface import reward_function  # type: ignore[import-not-found]


def pointwise(
    environment: str | RubricReward, judge: str | None = None
) -> Callable[..., Awaitable[EvaluateResult]]:
    """A function of one rollout's messages; further keyword arguments are the task's columns."""
    reward = reward_of(environment, judge)

    @reward_function(mode="pointwise")  # type: ignore[untyped-decorator]
    async def rubric(messages: Any, ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
        (found,) = await reward.ascore([_item(messages, ground_truth, kwargs)])
        return result(found)

    made: Callable[..., Awaitable[EvaluateResult]] = rubric
    return made


def batch(
    environment: str | RubricReward, judge: str | None = None
) -> Callable[..., Awaitable[list[EvaluateResult]]]:
    """A function of many rollouts' messages; `ground_truths`, where given, has one for each."""
    reward = reward_of(environment, judge)

    @reward_function(mode="batch")  # type: ignore[untyped-decorator]
    async def rubrics(
        rollouts_messages: Sequence[Any], ground_truths: Sequence[Any] | None = None, **kwargs: Any
    ) -> list[EvaluateResult]:
        truths = ground_truths or [None] * len(rollouts_messages)
        pairs = zip(rollouts_messages, truths, strict=True)
        found = await reward.ascore([_item(said, truth, {}) for said, truth in pairs])
        return [result(one) for one in found]

    made: Callable[..., Awaitable[list[EvaluateResult]]] = rubrics
    return made


def result(found: Reward) -> EvaluateResult:
    """A reward as their result, with a metric for each criterion that was answered."""
    metrics = {
        name: MetricResult(score=value, reason="on the rubric's scale", is_score_valid=True)
        for name, value in found.criteria.items()
    }
    if found.value is None:
        said = f"{found.cause}: {found.detail}"
        return EvaluateResult(
            score=0.0, is_score_valid=False, reason=said, error=said, metrics=metrics
        )
    return EvaluateResult(
        score=found.value, is_score_valid=True, reason="by the rubric", metrics=metrics
    )


def _item(messages: Any, ground_truth: Any, row: Mapping[str, Any]) -> Item:
    prompt, response = parted(messages)
    return item_of(prompt, response, row, ground_truth)
