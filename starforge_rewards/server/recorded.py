"""Scores rollouts for one who asks; of a rubric that a registry keeps, the call is a run.

A run that the caller names is theirs to finish; one that is made for a call is finished with it.
"""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import Conflict, NotFound, StarforgeError
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Score, Unscored, evidence_of
from starforge_rewards.run import JudgeRecord, Outcome, ResultRow, Run
from starforge_rewards.scoring import score


@dataclass(frozen=True)
class Call:
    """What somebody wants to have scored."""

    rubric: ResolvedRubric
    rollouts: Sequence[Rollout]
    run: str | None = None
    """The caller's own run."""


@dataclass(frozen=True)
class Judged:
    """One result for each rollout, in order, and the run that they are recorded under."""

    results: Sequence[Score | Unscored]
    run: str | None
    """None where nothing was recorded: no registry keeps the rubric, or nothing was judged."""


async def score_recorded(call: Call, judge: Judge, registry: Registry) -> Judged:
    """Score a call's rollouts.

    Raises:
        Conflict: the run is another's, or has another judge.
        EngineFailed: the judge answered nothing at all.
        Unavailable: the registry cannot be used.
    """
    if call.rubric.unversioned:
        return Judged(await score(call.rubric, call.rollouts, judge), None)
    ledger = await _ledger(call, judge, registry)
    try:
        results = await score(call.rubric, call.rollouts, judge, ledger=ledger)
    except StarforgeError:
        if call.run is None:
            await ledger.finish(None, "failed")
        raise
    if call.run is None:
        await ledger.add_results(_rows(call, results))
        await ledger.finish(_outcome(results))
    pairs = zip(call.rollouts, results, strict=True)
    used = any(not rollout.empty or isinstance(result, Score) for rollout, result in pairs)
    return Judged(results, ledger.run_id if used else None)


async def _ledger(call: Call, judge: Judge, registry: Registry) -> RunLedger:
    identity = judge.identity
    record = JudgeRecord(digest=identity.digest, identity=identity.model_dump(mode="json"))
    new = Run(role="adhoc_score", judge=record)
    if call.run is None:
        return RunLedger(registry, f"adhoc-{uuid.uuid4().hex}", new)
    try:
        known = await run_in_threadpool(registry.runs.show, call.run)
    except NotFound:
        return RunLedger(registry, call.run, new)
    if known.judge is None or known.judge.digest != record.digest:
        raise Conflict(f"run {call.run!r} has another judge: a run keeps it for its life")
    run = Run(
        role=known.role,
        runner=known.runner,
        subject=known.subject,
        judge=known.judge,
        status=known.status,
    )
    return RunLedger(registry, call.run, run)


def _rows(call: Call, results: Sequence[Score | Unscored]) -> list[ResultRow]:
    return [
        ResultRow(
            key=f"item-{position}",
            position=position,
            outcome="scored" if isinstance(result, Score) else "unscored",
            cause=None if isinstance(result, Score) else result.cause,
            detail="" if isinstance(result, Score) else result.detail,
            total=result.total if isinstance(result, Score) else None,
            normalized=result.normalized if isinstance(result, Score) else None,
            rubric=str(call.rubric),
            evidence=evidence_of(rollout).digest.hex(),
        )
        for position, (rollout, result) in enumerate(zip(call.rollouts, results, strict=True))
    ]


def _outcome(results: Sequence[Score | Unscored]) -> Outcome:
    scored = [result for result in results if isinstance(result, Score)]
    causes = Counter(result.cause for result in results if isinstance(result, Unscored))
    count = len(scored)
    return Outcome(
        rows=len(results),
        scored=count,
        unscored=dict(causes),
        score=sum(one.total for one in scored) / count if count else None,
        normalized=sum(one.normalized for one in scored) / count if count else None,
    )
