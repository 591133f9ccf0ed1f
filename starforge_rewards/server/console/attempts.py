"""How often an address may fail to log in. Kept in this process, for the addresses seen last."""

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from starforge_rewards.server.api.limits import RateLimited

_ADDRESSES = 10_000


class Attempts:
    """Failures by address; only the event loop touches them, so they need no lock."""

    def __init__(
        self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """None yet.

        Args:
            most: failures that an address may have in any `seconds`.
            seconds: after which a failure is forgotten.
            clock: seconds, never going back.
        """
        self._most, self._seconds, self._clock = most, seconds, clock
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Whether an address may try.

        Raises:
            RateLimited: not yet again.
        """
        failed = self._failed.get(address, deque())
        while failed and failed[0] <= self._clock() - self._seconds:
            failed.popleft()
        if len(failed) >= self._most:
            raise RateLimited(math.ceil(failed[0] + self._seconds - self._clock()))

    def note(self, address: str) -> None:
        """An address has failed."""
        self._failed.setdefault(address, deque()).append(self._clock())
        self._failed.move_to_end(address)
        while len(self._failed) > _ADDRESSES:
            self._failed.popitem(last=False)

    def forget(self) -> None:
        """As if none had failed."""
        self._failed.clear()
