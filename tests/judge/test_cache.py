"""What is remembered, what is not, and what becomes of two who ask the same at once."""

import asyncio
from collections.abc import Sequence

import pytest

from starforge_rewards.conversation import Rollout
from starforge_rewards.judge.cache import ASKED_TOGETHER, CachingJudge, MemoryStore
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.question import Answer, Choice, NoAnswer, Question, Reply, Tokens
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Rubric, Score
from starforge_rewards.scoring import score
from tests.judge.cache_asks import IDENTITY, LATE, YES, Counting, question


def origins(replies: Sequence[Reply]) -> list[str]:
    return [reply.origin if isinstance(reply, Answer) else reply.cause for reply in replies]


def rubric(*criteria: tuple[str, float, str]) -> ResolvedRubric:
    rows = [{"name": n, "weight": w, "description": d} for n, w, d in criteria]
    return ResolvedRubric.pin(
        Rubric.model_validate({"scale_min": 0, "scale_max": 5, "criteria": rows})
    )


# --- the key ---

CHANGED: dict[str, object] = {
    "model": "other",
    "revision": "main",
    "weights": "0" * 64,
    "dtype": "float32",
    "engine": "vllm 1",
    "options": {"max_model_len": 1},
    "read": "reasoned",
    "layout": "slot-2",
    "template": "1" * 64,
    "decoding": {"temperature": 0},
    "min_mass": 0.4,
    "empty_response": "unscored",
    "overlong": "head_tail",
}


@pytest.mark.parametrize("name", JudgeIdentity.model_fields)
def test_another_judge_in_any_field_of_its_identity_is_asked(name: str) -> None:
    store = MemoryStore()
    other = Counting(identity=IDENTITY.model_copy(update={name: CHANGED[name]}))
    asyncio.run(CachingJudge(Counting(), store).answer([question()]))
    assert origins(asyncio.run(CachingJudge(other, store).answer([question()]))) == ["asked"]


def test_what_is_asked_in_any_part_otherwise_is_asked_again() -> None:
    asked = question()
    no, yes = asked.choices
    others = [
        question("b"),
        question(instruction="Is it right? "),
        question(repeat=1),
        asked.model_copy(update={"choices": (yes, no)}),
        asked.model_copy(update={"choices": (no, Choice(label="Yes", value=1.0))}),
        asked.model_copy(update={"choices": (no, Choice(label="yes", value=0.9))}),
        asked.model_copy(update={"choices": (no, Choice(label="yes", value=1.0, meaning="so"))}),
        asked.model_copy(update={"choices": (*asked.choices, Choice(label="so", value=0.5))}),
    ]
    judge = CachingJudge(Counting(), MemoryStore())

    async def main() -> list[Reply]:
        await judge.answer([asked])
        return await judge.answer([asked, *others])

    assert origins(asyncio.run(main())) == ["cached"] + ["asked"] * len(others)


def test_who_asks_is_no_part_of_the_question() -> None:
    judge = CachingJudge(Counting(), MemoryStore())
    renamed = question().model_copy(update={"source": "another rubric"})
    assert origins(asyncio.run(judge.answer([question(), renamed]))) == ["asked", "cached"]


def test_an_edited_weight_asks_nothing_and_changes_the_total() -> None:
    counting = ScriptedJudge(lambda q: "5" if "Correct" in q.instruction else "0")
    judge, rollouts = CachingJudge(counting, MemoryStore()), [Rollout(prompt="p", response="r")]

    async def main() -> list[float]:
        totals = []
        for weight in (1, 3):
            held = rubric(("Correct", weight, "so"), ("Brief", 1, "short"))
            (result,) = await score(held, rollouts, judge)
            assert isinstance(result, Score)
            totals.append(result.total)
        return totals

    assert asyncio.run(main()) == [2.5, 3.75]
    assert len(counting.asked) == 2


