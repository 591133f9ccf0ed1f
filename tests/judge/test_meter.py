import asyncio

import pytest

from starforge_rewards.judge.cache import CachingJudge, MemoryStore
from starforge_rewards.judge.meter import Meter, Usage
from starforge_rewards.question import Answer, Question, Reply, Tokens
from tests.judge.cache_asks import LATE, Counting, question


def reply(asked: Question) -> Reply:
    tokens = Tokens(prompt=100, cached=60, generated=2)
    return LATE if asked.repeat else Answer(label="yes", value=1.0, tokens=tokens)


def test_questions_are_counted_by_how_they_came_out_and_tokens_added_up() -> None:
    meter = Meter(CachingJudge(Counting(reply), MemoryStore()))

    async def main() -> list[Reply]:
        await meter.answer([question("a"), question("b"), question("a", repeat=1)])
        return await meter.answer([question("b"), question("c"), question("a", repeat=1)])

    replies = asyncio.run(main())
    assert [isinstance(one, Answer) for one in replies] == [True, True, False]
    assert meter.usage == Usage(
        asked=3,
        cached=1,
        failed={"timeout": 2},
        prompt_tokens=3 * 100 + 2 * 7,
        computed_tokens=3 * 40 + 2 * 7,
        generated_tokens=6,
    )


def test_before_any_question_all_is_zero() -> None:
    usage = Meter(Counting()).usage
    assert usage.model_dump() == {
        "asked": 0,
        "cached": 0,
        "failed": {},
        "prompt_tokens": 0,
        "computed_tokens": 0,
        "generated_tokens": 0,
    }


def test_a_metered_judge_is_who_it_was_and_fails_as_it_did() -> None:
    async def broken() -> None:
        raise OSError("gone")

    counting = Counting(wait=broken)
    meter = Meter(counting)
    assert meter.identity is counting.identity
    with pytest.raises(OSError, match="gone"):
        asyncio.run(meter.answer([question()]))
    assert meter.usage.asked == 0
