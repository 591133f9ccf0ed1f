import pytest

from starforge_rewards.server.api.limits import Buckets, RateLimited


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def buckets(clock: Clock) -> Buckets:
    """One token flows in a second."""
    return Buckets(60, clock)


def test_a_full_bucket_is_spent_at_once_and_fills_with_time(buckets: Buckets, clock: Clock) -> None:
    buckets.take("alice", 60)
    with pytest.raises(RateLimited) as limited:
        buckets.take("alice", 2)
    assert limited.value.wait == 2
    clock.now += limited.value.wait
    buckets.take("alice", 2)
    with pytest.raises(RateLimited):
        buckets.take("alice", 1)


def test_what_is_refused_takes_nothing(buckets: Buckets) -> None:
    buckets.take("alice", 50)
    with pytest.raises(RateLimited):
        buckets.take("alice", 11)
    buckets.take("alice", 10)


def test_a_bucket_never_holds_more_than_its_size(buckets: Buckets, clock: Clock) -> None:
    buckets.take("alice", 1)
    clock.now += 3600
    buckets.take("alice", 60)
    with pytest.raises(RateLimited):
        buckets.take("alice", 1)


def test_each_user_has_a_bucket(buckets: Buckets) -> None:
    buckets.take("alice", 60)
    buckets.take("bob", 60)
