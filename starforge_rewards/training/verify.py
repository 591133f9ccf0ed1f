"""An environment's verifiers at work: a batch of rollouts in, one part of the reward for each out.

No verifier is shown a row's split. What it could not decide is a cause, whatever went wrong in it:
a judge that failed, a plugin that raised, an endpoint that answered no number.
"""

import asyncio
import inspect
import math
import numbers
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

import httpx

from starforge_rewards import functions
from starforge_rewards.errors import InputError, Unavailable
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.registry.folder import RowRubrics
from starforge_rewards.registry.ledger import Ledger
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Score, Unscored
from starforge_rewards.scoring import score
from starforge_rewards.training.environment import (
    PluginVerifier,
    RubricVerifier,
    Value,
)
from starforge_rewards.training.reward import Item, Measure, Part

Plugin = Callable[..., float | Awaitable[float]]


class Asking(NamedTuple):
    """Who answers a batch, and where its scores are kept."""

    judge: Judge
    ledger: Ledger | None
    client: Callable[[], httpx.AsyncClient]


class Verifier(Protocol):
    """One verifier of an environment."""

    name: str
    weight: float

    async def verify(self, items: Sequence[Item], asking: Asking) -> list[Part]:
        """One part for each item, in order."""
        ...


class ByRubric:
    """A judge's score on one rubric, or on each row's own."""

    def __init__(
        self, config: RubricVerifier, name: str, rubric: ResolvedRubric | RowRubrics, value: Value
    ) -> None:
        self.name, self.weight, self.value = name, config.weight, value
        self.rubric = rubric

    async def verify(self, items: Sequence[Item], asking: Asking) -> list[Part]:
        rubrics = await self._rubrics(items)
        held = [at for at, rubric in enumerate(rubrics) if isinstance(rubric, ResolvedRubric)]
        rollouts = [items[at].row.rollout(items[at].response) for at in held]
        theirs = [rubric for rubric in rubrics if isinstance(rubric, ResolvedRubric)]
        scores = await score(theirs, rollouts, asking.judge, ledger=asking.ledger)
        parts = {
            at: self._part(items[at], rubric, result)
            for at, rubric, result in zip(held, theirs, scores, strict=True)
        }
        return [parts.get(at) or self._away(rubric) for at, rubric in enumerate(rubrics)]

    async def _rubrics(self, items: Sequence[Item]) -> Sequence[ResolvedRubric | Unavailable]:
        if isinstance(self.rubric, ResolvedRubric):
            return [self.rubric] * len(items)
        return await asyncio.to_thread(_resolved, self.rubric, items)  # a registry may be far

    def _away(self, error: object) -> Part:
        return Part(self.name, self.weight, None, "registry_unavailable", str(error)[:500])

    def _part(self, item: Item, rubric: ResolvedRubric, result: Score | Unscored) -> Part:
        held = rubric.rubric
        match result:
            case Unscored():
                return Part(self.name, self.weight, None, result.cause, result.detail, result, held)
            case Score():
                measure: Measure = "complied" if item.row.expect == "comply" else self.value
                value = {
                    "total": result.total,
                    "normalized": result.normalized,
                    "complied": 1.0 - result.normalized,  # high means declined: here that is wrong
                }[measure]
                about = Part(self.name, self.weight, value, score=result, rubric=held)
                return about._replace(measure=measure)


def _resolved(rubrics: RowRubrics, items: Sequence[Item]) -> list[ResolvedRubric | Unavailable]:
    """Each row's own rubric, or that it cannot be fetched now.

    Raises:
        InputError: a row has none, or it is refused.
        NotFound: it names nothing that the asker may read.
    """
    found: list[ResolvedRubric | Unavailable] = []
    with _resolving:
        for item in items:
            if item.row.rubric is None:
                raise InputError(f"row {item.row.id!r} has no rubric of its own", field="rubric")
            try:
                found.append(rubrics.of(item.row.rubric))
            except Unavailable as error:
                found.append(error)
    return found


_resolving = threading.Lock()  # a reference that comes twice at once is resolved once: pinned


def _forked() -> None:
    global _resolving  # a thread that is not here may hold it
    _resolving = threading.Lock()


os.register_at_fork(after_in_child=_forked)


class ByPlugin:
    """A function of the user's: the border to code that is not ours."""

    def __init__(self, config: PluginVerifier, name: str) -> None:
        self.name, self.weight = name, config.weight
        self._named = config.plugin
        load_plugin(self._named)

    async def verify(self, items: Sequence[Item], asking: Asking) -> list[Part]:
        del asking
        function = load_plugin(self._named)  # by name, so that a verifier travels
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(function, item)) for item in items]
        return [task.result() for task in tasks]

    async def _one(self, function: Plugin, item: Item) -> Part:
        rollout, row = item.row.rollout(item.response), item.row.without_split()
        try:
            if inspect.iscoroutinefunction(function):
                value: object = await function(rollout, row)
            else:
                value = await asyncio.to_thread(function, rollout, row)
                value = await value if inspect.isawaitable(value) else value
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a border: it gave no number
            said = f"{self._named}: {type(error).__name__}: {error}"
            return Part(self.name, self.weight, None, "plugin_failed", said[:500])
        if (number := as_number(value)) is None:
            said = f"{self._named} returned {value!r:.100}, no finite number"
            return Part(self.name, self.weight, None, "plugin_failed", said)
        return Part(self.name, self.weight, number)


def as_number(value: object) -> float | None:
    """A finite number as a float; None for anything else, a bool included."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def load_plugin(named: str) -> Plugin:
    """The function that `module:callable` names.

    Raises:
        InputError: it is written otherwise, does not import, or is not there.
    """
    plugin: Plugin = functions.load(named, field="plugin", kind="callable")
    return plugin