def test_an_edited_criterion_is_asked_and_no_other() -> None:
    counting = ScriptedJudge(lambda _: "5")
    judge, rollouts = CachingJudge(counting, MemoryStore()), [Rollout(prompt="p", response="r")]

    async def main() -> Score:
        await score(rubric(("Correct", 1, "so"), ("Brief", 1, "short")), rollouts, judge)
        edited = rubric(("Correct", 1, "so"), ("Brief", 1, "at most ten words"))
        (result,) = await score(edited, rollouts, judge)
        assert isinstance(result, Score)
        return result

    result = asyncio.run(main())
    assert {n: c.origin for n, c in result.criteria.items()} == {
        "Correct": "cached",
        "Brief": "asked",
    }
    assert len(counting.asked) == 3


# --- what is kept ---


def test_a_found_answer_is_the_answer_without_its_cost() -> None:
    judge = CachingJudge(Counting(), MemoryStore())
    first = asyncio.run(judge.answer([question()]))
    again = asyncio.run(judge.answer([question()]))
    assert first == [YES]
    assert again == [YES.model_copy(update={"origin": "cached", "tokens": Tokens()})]


def test_a_failure_is_never_kept() -> None:
    counting = Counting(lambda _: LATE)
    judge = CachingJudge(counting, MemoryStore())
    for _ in range(3):
        assert asyncio.run(judge.answer([question()])) == [LATE]
    assert len(counting.asked) == 3


def test_in_memory_the_oldest_answers_leave_first() -> None:
    store = MemoryStore(most=2)
    for key in (b"1", b"2", b"3"):
        store.keep({key: YES})
    assert store.find([b"1", b"2", b"3"]).keys() == {b"2", b"3"}


# --- the same question twice ---


@pytest.mark.parametrize("reply", [YES, LATE])
def test_equal_questions_of_one_batch_are_asked_once_and_cost_once(reply: Reply) -> None:
    counting = Counting(lambda _: reply)
    judge = CachingJudge(counting, MemoryStore())
    replies = asyncio.run(judge.answer([question("a"), question("b"), *[question("a")] * 3]))
    assert len(counting.asked) == 2
    assert [r.tokens.prompt for r in replies] == [7, 7, 0, 0, 0]
    assert [type(r) for r in replies] == [type(reply)] * 5


def test_two_who_ask_the_same_at_once_ask_once_in_all() -> None:
    counting = Counting()
    judge = CachingJudge(counting, MemoryStore())

    async def main() -> list[list[Reply]]:
        async with asyncio.TaskGroup() as group:
            texts = (["a", "b"], ["b", "a", "c"], ["c"])
            tasks = [group.create_task(judge.answer(list(map(question, some)))) for some in texts]
        return [task.result() for task in tasks]

    first, second, third = asyncio.run(main())
    assert origins(first) == ["asked", "asked"]
    assert origins(second) == ["cached", "cached", "asked"]
    assert origins(third) == ["cached"]
    assert len(counting.asked) == 3


def test_ten_thousand_equal_rollouts_ask_one_question_for_each_criterion() -> None:
    counting = ScriptedJudge(lambda _: "5")
    judge = CachingJudge(counting, MemoryStore())
    held = rubric(*((name, 1, "") for name in ("A", "B", "C")))
    rollouts = [Rollout(prompt="p", response="r")] * 10_000
    results = asyncio.run(score(held, rollouts, judge))
    assert all(isinstance(result, Score) and result.total == 5 for result in results)
    assert len(counting.asked) == 3


def test_a_long_batch_is_asked_in_parts_that_split_no_rollout() -> None:
    counting = Counting()
    asked = [question(str(n), f"criterion {k}") for n in range(60) for k in range(5)]
    asyncio.run(CachingJudge(counting, MemoryStore()).answer(asked))
    assert counting.asked == asked
    assert max(map(len, counting.calls)) < ASKED_TOGETHER + 5
    parts = [{q.evidence.digest for q in call} for call in counting.calls]
    assert sum(map(len, parts)) == 60


# --- an asker that leaves ---


