"""The one function that turns rollouts into scores, for reward and benchmark alike."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from starforge_rewards.conversation import Rollout
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import Evidence, Question
from starforge_rewards.registry.ledger import Ledger
from starforge_rewards.registry.records import ScoreKey
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Score, Unscored, evidence_of, lowest, tally


async def score(
    rubric: ResolvedRubric | Sequence[ResolvedRubric],
    rollouts: Sequence[Rollout],
    judge: Judge,
    *,
    ledger: Ledger | None = None,
) -> list[Score | Unscored]:
    """Score rollouts with a rubric, or each with its own.

    Args:
        rubric: one for all rollouts, or one for each.
        rollouts: what to score; an empty response is decided by the judge's declared rule, before
            any judge is asked.
        judge: who answers.
        ledger: looked up before the judge, and keeps every score of a versioned rubric that this
            call used, found or new. A failed judgement is never kept.

    Returns:
        One result per rollout, in order. A failed judgement is `Unscored`, never a number.
    """
    each = [rubric] * len(rollouts) if isinstance(rubric, ResolvedRubric) else list(rubric)
    posed = [_posed(own, one) for own, one in zip(each, rollouts, strict=True)]
    keys = [one.key for one in posed if one.key is not None and not one.empty]
    if ledger is not None and ledger.judge != judge.identity.digest:
        raise ValueError("the ledger belongs to a run of another judge")
    found = await ledger.find(keys) if ledger and keys else {}
    results = await _results(posed, judge, found)
    if ledger:
        kept = zip(posed, results, strict=True)
        await ledger.use({p.key: r for p, r in kept if p.key and isinstance(r, Score)})
    return results


class _Posed(NamedTuple):
    rubric: ResolvedRubric
    evidence: Evidence
    empty: bool
    key: ScoreKey | None
    """None where no registry keeps the rubric's text."""


def _posed(rubric: ResolvedRubric, rollout: Rollout) -> _Posed:
    evidence = evidence_of(rollout)
    key = None
    if not rubric.unversioned:
        key = ScoreKey(rubric=str(rubric), evidence=evidence.digest.hex())
    return _Posed(rubric, evidence, rollout.empty, key)


async def _results(
    posed: Sequence[_Posed], judge: Judge, found: Mapping[ScoreKey, Score]
) -> list[Score | Unscored]:
    asked = [not one.empty and one.key not in found for one in posed]
    questions: list[Question] = []
    for one, ask in zip(posed, asked, strict=True):
        if ask:
            questions += one.rubric.poser.pose(one.evidence)
    replies = await judge.answer(questions) if questions else []
    if len(replies) != len(questions):
        raise ValueError(f"{len(replies)} replies to {len(questions)} questions: not one for each")
    remaining = iter(replies)
    results: list[Score | Unscored] = []
    for one, ask in zip(posed, asked, strict=True):
        rubric = one.rubric.rubric
        if ask:
            results.append(tally(rubric, list(islice(remaining, len(rubric.criteria)))))
        elif not one.empty and one.key is not None:
            results.append(found[one.key])
        elif judge.identity.empty_response == "scale_min":
            results.append(lowest(rubric))
        else:
            results.append(Unscored(cause="empty_response", detail="the response says nothing"))
    return results
