"""Inspect: a scorer that uses a rubric of ours by reference.

A sample that the judge could not score is unscored (NaN), which Inspect leaves out of its metrics.
"""

from typing import Any

from inspect_ai.model import ChatMessage  # type: ignore[import-not-found]
from inspect_ai.scorer import (  # type: ignore[import-not-found]
    Score,
    Scorer,
    Target,
    mean,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState  # type: ignore[import-not-found]

from starforge_rewards.training.by_reference import reward_by
from starforge_rewards.training.calls import item_of
from starforge_rewards.training.environment import Value
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward
from starforge_rewards.training.turns import unwrapped


@scorer(metrics=[mean(), stderr()], name="starforge_rubric")  # type: ignore[untyped-decorator]
def rubric_scorer(
    rubric: str = "",
    *,
    environment: str = "",
    judge: str | None = None,
    value: Value = "total",
    run_id: str | None = None,
) -> Scorer:
    """`Task(..., scorer=rubric_scorer("alice/answer-quality", judge="pool:team"))`.

    The sample's target is the reference; `reference`, `context`, `metadata`, `rubric` and `expect`
    in its metadata are read as in an environment's rows. Needs Inspect's asyncio backend, which is
    its default.

    Args:
        rubric: `owner/name` or `owner/name@version`; or give `environment`.
        environment: a shipped name or a folder; or give `rubric`.
        judge: a shipped name, a file or `pool:NAME`; default: the environment's, or embedded.
        value: with a rubric, the number on its own scale, or in [0, 1].
        run_id: of the run that this is part of; default: a new one.

    Raises:
        InputError: neither or both are given, or what is named is refused.
        NotFound: it names nothing that is readable.
    """
    reward = reward_by(rubric, environment, judge, value=value, run_id=run_id)

    async def score(state: TaskState, target: Target) -> Score:
        (found,) = await reward.ascore([_item(state, target)])
        about = {"answer": state.output.completion, "metadata": _about(reward, found)}
        if found.value is None:
            said = f"{found.cause}: {found.detail}"
            return Score.unscored(reason="grader_failed", explanation=said, **about)
        return Score(value=found.value, **about)

    return score


def _item(state: TaskState, target: Target) -> Item:
    """The response is all that the model said after the sample's own input."""
    given = state.input if isinstance(state.input, list) else None
    prompt: Any = state.input if given is None else [_turn(message) for message in given]
    said = [message for message in state.messages if message.source != "input"]
    first = next((at for at, one in enumerate(said) if one.role == "assistant"), len(said))
    reference = target.text or None
    return unwrapped(
        item_of(prompt, [_turn(one) for one in said[first:]], state.metadata, reference)
    )


def _turn(message: ChatMessage) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": message.text}
    if calls := getattr(message, "tool_calls", None):
        turn["tool_calls"] = [
            {"name": call.function, "arguments": call.arguments} for call in calls
        ]
    return turn


def _about(reward: RubricReward, found: Reward) -> dict[str, Any]:
    return {
        "rubrics": reward.pinned,
        "criteria": found.criteria,
        "total": found.total,
        "normalized": found.normalized,
        "cause": found.cause,
    }
