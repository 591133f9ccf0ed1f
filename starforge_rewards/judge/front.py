"""What a pool's front actor hosts: one stack of cache and dispatcher for each role."""

from collections.abc import Sequence
from typing import Literal

from starforge_rewards.conversation import Frozen
from starforge_rewards.judge.cache import CachingJudge, VerdictStore
from starforge_rewards.judge.config import Deadlines, Role
from starforge_rewards.judge.dispatch import Dispatcher
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import Choice, Question, Reply


class Bound:
    """The dispatcher as a `Judge`, for callers of one role."""

    def __init__(
        self, dispatcher: Dispatcher, identity: JudgeIdentity, role: Role, deadline: float
    ) -> None:
        self.identity = identity
        self._dispatcher, self._role, self._deadline = dispatcher, role, deadline

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        return await self._dispatcher.answer(
            questions,
            priority=0 if self._role == "training" else 1,
            deadline=self._deadline,
            patient=self._role == "evaluation",
        )


class ReplicaStatus(Frozen):
    """How one replica stands."""

    name: str
    state: Literal["up", "starting", "gone"]
    in_flight: int
    answered: int


class PoolStatus(Frozen):
    """How a pool stands."""

    replicas: tuple[ReplicaStatus, ...]
    queued: int
    """Questions that wait for a place."""


class Front:
    """The object in the front actor: one stack for each role over the same replicas and cache."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        identity: JudgeIdentity,
        deadlines: Deadlines,
        store: VerdictStore | None,
    ) -> None:
        self._dispatcher, self._identity = dispatcher, identity
        self._stacks: dict[Role, Judge] = {}
        roles: tuple[tuple[Role, float], ...] = (
            ("training", deadlines.training),
            ("evaluation", deadlines.evaluation),
        )
        for role, deadline in roles:
            bound = Bound(dispatcher, identity, role, deadline)
            self._stacks[role] = CachingJudge(bound, store) if store else bound

    async def answer(self, questions: Sequence[Question], role: Role) -> list[Reply]:
        return await self._stacks[role].answer(questions)

    async def labels(self, choices: tuple[Choice, ...]) -> str:
        return await self._dispatcher.lanes[0].replica.labels(choices)

    def identity(self) -> JudgeIdentity:
        return self._identity

    async def status(self) -> PoolStatus:
        await self._dispatcher.check()
        lanes = self._dispatcher.lanes
        return PoolStatus(
            replicas=tuple(
                ReplicaStatus(
                    name=lane.replica.name,
                    state="up" if lane.up else "gone" if lane.gone else "starting",
                    in_flight=lane.in_flight,
                    answered=lane.answered,
                )
                for lane in lanes
            ),
            queued=self._dispatcher.queued,
        )
