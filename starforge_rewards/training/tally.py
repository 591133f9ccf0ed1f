"""What a training run shows of its rewards while it goes on: failures, ties, waiting, reuse."""

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from starforge_rewards.conversation import Frozen
from starforge_rewards.run import Outcome
from starforge_rewards.training.reward import Reward

_RECENT = 256
"""Rollouts over which the failure rate is taken."""
_FEWEST = 32
"""Rollouts below which no rate ends a run."""


class RewardMetrics(Frozen):
    """Of the run so far, but for `failure_rate`."""

    scored: int
    failed: dict[str, int]
    """Rollouts without a score, by cause."""
    failure_rate: float
    """Of the most recent 256 rollouts, in [0, 1]."""
    tie_rate: float
    """Share of groups of at least two scored rollouts of one prompt, in one call, in which all
    rewards are equal: such a group teaches nothing."""
    judge_wait_fraction: float
    """Share of the time since the first call that some caller waited for rewards, in [0, 1]."""
    asked: int
    """Criteria that the judge answered."""
    cached: int
    """Criteria that were found in the verdict cache or the ledger."""
    queue_depth: int
    """Questions under way now."""
    imputed: int


class RewardTally:
    """Counts; of one process."""

    def __init__(self) -> None:
        self._counting = threading.Lock()  # callers come from many threads
        self.scored = self.imputed = 0
        self._total = self._normalized = 0.0
        self._judged = self._groups = self._tied = 0
        self._failed: Counter[str] = Counter()
        self._origins: Counter[str] = Counter()
        self._recent: deque[bool] = deque(maxlen=_RECENT)
        self._began: float | None = None
        self._waited, self._waiting, self._since = 0.0, 0, 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While a caller waits; time that several wait is counted once."""
        with self._counting:
            now = time.monotonic()
            if self._began is None:
                self._began = now
            if not self._waiting:
                self._since = now
            self._waiting += 1
        try:
            yield
        finally:
            with self._counting:
                self._waiting -= 1
                if not self._waiting:
                    self._waited += time.monotonic() - self._since

    def add(self, rewards: Sequence[Reward], groups: Sequence[str]) -> None:
        """Count a batch; `groups` names each rollout's prompt."""
        values: dict[str, list[float]] = {}
        with self._counting:
            for reward, group in zip(rewards, groups, strict=True):
                if reward.valid and reward.value is not None:
                    values.setdefault(group, []).append(reward.value)
                self._count(reward)
            several = [each for each in values.values() if len(each) > 1]
            self._groups += len(several)
            self._tied += sum(min(each) == max(each) for each in several)

    def _count(self, reward: Reward) -> None:
        self._recent.append(reward.valid)
        self._origins.update(reward.origins.values())
        if not reward.valid:
            self._failed[reward.cause or "imputed"] += 1
            self.imputed += reward.imputed
            return
        self.scored += 1
        if reward.total is not None and reward.normalized is not None:
            self._judged += 1
            self._total += reward.total
            self._normalized += reward.normalized

    @property
    def failure_rate(self) -> float:
        return 1 - sum(self._recent) / len(self._recent) if self._recent else 0.0

    @property
    def _tie_rate(self) -> float:
        return self._tied / self._groups if self._groups else 0.0

    def beyond(self, rate: float) -> bool:
        """Whether more than this share of the recent rollouts failed, and enough were seen."""
        return len(self._recent) >= _FEWEST and self.failure_rate > rate

    def outcome(self, *, one_scale: bool = True) -> Outcome:
        """For the record of the run; totals on several rubrics' scales have no mean."""
        with self._counting:
            judged = self._judged
            return Outcome(
                rows=self.scored + self._failed.total(),
                scored=self.scored,
                unscored=dict(self._failed),
                score=self._total / judged if judged and one_scale else None,
                normalized=self._normalized / judged if judged else None,
                metrics={"failure_rate": self.failure_rate, "tie_rate": self._tie_rate},
            )

    def metrics(self, queue_depth: int = 0) -> RewardMetrics:
        """For whoever watches the run."""
        with self._counting:
            return self._metrics(queue_depth)

    def _metrics(self, queue_depth: int) -> RewardMetrics:
        now = time.monotonic()
        waited = self._waited + (now - self._since if self._waiting else 0.0)
        lasted = now - self._began if self._began is not None else 0.0
        return RewardMetrics(
            scored=self.scored,
            failed=dict(self._failed),
            failure_rate=self.failure_rate,
            tie_rate=self._tie_rate,
            judge_wait_fraction=min(waited / lasted, 1.0) if lasted else 0.0,
            asked=self._origins["asked"],
            cached=self._origins["cached"] + self._origins["ledger"],
            queue_depth=queue_depth,
            imputed=self.imputed,
        )
