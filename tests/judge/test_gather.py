import asyncio
from collections.abc import Sequence

import pytest

from starforge_rewards.judge.gather import GatheringJudge
from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.question import Answer, Choice, Evidence, Part, Question, Reply

CHOICES = tuple(Choice(label=str(n), value=float(n)) for n in range(10))


def questions(*labels: int) -> list[Question]:
    parts = (Part(name="response", content="r"),)
    return [
        Question(source="s", evidence=Evidence(parts=parts), instruction=str(n), choices=CHOICES)
        for n in labels
    ]


class Noted:
    """A judge that notes each call, and waits for its gate before it answers."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.called, self.gate = asyncio.Event(), asyncio.Event()
        self._judge = ScriptedJudge(lambda question: question.instruction)
        self.identity = self._judge.identity

    async def answer(self, asked: Sequence[Question]) -> list[Reply]:
        self.calls.append(len(asked))
        self.called.set()
        await self.gate.wait()
        return await self._judge.answer(asked)


def labels(replies: Sequence[Reply]) -> list[int]:
    return [int(reply.label) for reply in replies if isinstance(reply, Answer)]


def test_callers_that_come_at_once_are_one_call_and_each_gets_its_own() -> None:
    async def work() -> None:
        noted = Noted()
        noted.gate.set()
        judge = GatheringJudge(noted)
        async with asyncio.TaskGroup() as group:
            asks = [group.create_task(judge.answer(questions(n, 9 - n))) for n in range(10)]
        assert [labels(ask.result()) for ask in asks] == [[n, 9 - n] for n in range(10)]
        assert noted.calls == [20]
        assert await judge.answer([]) == []

    asyncio.run(work())


def test_a_large_call_goes_alone_and_no_call_grows_past_the_most() -> None:
    async def work() -> None:
        noted = Noted()
        noted.gate.set()
        judge = GatheringJudge(noted, most=4)
        async with asyncio.TaskGroup() as group:
            asks = [group.create_task(judge.answer(questions(*[n] * n))) for n in (3, 2, 5, 2)]
        assert [labels(ask.result()) for ask in asks] == [[n] * n for n in (3, 2, 5, 2)]
        assert sorted(noted.calls) == [3, 4, 5]

    asyncio.run(work())


def test_a_caller_who_leaves_takes_nobody_with_them() -> None:
    async def work() -> None:
        noted = Noted()
        judge = GatheringJudge(noted)
        leaves = asyncio.create_task(judge.answer(questions(1)))
        stays = asyncio.create_task(judge.answer(questions(2, 3)))
        await noted.called.wait()
        assert judge.under_way == 3
        leaves.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaves
        assert judge.under_way == 2
        noted.gate.set()
        assert labels(await stays) == [2, 3]
        assert judge.under_way == 0

    asyncio.run(work())


def test_a_judge_that_raises_tells_all_callers_and_is_asked_again() -> None:
    class Broken(Noted):
        async def answer(self, asked: Sequence[Question]) -> list[Reply]:
            if not self.calls:
                self.calls.append(len(asked))
                raise RuntimeError("told to")
            return await super().answer(asked)

    async def work() -> None:
        noted = Broken()
        noted.gate.set()
        judge = GatheringJudge(noted)
        asks = [asyncio.create_task(judge.answer(questions(n))) for n in range(3)]
        await asyncio.wait(asks)
        assert [str(ask.exception()) for ask in asks] == ["told to"] * 3
        assert labels(await judge.answer(questions(7))) == [7]
        assert judge.under_way == 0

    asyncio.run(work())
