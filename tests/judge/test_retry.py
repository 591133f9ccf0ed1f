"""When a failed request is tried again, and after how long."""

import asyncio
from datetime import UTC, datetime

import pytest

from starforge_rewards.judge.retry import Backoff, Failure, asked_wait, repeated

BUSY = Failure("unreachable", "HTTP 503", passing=True)
WRONG = Failure("unreachable", "HTTP 401", passing=False)


class Script:
    """Tries that end as laid out, and the pauses between them."""

    def __init__(self, *ends: str | Failure) -> None:
        self.ends, self.pauses = list(ends), list[float]()

    async def ask(self) -> str | Failure:
        return self.ends.pop(0)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def run(self, backoff: Backoff, seconds: float = 60) -> str | Failure:
        async def main() -> str | Failure:
            until = asyncio.get_running_loop().time() + seconds
            return await repeated(self.ask, backoff, until, sleep=self.sleep, chance=lambda: 0.0)

        return asyncio.run(main())


def test_a_passing_failure_is_tried_again_with_pauses_that_double() -> None:
    script = Script(BUSY, BUSY, BUSY, "ok")
    assert script.run(Backoff(4, first=1.0)) == "ok"
    assert script.pauses == [0.5, 1.0, 2.0]


def test_tries_are_bounded_and_the_last_failure_is_returned() -> None:
    last = Failure("timeout", "third", passing=True)
    script = Script(BUSY, BUSY, last, "never")
    assert script.run(Backoff(3)) == last
    assert script.ends == ["never"]


def test_one_attempt_means_no_second() -> None:
    script = Script(BUSY, "never")
    assert script.run(Backoff(1)) == BUSY
    assert script.pauses == []


def test_a_failure_that_will_not_pass_is_not_tried_again() -> None:
    script = Script(WRONG, "never")
    assert script.run(Backoff(5)) == WRONG
    assert script.pauses == []


def test_no_pause_begins_that_would_pass_the_deadline() -> None:
    asked = BUSY._replace(wait=100.0)
    script = Script(asked, "never")
    assert script.run(Backoff(5), seconds=60) == asked
    assert script.pauses == []


def test_a_wait_that_the_server_asks_for_is_the_least_pause() -> None:
    asked = BUSY._replace(wait=3.0)
    assert Backoff(5, first=1.0).pause(1, asked, 0.0) == 3.0
    assert Backoff(5, first=1.0).pause(1, asked, 0.5) == 3.5


def test_jitter_spreads_a_pause_over_its_upper_half_and_growth_ends() -> None:
    backoff = Backoff(10_000, first=1.0, most=8.0)
    assert backoff.pause(3, BUSY, 0.0) == 2.0
    assert backoff.pause(3, BUSY, 0.5) == 3.0
    assert backoff.pause(9000, BUSY, 0.0) == 4.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Wed, 31 Dec 2025 23:59:00 GMT", 0.0),
        ("Thu, 01 Jan 2026 00:00:30 -0000", 30.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert asked_wait(header, datetime(2026, 1, 1, tzinfo=UTC)) == seconds
