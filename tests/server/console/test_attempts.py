import pytest

from starforge_rewards.server.api.limits import RateLimited
from starforge_rewards.server.console.attempts import Attempts


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


def test_an_address_may_fail_so_often_and_then_waits_for_the_first_to_be_forgotten() -> None:
    clock = Clock()
    attempts = Attempts(2, 60, clock)
    attempts.note("a")
    clock.at = 10
    attempts.note("a")
    with pytest.raises(RateLimited) as refused:
        attempts.check("a")
    assert refused.value.wait == 50
    attempts.check("b")
    clock.at = 60
    attempts.check("a")
    attempts.note("a")
    with pytest.raises(RateLimited):
        attempts.check("a")


def test_the_addresses_that_are_kept_do_not_grow_without_end() -> None:
    attempts = Attempts(1, 60, Clock())
    for number in range(10_001):
        attempts.note(str(number))
    attempts.check("0")
    with pytest.raises(RateLimited):
        attempts.check("10000")
