"""All verifiers of one environment, and the one reward that they make of a rollout."""

import asyncio
from collections.abc import Sequence

from pydantic import ValidationError

from starforge_rewards.errors import first_problem
from starforge_rewards.registry.folder import RowRubrics
from starforge_rewards.registry.protocol import Resolver
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.training import grouping
from starforge_rewards.training.environment import Loaded
from starforge_rewards.training.reward import Item, Reward, combined, without_reasoning
from starforge_rewards.training.stand import verifiers_of
from starforge_rewards.training.verify import Asking, ByRubric


class Panel:
    """What makes rewards, pinned; it holds nothing that is open, and travels."""

    def __init__(self, loaded: Loaded, resolver: Resolver) -> None:
        """Resolves and pins what the environment names.

        Raises:
            InputError: a rubric is refused, or a plugin or an endpoint cannot be used.
            NotFound: a reference names nothing that the asker may read.
        """
        self._keeps_reasoning = loaded.environment.keep_reasoning
        self._verifiers = verifiers_of(loaded, resolver)

    @property
    def rubrics(self) -> list[ResolvedRubric | RowRubrics]:
        """Of its rubric verifiers, in order."""
        return [v.rubric for v in self._verifiers if isinstance(v, ByRubric)]

    async def rewards(self, items: Sequence[Item], asking: Asking) -> list[Reward]:
        """One for each rollout, in order; identical ones are judged once.

        Raises:
            StarforgeError: what a verifier raised; a failed judgement is a reward without a value.
        """
        shown = [self._shown(item) for item in items]
        usable = [item for item in shown if isinstance(item, Item)]
        by_id = not all(isinstance(verifier, ByRubric) for verifier in self._verifiers)
        unique = grouping.unique(usable, by_id=by_id)
        judged = iter(unique.scattered(await self._verified(unique.items, asking)))
        return [next(judged) if isinstance(item, Item) else item for item in shown]

    def _shown(self, item: Item) -> Item | Reward:
        """What verifiers are shown of a rollout; a reward without a value where it is no text."""
        try:
            response = item.row.rollout(item.response).response
        except ValidationError as error:
            problem = first_problem(error)
            return Reward(value=None, cause="not_text", detail=problem.said)
        kept = self._keeps_reasoning
        return Item(item.row, response if kept else without_reasoning(response))

    async def _verified(self, items: Sequence[Item], asking: Asking) -> list[Reward]:
        try:
            async with asyncio.TaskGroup() as group:
                works = [
                    group.create_task(verifier.verify(items, asking))
                    for verifier in self._verifiers
                ]
        except BaseExceptionGroup as failed:
            raise _first(failed) from failed
        parts = zip(*(work.result() for work in works), strict=True)
        return [combined(each) for each in parts]


def _first(failed: BaseExceptionGroup) -> BaseException:
    """What went wrong first, for callers who wait for one thing."""
    first = failed.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
