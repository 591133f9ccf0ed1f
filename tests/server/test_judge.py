import asyncio
from collections.abc import Callable

import pytest

from starforge_rewards.errors import EngineFailed, InputError
from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.question import Choice, Evidence, NoAnswer, Part, Question, Reply
from starforge_rewards.server.judge import SharedJudge, TimedJudge
from tests.server.asking import JUDGE

QUESTION = Question(
    source="test",
    evidence=Evidence(parts=(Part(name="response", content="a"),)),
    instruction="Is it right?",
    choices=(Choice(label="no", value=0.0), Choice(label="yes", value=1.0)),
)


def test_the_judge_is_opened_once_and_is_the_same_for_all() -> None:
    async def opened() -> bool:
        shared = SharedJudge(JUDGE, 60)
        async with shared.running():
            return await shared.opened() is await shared.opened()

    assert asyncio.run(opened())


def test_a_judge_that_cannot_be_is_refused_at_the_start() -> None:
    shared = SharedJudge(ScriptedConfig(kind="scripted", function="no_module:judge"), 60)

    async def start() -> None:
        async with shared.running():
            raise AssertionError("it runs")

    with pytest.raises(InputError, match="no_module"):
        asyncio.run(start())


async def never(_: Question) -> Reply:
    await asyncio.Event().wait()
    raise AssertionError("it came")


def test_a_judge_that_is_too_slow_has_timed_out_on_every_question() -> None:
    slow = TimedJudge(ScriptedJudge(never), 0.01)
    replies = asyncio.run(slow.answer([QUESTION, QUESTION]))
    assert [reply.cause for reply in replies if isinstance(reply, NoAnswer)] == ["timeout"] * 2


async def broken(_: Question) -> Reply:
    raise InputError("the judge's own file is wrong")


def raises(_: Question) -> Reply:
    raise InputError("the judge's own file is wrong")


@pytest.mark.parametrize("function", [broken, raises])
def test_a_judges_own_mistake_is_not_taken_for_the_callers(
    function: Callable[[Question], Reply],
) -> None:
    with pytest.raises(EngineFailed, match="own file"):
        asyncio.run(TimedJudge(ScriptedJudge(function), 60).answer([QUESTION]))
