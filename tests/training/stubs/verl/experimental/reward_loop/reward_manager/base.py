"""verl 0.9.1: what a reward manager derives from."""

import asyncio
from abc import ABC, abstractmethod
from typing import Any


class RewardManagerBase(ABC):
    def __init__(self, config: Any, tokenizer: Any, compute_score: Any) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.compute_score = compute_score
        self.loop = asyncio.get_running_loop()

    @abstractmethod
    async def run_single(self, data: Any) -> dict[str, Any]: ...
