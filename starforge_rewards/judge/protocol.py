"""What every layer of the judge stack is."""

from collections.abc import Sequence
from typing import Protocol

from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.question import Question, Reply


class Judge(Protocol):
    """Answers closed questions. What it cannot answer it returns as `NoAnswer`; never raises it."""

    @property
    def identity(self) -> JudgeIdentity:
        """Everything that changes answers; reading it starts no engine."""
        ...

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply for each question, in order, whatever finishes first."""
        ...
