"""Counts what a judge was asked and what it cost, also where no answer came."""

from collections import Counter
from collections.abc import Sequence

from starforge_rewards.conversation import Frozen
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import Answer, Question, Reply, Tokens


class Usage(Frozen):
    """Questions and tokens of one job."""

    asked: int
    """Questions that the judge answered now."""
    cached: int
    failed: dict[str, int]
    """Questions without an answer, by cause."""
    prompt_tokens: int
    """Submitted to the engine."""
    computed_tokens: int
    """Of those, computed by the engine: not found in its prefix cache."""
    generated_tokens: int


class Meter:
    """A judge that counts."""

    def __init__(self, judge: Judge) -> None:
        self.identity = judge.identity
        self._judge = judge
        self._origins: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._tokens = Tokens()

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        replies = await self._judge.answer(questions)
        for reply in replies:
            self._tokens += reply.tokens
            if isinstance(reply, Answer):
                self._origins[reply.origin] += 1
            else:
                self._failed[reply.cause] += 1
        return replies

    @property
    def usage(self) -> Usage:
        return Usage(
            asked=self._origins["asked"],
            cached=self._origins["cached"],
            failed=dict(self._failed),
            prompt_tokens=self._tokens.prompt,
            computed_tokens=self._tokens.prompt - self._tokens.cached,
            generated_tokens=self._tokens.generated,
        )
