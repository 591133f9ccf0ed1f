"""Questions, and judges that count, for tests of what remembers answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.question import (
    Answer,
    Choice,
    Evidence,
    NoAnswer,
    Part,
    Question,
    Reply,
    Tokens,
)

IDENTITY = JudgeIdentity(
    model="counting",
    weights="none",
    engine="none",
    read="text",
    layout="none",
    template="none",
    min_mass=0.5,
    empty_response="scale_min",
    overlong="fail",
)
YES = Answer(label="yes", value=1.0, tokens=Tokens(prompt=7, generated=1))
LATE = NoAnswer.because("timeout", "too slow", Tokens(prompt=7))


def question(response: str = "a", instruction: str = "Is it right?", repeat: int = 0) -> Question:
    parts = (Part(name="task_prompt", content="Why?"), Part(name="response", content=response))
    return Question(
        source="test",
        evidence=Evidence(parts=parts),
        instruction=instruction,
        choices=(Choice(label="no", value=0.0), Choice(label="yes", value=1.0)),
        repeat=repeat,
    )


class Counting:
    """Replies with a function of the question, after what it is told to wait for."""

    def __init__(
        self,
        reply: Callable[[Question], Reply] = lambda _: YES,
        identity: JudgeIdentity = IDENTITY,
        wait: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0),
    ) -> None:
        self.identity = identity
        self.calls: list[list[Question]] = []
        self._reply, self._wait = reply, wait

    @property
    def asked(self) -> list[Question]:
        return [question for call in self.calls for question in call]

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        self.calls.append(list(questions))
        await self._wait()
        return [self._reply(question) for question in questions]
