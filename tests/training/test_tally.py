import threading
from contextlib import suppress

import pytest

from starforge_rewards.training import tally
from starforge_rewards.training.reward import Reward
from starforge_rewards.training.tally import RewardTally


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr(tally, "time", one)
    return one


def scored(value: float, **about: object) -> Reward:
    return Reward.model_validate({"value": value, **about})


FAILED = Reward(value=None, cause="timeout")


def test_time_that_several_wait_counts_once(clock: Clock) -> None:
    one = RewardTally()
    with one.waiting():
        clock.now += 1
        with one.waiting():
            clock.now += 2
        clock.now += 1
    clock.now += 4
    assert one.metrics().judge_wait_fraction == 0.5
    with one.waiting():
        clock.now += 8
        assert one.metrics().judge_wait_fraction == pytest.approx(12 / 16)


def test_waiting_ends_also_where_it_fails(clock: Clock) -> None:
    one = RewardTally()
    with suppress(ValueError), one.waiting():
        clock.now += 1
        raise ValueError
    clock.now += 1
    assert one.metrics().judge_wait_fraction == 0.5


def test_many_threads_that_wait_are_counted_right() -> None:
    one, ready = RewardTally(), threading.Barrier(8)

    def work() -> None:
        ready.wait()
        for _ in range(2000):
            with one.waiting():
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = one.metrics()
    assert one._waiting == 0
    assert 0 <= before.judge_wait_fraction <= 1


def test_failures_are_a_rate_of_the_recent_rollouts_and_counted_by_cause() -> None:
    one = RewardTally()
    one.add([FAILED] * 30, ["p"] * 30)
    assert one.failure_rate == 1
    assert not one.beyond(0.5), "too few were seen"
    one.add([FAILED, scored(1), scored(1)], ["p"] * 3)
    assert one.beyond(0.5)
    one.add([scored(1)] * 256, ["p"] * 256)
    assert one.failure_rate == 0
    assert not one.beyond(0.01)
    found = one.metrics()
    assert (found.scored, found.failed) == (258, {"timeout": 31})


def test_a_group_in_which_all_rewards_are_equal_is_a_tie() -> None:
    one = RewardTally()
    rewards = [scored(v) for v in (1, 1, 1, 2, 5)] + [FAILED, scored(3), FAILED]
    one.add(rewards, ["tie", "tie", "differ", "differ", "alone", "alone", "failed", "failed"])
    assert one.metrics().tie_rate == 0.5


def test_a_stand_in_is_no_score() -> None:
    one = RewardTally()
    stand_in = FAILED.model_copy(update={"value": 2.0, "imputed": True, "total": 1.0})
    one.add([stand_in, scored(2.0, total=4.0, normalized=0.8)], ["p", "p"])
    found = one.metrics()
    assert (found.scored, found.failed, found.imputed) == (1, {"timeout": 1}, 1)
    outcome = one.outcome()
    assert (outcome.rows, outcome.scored, outcome.unscored) == (2, 1, {"timeout": 1})
    assert (outcome.score, outcome.normalized) == (4.0, 0.8)
    assert one.outcome(one_scale=False).score is None


def test_answers_are_counted_by_where_they_came_from() -> None:
    one = RewardTally()
    origins = {"A": "asked", "B": "cached", "C": "ledger"}
    one.add([scored(1, origins=origins), scored(1, origins={"A": "asked"})], ["p", "p"])
    found = one.metrics(queue_depth=7)
    assert (found.asked, found.cached, found.queue_depth) == (2, 2, 7)


def test_before_anything_happened_all_is_zero() -> None:
    found = RewardTally().metrics()
    assert (found.failure_rate, found.tie_rate, found.judge_wait_fraction) == (0, 0, 0)