class Gate(Counting):
    """Holds its first call until it is opened; the others pass."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(wait=self._pass)
        self.open, self.called, self._error = asyncio.Event(), asyncio.Event(), error

    async def _pass(self) -> None:
        self.called.set()
        if len(self.calls) == 1:
            await self.open.wait()
            if self._error:
                raise self._error


def test_who_waited_for_an_asker_that_was_cancelled_asks_instead() -> None:
    async def main() -> list[list[Reply]]:
        gate = Gate()
        judge = CachingJudge(gate, MemoryStore())
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            leaver = group.create_task(judge.answer([question("a"), question("b")]))
            await asyncio.sleep(0)
            waiters = [group.create_task(judge.answer([question("b")])) for _ in range(3)]
            await gate.called.wait()
            leaver.cancel()
        assert [len(call) for call in gate.calls] == [2, 1]
        assert leaver.cancelled()
        return [waiter.result() for waiter in waiters]

    replies = [reply for answered in asyncio.run(main()) for reply in answered]
    assert sorted(origins(replies)) == ["asked", "cached", "cached"]


def test_who_waited_for_an_asker_that_failed_asks_instead() -> None:
    async def main() -> list[Reply]:
        gate = Gate(OSError("the engine died"))
        judge = CachingJudge(gate, MemoryStore())
        async with asyncio.timeout(5):
            failing = asyncio.ensure_future(judge.answer([question()]))
            await asyncio.sleep(0)
            waiter = asyncio.ensure_future(judge.answer([question()]))
            await asyncio.sleep(0)
            gate.open.set()
            with pytest.RaisesGroup(OSError):
                await failing
            return await waiter

    assert asyncio.run(main()) == [YES]


def test_who_waits_and_is_cancelled_takes_nothing_from_the_asker() -> None:
    async def main() -> list[Reply]:
        gate = Gate()
        judge = CachingJudge(gate, MemoryStore())
        async with asyncio.timeout(5):
            asker = asyncio.ensure_future(judge.answer([question()]))
            await asyncio.sleep(0)
            waiter = asyncio.ensure_future(judge.answer([question()]))
            await asyncio.sleep(0)
            waiter.cancel()
            await asyncio.wait([waiter])
            gate.open.set()
            return await asker

    assert asyncio.run(main()) == [YES]


def test_after_an_asker_left_the_next_one_asks_anew() -> None:
    async def main() -> list[Reply]:
        gate = Gate()
        judge = CachingJudge(gate, MemoryStore())
        leaver = asyncio.ensure_future(judge.answer([question()]))
        await gate.called.wait()
        leaver.cancel()
        await asyncio.wait([leaver])
        async with asyncio.timeout(5):
            return await judge.answer([question()])

    assert asyncio.run(main()) == [YES]


def test_two_who_wait_for_each_other_both_get_their_replies() -> None:
    async def main() -> None:
        judge = CachingJudge(Counting(), MemoryStore())
        texts = [str(n) for n in range(200)]
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for start in range(20):
                some = [question(text) for text in texts[start * 10 :] + texts[: start * 10]]
                group.create_task(judge.answer(some))

    asyncio.run(main())


def test_a_shared_failure_is_heard_by_all_and_asked_again_by_the_next() -> None:
    replies: list[Reply] = [LATE, YES]
    counting = Counting(lambda _: replies.pop(0))
    judge = CachingJudge(counting, MemoryStore())

    async def main() -> list[Reply]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judge.answer([question()])) for _ in range(2)]
        return [*tasks[0].result(), *tasks[1].result(), *await judge.answer([question()])]

    first, second, third = asyncio.run(main())
    assert first == LATE
    assert isinstance(second, NoAnswer)
    assert second.tokens == Tokens()
    assert third == YES


def test_no_questions_ask_nothing() -> None:
    counting = Counting()
    asked: list[Question] = []
    assert asyncio.run(CachingJudge(counting, MemoryStore()).answer(asked)) == []
    assert counting.calls == []
