"""NeMo Gym 0.7.0: a failed judge call, and what every verify endpoint is wrapped in."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any


class JudgeError(Exception):
    """A judge call failed."""


def judge_failsafe(verify: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A failed judge is a masked sample."""

    @functools.wraps(verify)
    async def wrapped(body: Any) -> Any:
        try:
            return await verify(body)
        except JudgeError as error:
            failed = {"reward": 0.0, "mask_sample": True, "failure_kind": "judge_failed"}
            return {**body.model_dump(), **failed, "failure_reason": str(error)}

    return wrapped
