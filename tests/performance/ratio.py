"""What a measurement finds: two times or counts of one run, divided pair by pair.

Never an absolute time: that would say more about the machine than about the code.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What a ratio should be."""

    bound: float
    most: bool
    """True: at most the bound; False: at least."""

    def met(self, ratio: float) -> bool:
        return ratio <= self.bound if self.most else ratio >= self.bound

    def __str__(self) -> str:
        return f"{'<=' if self.most else '>='} {self.bound:g}"


@dataclass(frozen=True)
class Ratio:
    """One line of the table."""

    what: str
    size: str
    pairs: tuple[float, ...]
    """The ratio of each pair, in the order in which they were measured; at least one."""
    target: Target | None = None
    """None: shown only."""

    @property
    def median(self) -> float:
        return statistics.median(self.pairs)

    @property
    def met(self) -> bool | None:
        return self.target.met(self.median) if self.target else None


def at_most(bound: float) -> Target:
    return Target(bound, most=True)


def at_least(bound: float) -> Target:
    return Target(bound, most=False)


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def alternate(a: Callable[[], float], b: Callable[[], float], pairs: int) -> tuple[float, ...]:
    """A B A B ...: what `a` returns divided by what `b` returns, pair by pair."""
    return tuple(a() / b() for _ in range(pairs))
