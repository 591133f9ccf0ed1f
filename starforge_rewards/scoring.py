"""The one function that turns rollouts into scores, for reward and benchmark alike."""

from collections.abc import Sequence
from itertools import islice

from starforge_rewards.conversation import Rollout
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import Question
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Score, Unscored, lowest, tally


async def score(
    rubric: ResolvedRubric | Sequence[ResolvedRubric],
    rollouts: Sequence[Rollout],
    judge: Judge,
) -> list[Score | Unscored]:
    """Score rollouts with a rubric, or each with its own.

    Args:
        rubric: one for all rollouts, or one for each.
        rollouts: what to score; an empty response is decided by the judge's declared rule, before
            any judge is asked.
        judge: who answers.

    Returns:
        One result per rollout, in order. A failed judgement is `Unscored`, never a number.
    """
    each = [rubric] * len(rollouts) if isinstance(rubric, ResolvedRubric) else list(rubric)
    questions: list[Question] = []
    for own, rollout in zip(each, rollouts, strict=True):
        if not rollout.empty:
            questions += own.poser.pose(rollout)
    replies = await judge.answer(questions) if questions else []
    if len(replies) != len(questions):
        raise ValueError(f"{len(replies)} replies to {len(questions)} questions: not one for each")
    remaining = iter(replies)
    results: list[Score | Unscored] = []
    for own, rollout in zip(each, rollouts, strict=True):
        if not rollout.empty:
            count = len(own.rubric.criteria)
            results.append(tally(own.rubric, list(islice(remaining, count))))
        elif judge.identity.empty_response == "scale_min":
            results.append(lowest(own.rubric))
        else:
            results.append(Unscored(cause="empty_response", detail="the response says nothing"))
    return results
