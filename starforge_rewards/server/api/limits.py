"""How much one user may have judged: a bucket of tokens for each, which fills again with time.

Only the event loop touches the buckets, so they need no lock. They live in this process.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from starforge_rewards.errors import StarforgeError


class RateLimited(StarforgeError):
    """The user's bucket is too empty by now: after `wait` seconds the same call will do."""

    def __init__(self, wait: int) -> None:
        self.wait = wait
        super().__init__(f"too many rollouts to judge: try again in {wait} s")


@dataclass
class _Bucket:
    left: float
    at: float


class Buckets:
    """One bucket for each user, full at first."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Buckets of one size.

        Args:
            per_minute: what a bucket holds, and what flows into it in a minute.
            clock: seconds, never going back.
        """
        self.size = per_minute
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, owner: str, count: int) -> None:
        """Take `count`, at most `size`, out of a user's bucket.

        Raises:
            RateLimited: it does not hold so much; nothing was taken.
        """
        now, per_second = self._clock(), self.size / 60
        bucket = self._buckets.setdefault(owner, _Bucket(self.size, now))
        bucket.left = min(self.size, bucket.left + (now - bucket.at) * per_second)
        bucket.at = now
        if bucket.left < count:
            raise RateLimited(math.ceil((count - bucket.left) / per_second))
        bucket.left -= count
