"""openenv-core 0.3.0: a rubric, in the manner of a torch module."""

import inspect
from abc import ABC, abstractmethod
from typing import Any


class Rubric(ABC):
    last_score: float | None

    def __init__(self) -> None:
        self._rubric_children: dict[str, Rubric] = {}
        self.last_score = None

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Rubric):
            self._rubric_children[name] = value
        object.__setattr__(self, name, value)

    def __call__(self, action: Any, observation: Any) -> Any:
        if inspect.iscoroutinefunction(self.forward):
            return self._call_async(action, observation)
        self.last_score = self.forward(action, observation)
        return self.last_score

    async def _call_async(self, action: Any, observation: Any) -> float:
        result: float = await self.forward(action, observation)  # type: ignore[misc]
        self.last_score = result
        return result

    @abstractmethod
    def forward(self, action: Any, observation: Any) -> float: ...

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        return
