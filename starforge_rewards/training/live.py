"""What one process has open for a reward: its judge, its registry, and what it counts.

None of it travels: a reward that is pickled, or whose process forks, opens its own there.
"""

import asyncio
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.registry.folder import RowRubrics
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.open import open_resolver
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.run import Outcome, Role, Run, Status
from starforge_rewards.settings import Settings
from starforge_rewards.training.imputing import PromptScores
from starforge_rewards.training.link import Link
from starforge_rewards.training.recording import HoldingLedger
from starforge_rewards.training.tally import RewardTally


class Job(NamedTuple):
    """What is recorded, and as whom."""

    run_id: str
    role: Role
    subject: str
    as_owner: str | None
    reuse: bool
    """Look scores up before the judge is asked."""


class Live:
    """Of one reward in one process."""

    def __init__(self, link: Link, parents: "Live | None") -> None:
        """Opens nothing yet; `parents` is of before a fork: what it opened is not ours to close."""
        self.link, self.tally, self.known = link, RewardTally(), PromptScores()
        self.ledger: HoldingLedger | None = None
        self._opening = asyncio.Lock()  # of several first calls, one opens the registry
        self._opened = False
        self._stack = ExitStack()
        self._process, self._parents = os.getpid(), parents

    @property
    def here(self) -> bool:
        """False in a process that was forked off."""
        return self._process == os.getpid()

    async def open(
        self, job: Job, identity: JudgeIdentity, rubrics: Sequence[RowRubrics]
    ) -> HoldingLedger | None:
        """The run's ledger, where there is a registry; opened at the first call.

        Raises:
            Unavailable: the registry is away.
        """
        async with self._opening:
            if not self._opened:
                opened = open_resolver(Settings.read(), job.as_owner)
                registry = await asyncio.to_thread(self._stack.enter_context, opened)
                for rows in rubrics:
                    rows.resolver = registry.rubrics if isinstance(registry, Registry) else registry
                if isinstance(registry, Registry):
                    run = Run(role=job.role, subject=job.subject, judge=identity.record)
                    ledger = RunLedger(registry, job.run_id, run, reuse=job.reuse)
                    self.ledger = HoldingLedger(ledger)
                self._opened = True
            return self.ledger

    async def finish(self, outcome: Outcome, status: Status) -> None:
        """Record the end and let the registry go; a later call would open it again.

        Raises:
            Unavailable: the registry is away; what it has not got is still held.
        """
        async with self._opening:
            if self.ledger is not None:
                await self.ledger.finish(outcome, status)
                self.ledger.close()
            self.ledger, self._opened = None, False
            self._stack.close()


connecting = threading.Lock()
"""Two threads that come first make one connection."""


def _forked() -> None:
    global connecting  # a thread that is not here may hold it
    connecting = threading.Lock()


os.register_at_fork(after_in_child=_forked)
