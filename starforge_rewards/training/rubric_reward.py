"""`RubricReward`: an environment's rubric as the reward of a training loop.

References are resolved and pinned once, where the object is made. It pickles without any live
handle, and connects where it is first asked. A failed judgement has no number.
"""

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from starforge_rewards.errors import StarforgeError
from starforge_rewards.judge.config import AnyJudge, remembers
from starforge_rewards.judge.gather import GatheringJudge
from starforge_rewards.registry.folder import RowRubrics
from starforge_rewards.registry.open import open_resolver
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.run import Role, Status
from starforge_rewards.settings import Settings
from starforge_rewards.training import grouping, live
from starforge_rewards.training.environment import Loaded, load_environment
from starforge_rewards.training.imputing import impute
from starforge_rewards.training.link import link_to
from starforge_rewards.training.live import Job, Live
from starforge_rewards.training.panel import Panel
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.tally import RewardMetrics
from starforge_rewards.training.verify import Asking

_TOGETHER = 64
"""Rollouts of a stream that are scored together."""
_UNDER_WAY = 16
"""Such batches under way at a time."""


class RewardsFailing(StarforgeError):
    """More rollouts have no score than the environment allows: the run must end."""


class RubricReward:
    """Scores rollouts of one environment. Safe to use from any thread and any event loop."""

    def __init__(
        self,
        environment: str | Path | Loaded,
        *,
        judge: str | AnyJudge | None = None,
        subject: str = "",
        as_owner: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """Resolves and pins what the environment names; asks no judge yet.

        Args:
            environment: a shipped name, a folder or a file, or one that is loaded.
            judge: in place of the environment's: a shipped name, a file, `pool:NAME`, or itself.
            subject: what is trained, for the record of the run.
            as_owner: with `SF_DATABASE_URL`, whose registry it is.
            run_id: of the run that this is part of; default: a new one.

        Raises:
            InputError: the environment, a rubric or a plugin is refused.
            NotFound: there is no such environment, or a reference names nothing readable.
        """
        named = environment
        self._loaded = named if isinstance(named, Loaded) else load_environment(named)
        self.environment = self._loaded.environment
        self.__name__ = self.environment.name  # what trainers show rewards under
        self.judge = self._loaded.judge(judge)
        self.subject, self.run_id = subject, run_id or f"reward-{uuid.uuid4().hex}"
        self.role: Role = "training_reward"
        """What the run is recorded as."""
        self._as_owner = as_owner
        with open_resolver(Settings.read(), as_owner) as registry:
            resolver = registry.rubrics if isinstance(registry, Registry) else registry
            self._panel = Panel(self._loaded, resolver)
        self._newer: list[str] = []
        self._live: Live | None = None

    @property
    def pinned(self) -> list[str]:
        """The rubrics that hold for the life of this object, by reference or digest."""
        held = self._panel.rubrics
        return [str(rubric) for rubric in held if not isinstance(rubric, RowRubrics)]

    @property
    def criteria(self) -> list[str]:
        """Names of the criteria that all rollouts share, in order; none where rows bring rubrics.

        Of the first rubric verifier, as `Reward.criteria` is.
        """
        first = next(iter(self._panel.rubrics), None)
        if not isinstance(first, ResolvedRubric):
            return []
        return [criterion.name for criterion in first.rubric.criteria]

    @property
    def newer(self) -> list[str]:
        """Versions of the run's rubrics that were written since it began; it keeps its own."""
        ledger = self._live.ledger if self._live else None
        return ledger.newer if ledger else self._newer

    def score(self, items: Sequence[Item]) -> list[Reward]:
        """One reward for each rollout, in order; waits in this thread.

        Raises:
            EngineFailed: the judge cannot be opened.
            Unavailable: the registry is away at the first call.
            InputError: a row's own rubric is refused.
            NotFound: a row's own rubric is a reference that names nothing.
        """
        return self._counted(items, self._judged(items))

    async def ascore(self, items: Sequence[Item]) -> list[Reward]:
        """As `score`; the loop goes on meanwhile."""
        return self._counted(items, await self._ajudged(items))

    def numbers(self, items: Sequence[Item]) -> list[Reward]:
        """For a trainer that has no way to say "no score": every reward has a value.

        What failed is judged once more; then the environment's `on_failure` holds.

        Raises:
            RewardsFailing: a rollout has no score, and nothing may stand in for it.
        """
        rewards = self._judged(items)
        if failed := [at for at, reward in enumerate(rewards) if reward.value is None]:
            rewards = _replaced(rewards, failed, self._judged([items[at] for at in failed]))
        return self._imputed(items, rewards)

    async def anumbers(self, items: Sequence[Item]) -> list[Reward]:
        """As `numbers`; the loop goes on meanwhile."""
        rewards = await self._ajudged(items)
        if failed := [at for at, reward in enumerate(rewards) if reward.value is None]:
            again = await self._ajudged([items[at] for at in failed])
            rewards = _replaced(rewards, failed, again)
        return self._imputed(items, rewards)

    async def stream(self, items: Iterable[Item]) -> AsyncGenerator[Reward, None]:
        """Rewards in the order of the rollouts, while these are still coming: memory is bounded."""
        waiting: deque[asyncio.Task[list[Reward]]] = deque()
        coming = iter(items)
        try:
            while batch := list(islice(coming, _TOGETHER)):
                waiting.append(asyncio.create_task(self.ascore(batch)))
                if len(waiting) == _UNDER_WAY:
                    for reward in await waiting.popleft():
                        yield reward
            while waiting:
                for reward in await waiting.popleft():
                    yield reward
        finally:
            for task in waiting:  # of one who leaves, or where another failed
                task.cancel()
            if waiting:
                await asyncio.wait(waiting)

    def metrics(self) -> RewardMetrics:
        """Of this process."""
        here = self._connected()
        return here.tally.metrics(here.link.under_way)

    @property
    def failing(self) -> bool:
        """Whether more of the recent rollouts failed than the environment allows."""
        return self._connected().tally.beyond(self.environment.abort_failure_rate)

    def stop_where_failing(self) -> None:
        """For loops of one process; where there are several, stop all of them.

        Raises:
            RewardsFailing: `failing`.
        """
        if self.failing:
            rate = self._connected().tally.failure_rate
            raise RewardsFailing(
                f"{rate:.0%} of the recent rollouts have no score, and at most "
                f"{self.environment.abort_failure_rate:.0%} are allowed: see the causes in metrics"
            )

    def finish(self, *, failed: bool = False) -> None:
        """Record how the run ended, and deliver what the registry could not take before.

        Of a run in several processes each records what it counted, and the last one stays.

        Raises:
            Unavailable: the registry is still away.
        """
        if (here := self._live) is None or not here.here or here.ledger is None:
            return
        ledger = here.ledger
        outcome = here.tally.outcome(one_scale=not self._row_rubrics())
        status: Status = "failed" if failed else "finished"
        here.link.run(lambda _judge: here.finish(outcome, status))
        self._newer = ledger.newer

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_live": None}

    def _job(self) -> Job:
        reuse = remembers(self.judge)
        return Job(self.run_id, self.role, self.subject, self._as_owner, reuse)

    def _row_rubrics(self) -> list[RowRubrics]:
        return [rubric for rubric in self._panel.rubrics if isinstance(rubric, RowRubrics)]

    def _judged(self, items: Sequence[Item]) -> list[Reward]:
        here = self._connected()
        with here.tally.waiting():
            return here.link.run(lambda judge: self._score(judge, items))

    async def _ajudged(self, items: Sequence[Item]) -> list[Reward]:
        here = self._connected()
        with here.tally.waiting():
            return await here.link.wait(lambda judge: self._score(judge, items))

    def _counted(self, items: Sequence[Item], rewards: list[Reward]) -> list[Reward]:
        self._connected().tally.add(rewards, _prompts(items))
        return rewards

    def _imputed(self, items: Sequence[Item], rewards: list[Reward]) -> list[Reward]:
        known, prompts = self._connected().known, _prompts(items)
        policy = self.environment.on_failure
        filled = impute(rewards, prompts, policy, known)
        self._counted(items, rewards if filled is None else filled)
        if filled is None:
            first = next(reward for reward in rewards if reward.value is None)
            raise RewardsFailing(
                f"a rollout has no score ({first.cause}: {first.detail}), this trainer has no way "
                f"to leave it out, and on_failure is {policy}: see the judge, and start again"
            )
        return filled

    def _connected(self) -> Live:
        with live.connecting:
            if self._live is None or not self._live.here:
                self._live = Live(link_to(self.judge), self._live)
            return self._live

    async def _score(self, judge: GatheringJudge, items: Sequence[Item]) -> list[Reward]:
        here = self._connected()
        ledger = await here.open(self._job(), judge.identity, self._row_rubrics())
        rewards = await self._panel.rewards(items, Asking(judge, ledger, here.link.client))
        if self.environment.on_failure == "prompt_median":
            here.known.add(_prompts(items), rewards)
        if ledger is not None:
            ledger.announce()
        return rewards


def _prompts(items: Sequence[Item]) -> list[str]:
    return [grouping.prompt_key(item.row.prompt) for item in items]


def _replaced(
    rewards: Sequence[Reward], places: Sequence[int], others: Sequence[Reward]
) -> list[Reward]:
    replaced = list(rewards)
    for place, other in zip(places, others, strict=True):
        replaced[place] = other
    return replaced
