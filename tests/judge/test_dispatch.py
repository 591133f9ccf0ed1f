import asyncio
from collections.abc import Callable, Sequence

import pytest

from starforge_rewards.errors import EngineFailed
from starforge_rewards.judge import dispatch
from starforge_rewards.judge.dispatch import BATCH, Dispatcher, Lost
from starforge_rewards.question import (
    Answer,
    Choice,
    Evidence,
    NoAnswer,
    Part,
    Question,
    Reply,
    chosen,
)
from tests.judge.hosted import until


def question(prompt: str, number: int = 0) -> Question:
    parts = (Part(name="task_prompt", content=prompt), Part(name="response", content=str(number)))
    return Question(
        source="test",
        evidence=Evidence(parts=parts),
        instruction="Is it so?",
        choices=(Choice(label="0", value=0), Choice(label="1", value=1)),
    )


class FakeReplica:
    """A replica in this process: can be lost, gone, slow or broken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[int, list[Question]]] = []
        self.lost: Callable[[], Exception | None] = lambda: None
        self.open = asyncio.Event()
        self.open.set()

    async def answer(self, questions: Sequence[Question], priority: int) -> list[Reply]:
        self.calls.append((priority, list(questions)))
        await self.open.wait()
        if error := self.lost():
            raise error
        return [chosen(q, "1", reason=self.name) for q in questions]

    async def labels(self, choices: tuple[Choice, ...]) -> str:
        return "0, 1"

    async def ready(self) -> int:
        if error := self.lost():
            raise error
        return 1

    @property
    def sizes(self) -> list[int]:
        return [len(questions) for _, questions in self.calls]


async def no_pause(_seconds: float) -> None:
    await asyncio.sleep(0)


def dispatcher(*replicas: FakeReplica, max_in_flight: int = 1000, resends: int = 3) -> Dispatcher:
    return Dispatcher(replicas, max_in_flight=max_in_flight, resends=resends, sleep=no_pause)


def who(reply: Reply) -> str:
    assert isinstance(reply, Answer)
    return reply.reason


def test_replies_come_in_order_whatever_their_routes() -> None:
    async def run() -> None:
        front = dispatcher(FakeReplica("a"), FakeReplica("b"))
        asked = [question(f"prompt {n % 7}", n) for n in range(200)]
        replies = await front.answer(asked, priority=0, deadline=5)
        again = await front.answer(asked, priority=0, deadline=5)
        assert len(replies) == 200
        assert [who(r) for r in replies] == [who(r) for r in again]

    asyncio.run(run())


def test_a_prompts_questions_go_to_one_replica_and_prompts_spread() -> None:
    async def run() -> None:
        front = dispatcher(*[FakeReplica(f"r{n}") for n in range(4)])
        asked = [question(f"prompt {n // 10}", n) for n in range(400)]
        replies = [who(r) for r in await front.answer(asked, priority=0, deadline=5)]
        groups = [set(replies[start : start + 10]) for start in range(0, 400, 10)]
        assert all(len(group) == 1 for group in groups)
        assert len(set.union(*groups)) == 4

    asyncio.run(run())


def test_what_a_full_replica_cannot_take_spills_to_the_next_choice() -> None:
    async def run() -> None:
        replicas = [FakeReplica("a"), FakeReplica("b")]
        for replica in replicas:
            replica.open.clear()
        front = dispatcher(*replicas, max_in_flight=BATCH)
        asked = [question("one prompt", n) for n in range(3 * BATCH)]
        work = asyncio.create_task(front.answer(asked, priority=0, deadline=5))
        await until(lambda: all(replica.calls for replica in replicas))
        assert [len(r.calls) for r in replicas] == [1, 1]
        assert front.queued == BATCH
        for replica in replicas:
            replica.open.set()
        assert len(await work) == 3 * BATCH

    asyncio.run(run())


def test_one_call_carries_a_batch_of_small_groups() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        asked = [question(f"prompt {n}") for n in range(2 * BATCH)]
        await dispatcher(replica).answer(asked, priority=0, deadline=5)
        assert replica.sizes == [BATCH, BATCH]

    asyncio.run(run())


def test_training_is_served_before_evaluation_that_came_first() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        replica.open.clear()
        front = dispatcher(replica, max_in_flight=1)
        async with asyncio.TaskGroup() as group:
            for name, priority in (("first", 1), ("evaluation", 1), ("training", 0)):
                came = len(replica.calls) + front.queued + 1
                group.create_task(front.answer([question(name)], priority=priority, deadline=5))
                await until(lambda n=came: len(replica.calls) + front.queued == n)
            replica.open.set()
        order = [questions[0].evidence.parts[0].content for _, questions in replica.calls]
        assert order == ["first", "training", "evaluation"]

    asyncio.run(run())


def test_a_lost_replicas_questions_are_sent_elsewhere() -> None:
    async def run() -> None:
        replicas = [FakeReplica("a"), FakeReplica("b")]
        replicas[0].lost = lambda: Lost("killed", permanent=True)
        front = dispatcher(*replicas)
        asked = [question(f"prompt {n}") for n in range(50)]
        replies = await front.answer(asked, priority=0, deadline=5)
        assert {who(reply) for reply in replies} == {"b"}
        assert front.lanes[0].gone

    asyncio.run(run())


def test_with_every_replica_gone_the_questions_are_unreachable_and_nothing_hangs() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        replica.lost = lambda: Lost("killed", permanent=True)
        replies = await dispatcher(replica).answer([question("p")], priority=0, deadline=60)
        assert [r.cause for r in replies if isinstance(r, NoAnswer)] == ["unreachable"]

    asyncio.run(run())


def test_questions_wait_for_a_replica_that_restarts() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        failures = iter([None, *[Lost("restarting", permanent=False)] * 4])
        replica.lost = lambda: next(failures, None)
        front = dispatcher(replica)
        [reply] = await front.answer([question("p")], priority=0, deadline=60)
        assert who(reply) == "a"
        assert front.lanes[0].up

    asyncio.run(run())


def test_a_question_that_kills_each_replica_is_given_up_after_bounded_sends() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        asks = 0

        def answer_fails_ready_works() -> Exception | None:
            return Lost("killed by it", permanent=False) if len(replica.calls) > asks else None

        replica.lost = answer_fails_ready_works
        front = dispatcher(replica, resends=2)

        async def let_it_come_back(_seconds: float) -> None:
            nonlocal asks
            asks = len(replica.calls)
            await asyncio.sleep(0)

        front._sleep = let_it_come_back
        [reply] = await front.answer([question("p")], priority=0, deadline=60)
        assert isinstance(reply, NoAnswer)
        assert reply.cause == "unreachable"
        assert len(replica.calls) == 3

    asyncio.run(run())


def test_a_replica_whose_engine_does_not_start_again_is_gone() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        said: list[Exception] = [Lost("killed", permanent=False), EngineFailed("no memory")]
        replica.lost = lambda: None if not replica.calls else said.pop(0) if said[1:] else said[0]
        [reply] = await dispatcher(replica).answer([question("p")], priority=0, deadline=60)
        assert isinstance(reply, NoAnswer)
        assert reply.cause == "unreachable"

    asyncio.run(run())


def test_what_has_no_reply_at_the_deadline_is_a_timeout_and_the_rest_keep_theirs() -> None:
    async def run() -> None:
        quick, slow = FakeReplica("quick"), FakeReplica("slow")
        slow.open.clear()
        asked = [question(f"prompt {n}") for n in range(40)]
        replies = await dispatcher(quick, slow).answer(asked, priority=0, deadline=0.05)
        kinds = {type(reply) for reply in replies}
        assert kinds == {Answer, NoAnswer}
        assert {r.cause for r in replies if isinstance(r, NoAnswer)} == {"timeout"}

    asyncio.run(run())


def test_an_asker_that_leaves_takes_its_waiting_questions_with_it() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        replica.open.clear()
        front = dispatcher(replica, max_in_flight=1)
        first = asyncio.create_task(front.answer([question("p")], priority=0, deadline=5))
        second = asyncio.create_task(front.answer([question("q")], priority=0, deadline=5))
        await until(lambda: front.queued == 1)
        second.cancel()
        replica.open.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        assert front.queued == 0
        assert len(replica.calls) == 1

    asyncio.run(run())


def test_a_fault_in_a_replica_reaches_the_asker_and_does_not_hang() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        replica.lost = lambda: RuntimeError("a bug") if replica.calls else None
        with pytest.raises(RuntimeError, match="a bug"):
            await dispatcher(replica).answer([question("p")], priority=0, deadline=5)

    asyncio.run(run())


def test_for_evaluation_a_queue_that_moves_is_no_timeout() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        slow = replica.answer

        async def answer(questions: Sequence[Question], priority: int) -> list[Reply]:
            await asyncio.sleep(0.1)
            return await slow(questions, priority)

        replica.answer = answer  # type: ignore[method-assign]
        front = dispatcher(replica, max_in_flight=1)
        asked = [question("one prompt", n) for n in range(8 * BATCH)]
        patient = await front.answer(asked, priority=1, deadline=0.3, patient=True)
        assert {type(reply) for reply in patient} == {Answer}
        hurried = await front.answer(asked, priority=0, deadline=0.3)
        assert {type(reply) for reply in hurried} == {Answer, NoAnswer}

    asyncio.run(run())


def test_a_check_finds_a_replica_that_died_since_it_was_last_asked() -> None:
    async def run() -> None:
        replica = FakeReplica("a")
        front = dispatcher(replica)
        await front.answer([question("p")], priority=0, deadline=5)
        replica.lost = lambda: Lost("killed", permanent=True)
        await front.check()
        assert not front.lanes[0].up

    asyncio.run(run())


def test_a_replica_that_never_comes_up_delays_the_first_call_by_a_moment_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatch, "_MOMENT", 0.2)

    async def run() -> None:
        up, pending = FakeReplica("up"), FakeReplica("pending")

        async def wait_for_ever() -> int:
            await asyncio.Event().wait()
            return 0

        pending.ready = wait_for_ever  # type: ignore[method-assign]
        front = dispatcher(up, pending)
        took = []
        for number in range(2):
            began = asyncio.get_running_loop().time()
            replies = await front.answer([question(f"p{number}")], priority=0, deadline=5)
            took.append(asyncio.get_running_loop().time() - began)
            assert who(replies[0]) == "up"
        assert took[0] >= 0.2 > took[1]

    asyncio.run(run())
