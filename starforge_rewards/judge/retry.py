"""When a request that failed is tried again, and how long to wait before: bounded and jittered.

A failed request is a value. What was answered, however badly, is no failed request: at temperature
0 an unreadable reply would only be written again, so asking again for it is not decided here.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple, TypeVar

from starforge_rewards.question import Cause

T = TypeVar("T")


class Failure(NamedTuple):
    """A request that brought no reply."""

    cause: Cause
    detail: str
    passing: bool
    """It may go away by itself: no connection, a busy or broken server, no time."""
    wait: float | None = None
    """Seconds that the server asked to wait, at least 0."""


class Backoff(NamedTuple):
    """How often, and after how long."""

    attempts: int
    """Tries in all, at least 1."""
    first: float = 0.5
    """Longest pause after the first try, in seconds; it doubles with each."""
    most: float = 20.0
    """Where the doubling ends; a server may ask for more."""

    def pause(self, tried: int, failure: Failure, chance: float) -> float | None:
        """Seconds until the next try, or None for no further one.

        Args:
            tried: tries so far, at least 1.
            failure: what the last one brought.
            chance: in [0, 1); spreads what failed together, so that it does not return together.
        """
        if not failure.passing or tried >= self.attempts:
            return None
        longest = min(self.most, self.first * 2.0 ** min(tried - 1, 60))
        if failure.wait is not None:
            return failure.wait + longest * chance
        return longest * (1 + chance) / 2


async def repeated(
    ask: Callable[[], Awaitable[T | Failure]],
    backoff: Backoff,
    until: float,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> T | Failure:
    """What `ask` brings in the end; its last failure where tries or time run out.

    Args:
        ask: one try.
        backoff: how often, and after how long.
        until: deadline on the running loop's clock; no pause begins that would pass it.
        sleep: waits that many seconds.
        chance: the jitter's source, in [0, 1).
    """
    loop = asyncio.get_running_loop()
    tried = 0
    while True:
        got = await ask()
        tried += 1
        if not isinstance(got, Failure):
            return got
        pause = backoff.pause(tried, got, chance())
        if pause is None or loop.time() + pause >= until:
            return got
        await sleep(pause)


def asked_wait(header: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` header asks for, as a number or a date; None if unreadable."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None
