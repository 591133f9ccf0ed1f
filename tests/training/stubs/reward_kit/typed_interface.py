"""reward-kit 0.4.1: the decorator of a reward function."""

import inspect
from collections.abc import Callable
from typing import Any, Literal


def reward_function(
    *, mode: Literal["pointwise", "batch"] = "pointwise"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        kinds = [one.kind for one in inspect.signature(function).parameters.values()]
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ValueError(f"{function.__name__} must accept **kwargs")
        function._reward_function_mode = mode  # type: ignore[attr-defined]
        return function

    return decorated
