"""Scores rollouts for one who asks; of a rubric that a registry keeps, the call is a run.

A run that the caller names is theirs to finish; one that is made for a call is finished with it.
"""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import Conflict, NotFound, StarforgeError
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.results import End, outcome_of, recorded
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Score, Unscored
from starforge_rewards.run import ResultRow, Run
from starforge_rewards.scoring import score


@dataclass(frozen=True)
class Call:
    """What somebody wants to have scored."""

    rubric: ResolvedRubric
    rollouts: Sequence[Rollout]
    run: str | None = None
    """The caller's own run."""
    reuse: bool = True
    """Look the scores up before the judge is asked."""


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
    except BaseException:
        if call.run is None:
            with suppress(StarforgeError):  # told is what went wrong first
                await ledger.finish(None, "failed")
        raise
    if call.run is None:
        await ledger.add_results(_rows(call, results))
        await ledger.finish(outcome_of(map(End.of, results), [call.rubric]))
    pairs = zip(call.rollouts, results, strict=True)
    used = any(not rollout.empty or isinstance(result, Score) for rollout, result in pairs)
    return Judged(results, ledger.run_id if used else None)


async def _ledger(call: Call, judge: Judge, registry: Registry) -> RunLedger:
    record = judge.identity.record
    new = Run(role="adhoc_score", judge=record)
    if call.run is None:
        return RunLedger(registry, f"adhoc-{uuid.uuid4().hex[:16]}", new, reuse=call.reuse)
    try:
        known = await run_in_threadpool(registry.runs.show, call.run)
    except NotFound:
        return RunLedger(registry, call.run, new, reuse=call.reuse)
    if known.judge is None or known.judge.digest != record.digest:
        raise Conflict(f"run {call.run!r} has another judge: a run keeps it for its life")
    run = Run(
        role=known.role,
        runner=known.runner,
        subject=known.subject,
        judge=known.judge,
        status=known.status,
    )
    return RunLedger(registry, call.run, run, reuse=call.reuse)


def _rows(call: Call, results: Sequence[Score | Unscored]) -> list[ResultRow]:
    pairs = enumerate(zip(call.rollouts, results, strict=True))
    return [
        recorded(f"item-{at}", at, call.rubric, rollout, result) for at, (rollout, result) in pairs
    ]
