"""skyrl-gym 0.4.0: a text environment."""

from typing import Any, TypedDict


class BaseTextEnvStepOutput(TypedDict):
    observations: list[dict[str, str]]
    reward: float
    done: bool
    metadata: dict[str, Any]


class BaseTextEnv:
    def __init__(self) -> None:
        self.turns = 0
        self.max_turns = 1

    def init(self, prompt: Any) -> tuple[Any, dict[str, Any]]:
        return prompt, {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        raise NotImplementedError

    def get_metrics(self) -> dict[str, Any]:
        return {}
