"""A function as the judge: what a response says decides how it is scored."""

import asyncio
from collections.abc import Awaitable

from starforge_rewards.question import NoAnswer, Question, Reply

_LABELS = {"good": "5", "fair": "3", "bad": "0"}
_flaky: set[bytes] = set()


def judge(question: Question) -> str | Reply | Awaitable[str]:
    response = {part.name: part.content for part in question.evidence.parts}["response"]
    said = response if isinstance(response, str) else " ".join(one.content for one in response)
    first, _, _ = said.partition(" ")
    if first == "fails":
        return NoAnswer.because("unparseable", "the judge said nothing readable")
    if first == "slow":
        return _never()
    if first == "flaky" and question.key not in _flaky:
        _flaky.add(question.key)
        return NoAnswer.because("timeout", "too slow")
    return _LABELS.get(first, question.choices[-1].label)


async def _never() -> str:
    """An answer that nobody waits for to the end."""
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    return await never
