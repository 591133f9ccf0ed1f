"""atroposlib 0.4.0: a reward function, whose own call turns what it raises into zeros."""

from abc import ABC, abstractmethod
from typing import Any


class RewardFunction(ABC):
    def __init__(self, weight: float = 1.0, name: str | None = None, **kwargs: Any) -> None:
        self.weight = weight
        self._name = name
        self.config = kwargs
        self.wandb_logger = None

    @abstractmethod
    def compute(self, completions: list[Any], **kwargs: Any) -> list[float]: ...

    def __call__(self, completions: list[Any], **kwargs: Any) -> list[float]:
        try:
            return [reward * self.weight for reward in self.compute(completions, **kwargs)]
        except Exception:  # noqa: BLE001 - as theirs
            return [0.0] * len(completions)

    def log_metrics(self, raw_rewards: list[float], weighted_rewards: list[float]) -> None:
        return
