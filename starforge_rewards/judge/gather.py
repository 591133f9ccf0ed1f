"""Gathers the questions of callers that come at once into one call of the judge.

Many trainers ask for one rollout at a time from many threads; a pool's handle costs the same for a
batch as for a question.
"""

import asyncio
from collections.abc import Sequence

from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import Question, Reply

_WINDOW = 0.002
"""Seconds that a first question waits for others: far less than any judgement takes."""
_MOST = 64
"""Questions that are asked together: nobody waits for many answers that others need."""


class GatheringJudge:
    """A judge that is asked together what comes together; all callers are on one event loop."""

    def __init__(self, judge: Judge, window: float = _WINDOW, most: int = _MOST) -> None:
        """Asks nothing yet.

        Args:
            judge: who answers.
            window: seconds that a first question waits for others.
            most: questions that are asked together; a call of as many or more goes alone, at once.
        """
        self.identity = judge.identity
        self.under_way = 0
        """Questions that have no reply yet."""
        self._judge, self._window, self._most = judge, window, most
        self._open: _Together | None = None

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply for each question, in order."""
        self.under_way += len(questions)
        try:
            if len(questions) >= self._most:
                return await self._judge.answer(questions)
            return await self._together(questions)
        finally:
            self.under_way -= len(questions)

    async def _together(self, questions: Sequence[Question]) -> list[Reply]:
        together = self._open
        if together is None or len(together.questions) + len(questions) > self._most:
            together = self._open = _Together()
            together.asked = asyncio.create_task(self._ask_soon(together))
            together.asked.add_done_callback(_seen)
        start = len(together.questions)
        together.questions += questions
        replies = await asyncio.shield(together.asked)  # one who leaves does not stop the rest
        return replies[start : start + len(questions)]

    async def _ask_soon(self, together: "_Together") -> list[Reply]:
        await asyncio.sleep(self._window)
        if self._open is together:
            self._open = None
        return await self._judge.answer(together.questions)


class _Together:
    """Questions of one call."""

    asked: asyncio.Task[list[Reply]]

    def __init__(self) -> None:
        self.questions: list[Question] = []


def _seen(asked: asyncio.Task[list[Reply]]) -> None:
    """What failed where all who asked have left is nobody's."""
    if not asked.cancelled():
        asked.exception()
