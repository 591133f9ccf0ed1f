"""An engine without a model: latency and failure for tests of what stands around one.

What it answers follows from the prompt alone, so that runs can be compared; it means nothing.
"""

import asyncio
import hashlib
from collections.abc import Callable
from typing import NamedTuple

from starforge_rewards.question import Tokens

Masses = Callable[[list[int], list[int]], tuple[float, ...]]


class FakeRead(NamedTuple):
    """Raw probabilities at the forced position, one per label asked for."""

    masses: tuple[float, ...]
    tokens: Tokens


class FakeGeneration(NamedTuple):
    """What the engine would have written."""

    text: str
    tokens: Tokens


class FakeEngine:
    """Has the methods of `engine.vllm.Engine` that a judge needs, and no model behind them."""

    def __init__(
        self, max_model_len: int = 4096, delay: float = 0.0, masses: Masses | None = None
    ) -> None:
        """The engine that a function is.

        Args:
            max_model_len: tokens that a prompt and what follows it may have; more is refused.
            delay: seconds that each request takes.
            masses: from prompt and label ids to a raw probability for each label; it may raise.
                By default they follow from the prompt's digest and sum to 1.
        """
        self.max_model_len = max_model_len
        self.read: list[list[int]] = []
        """Prompts whose slot was read, in order."""
        self._delay, self._masses = delay, masses or digested

    async def read_slot(self, prompt: list[int], labels: list[int], priority: int = 0) -> FakeRead:
        await self._take(prompt, 1)
        self.read.append(list(prompt))
        masses = self._masses(prompt, labels)
        return FakeRead(masses, Tokens(prompt=len(prompt), generated=1))

    async def generate(
        self, prompt: list[int], max_tokens: int, priority: int = 0
    ) -> FakeGeneration:
        await self._take(prompt, max_tokens)
        words = ["because", "of", _digest(prompt).hex()[:8]][:max_tokens]
        return FakeGeneration(" ".join(words), Tokens(prompt=len(prompt), generated=len(words)))

    async def _take(self, prompt: list[int], more: int) -> None:
        if len(prompt) + more > self.max_model_len:
            raise ValueError(f"{len(prompt)} + {more} tokens in a context of {self.max_model_len}")
        await asyncio.sleep(self._delay)


def digested(prompt: list[int], labels: list[int]) -> tuple[float, ...]:
    """Probabilities that follow from the prompt's digest, and sum to 1."""
    stretched = hashlib.shake_256(_digest(prompt)).digest(len(labels))
    shares = [byte + 1 for byte in stretched]
    return tuple(share / sum(shares) for share in shares)


def _digest(prompt: list[int]) -> bytes:
    return hashlib.sha256(repr(prompt).encode()).digest()
