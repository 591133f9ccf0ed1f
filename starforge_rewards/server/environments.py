"""Environments whose rewards the server gives to trainers, on its own judge.

A training run names itself; the rubrics that it meets first are its own until it ends, also where
the server was started again meanwhile.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import httpx

from starforge_rewards.errors import NotFound
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.protocol import Registry, Resolver
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.run import Run
from starforge_rewards.training import grouping
from starforge_rewards.training.environment import Loaded, load_environment
from starforge_rewards.training.imputing import PromptScores, impute
from starforge_rewards.training.panel import Panel
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.verify import Asking

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MOST_RUNS = 1000


class Standing:
    """An environment as one run uses it."""

    def __init__(self, loaded: Loaded, resolver: Resolver, ledger: RunLedger) -> None:
        """Pins what the environment names.

        Raises:
            InputError: a rubric is refused, or a plugin cannot be used.
            NotFound: a reference names nothing that the asker may read.
        """
        self._environment, self._ledger = loaded.environment, ledger
        self._panel = Panel(loaded, resolver)
        self._known = PromptScores()
        self._http: httpx.AsyncClient | None = None

    async def numbers(self, judge: Judge, items: Sequence[Item]) -> list[Reward]:
        """One reward for each rollout, in order; what failed was judged twice.

        A reward without a value is one that nothing may stand in for.
        """
        rewards = await self._scored(judge, items)
        if failed := [at for at, one in enumerate(rewards) if one.value is None]:
            again = await self._scored(judge, [items[at] for at in failed])
            for at, reward in zip(failed, again, strict=True):
                rewards[at] = reward
        prompts = [grouping.prompt_key(item.row.prompt) for item in items]
        filled = impute(rewards, prompts, self._environment.on_failure, self._known)
        self._known.add(prompts, rewards)
        return rewards if filled is None else filled

    async def _scored(self, judge: Judge, items: Sequence[Item]) -> list[Reward]:
        return await self._panel.rewards(items, Asking(judge, self._ledger, self._client))

    def _client(self) -> httpx.AsyncClient:
        """For verifiers that are servers of the user's."""
        if self._http is None:
            self._http = httpx.AsyncClient()
        return self._http


class Standings:
    """Those of the latest runs; only the thread that makes one waits for the registry."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, ...], Standing] = OrderedDict()

    def find(
        self, registry: Registry, owner: str, name: str, run_id: str, identity: JudgeIdentity
    ) -> Standing:
        """The environment as the run uses it.

        Raises:
            InputError: it is refused.
            NotFound: there is none of this name, or a reference names nothing readable.
        """
        key = (owner, name, run_id, identity.digest)
        if (held := self._held.get(key)) is None:
            run = Run(role="training_reward", judge=identity.record)
            pinned = _Pinned(registry, run_id)
            ledger = RunLedger(registry, run_id, run)
            made = Standing(_environment(name), pinned, ledger)
            held = self._held.setdefault(key, made)
            while len(self._held) > _MOST_RUNS:
                self._held.popitem(last=False)
        return held


class _Pinned:
    """Resolves to the versions that a run has cited already."""

    def __init__(self, registry: Registry, run_id: str) -> None:
        self._rubrics = registry.rubrics
        self._cited: dict[tuple[str, str], Ref] = {}
        try:
            cited = registry.runs.show(run_id).citations
        except NotFound:
            cited = ()
        for citation in cited:
            ref = Ref.parse(citation.rubric)
            self._cited.setdefault((ref.owner, ref.name), ref)

    def resolve(self, text: str) -> ResolvedRubric:
        ref = Ref.parse(text)
        if ref.version is None:
            ref = self._cited.get((ref.owner, ref.name), ref)
        return self._rubrics.resolve(str(ref))


def _environment(name: str) -> Loaded:
    """One in `environments/` where the server was started, or one that ships: by name, no path."""
    if not _NAME.fullmatch(name):
        raise NotFound(f"no environment {name!r}")
    own = Path("environments", name, "environment.yaml")
    return load_environment(own if own.is_file() else name)
