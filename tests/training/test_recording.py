import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import pytest

from starforge_rewards.errors import NotFound, StarforgeError, Unavailable
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import ScoreKey, User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Score
from starforge_rewards.run import Outcome, Run
from starforge_rewards.training import recording
from starforge_rewards.training.recording import HoldingLedger
from tests.registry.samples import JUDGE, RUN, key, put, score

OUTCOME = Outcome(rows=2, scored=2, unscored={})


@pytest.fixture
def database_url(tmp_path) -> str:  # type: ignore[no-untyped-def]
    return f"sqlite:///{tmp_path / 'registry.sqlite'}"


class Faulty:
    """A registry's scores, which fail while `error` is set."""

    def __init__(self, registry: Registry) -> None:
        self.error: StarforgeError | None = None
        self.calls = 0
        self._scores = registry.scores

    def find(self, judge: str, keys: Sequence[ScoreKey]) -> dict[ScoreKey, Score]:
        self._met()
        return self._scores.find(judge, keys)

    def add(self, run_id: str, scores: Mapping[ScoreKey, Score]) -> None:
        self._met()
        self._scores.add(run_id, scores)

    def _met(self) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error


class Kept:
    """A registry with one rubric, a ledger that holds, and what may fail."""

    def __init__(self, database: Database) -> None:
        self.registry = registry_of(database, User(owner="alice"))
        self.ref = put(self.registry, "alice/one")
        self.scores = Faulty(self.registry)
        self.run = Run(role="training_reward", judge=JUDGE)
        self.inner = RunLedger(
            Registry(self.registry.rubrics, self.registry.runs, self.scores),  # type: ignore[arg-type]
            RUN,
            self.run,
        )

    def ledger(self, **options: float) -> HoldingLedger:
        return HoldingLedger(self.inner, **options)

    @property
    def there(self) -> int:
        return len(self.registry.scores.of_run(RUN).items)


@pytest.fixture
def kept(database: Database) -> Kept:
    return Kept(database)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - a database has no event
            await asyncio.sleep(0.005)


def test_a_run_is_recorded_at_its_first_scoring_call_and_not_before(kept: Kept) -> None:
    ledger = kept.ledger()
    with pytest.raises(NotFound):
        kept.registry.runs.show(RUN)

    async def work() -> None:
        assert await ledger.find([key(kept.ref)]) == {}

    asyncio.run(work())
    shown = kept.registry.runs.show(RUN)
    assert (shown.role, shown.status) == ("training_reward", "running")
    assert [one.rubric for one in shown.citations] == ["alice/one@1"]


def test_a_registry_that_is_away_at_the_start_stops_the_run(kept: Kept) -> None:
    class Away:
        def put(self, run_id: str, run: Run) -> None:
            raise Unavailable("away")

    inner = RunLedger(
        Registry(kept.registry.rubrics, Away(), kept.scores),  # type: ignore[arg-type]
        RUN,
        kept.run,
    )
    with pytest.raises(Unavailable):
        asyncio.run(HoldingLedger(inner).find([key(kept.ref)]))


@pytest.mark.parametrize("error", [Unavailable("away"), NotFound("made private")])
def test_what_fails_later_costs_nothing_and_scores_arrive_once_it_is_back(
    kept: Kept, error: StarforgeError, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = kept.ledger(pause=0.01)

    async def work() -> None:
        await ledger.find([key(kept.ref, 0)])
        kept.scores.error = error
        assert await ledger.find([key(kept.ref, 1)]) == {}
        calls = kept.scores.calls
        await ledger.use({key(kept.ref, 1): score()})
        assert await ledger.find([key(kept.ref, 2)]) == {}
        await ledger.use({key(kept.ref, 2): score()})
        assert kept.scores.calls == calls, "nothing waits for a registry that is away"
        assert (ledger.held, kept.there) == (2, 0)
        await until(lambda: kept.scores.calls > calls + 2)
        kept.scores.error = None
        await until(lambda: kept.there == 2)
        await until(lambda: ledger.held == 0)
        assert len(await ledger.find([key(kept.ref, 1)])) == 1

    asyncio.run(work())
    assert sum("the judge is asked" in record.message for record in caplog.records) == 1


def test_a_registry_that_does_not_answer_counts_as_away(kept: Kept) -> None:
    ledger = kept.ledger(patience=0.05, pause=60)

    async def work() -> None:
        await ledger.find([key(kept.ref)])
        held = asyncio.Event()

        async def hangs(_: object) -> Mapping[ScoreKey, Score]:
            await held.wait()
            return {}

        kept.inner.find = hangs  # type: ignore[assignment, method-assign]
        assert await ledger.find([key(kept.ref)]) == {}
        ledger.close()

    asyncio.run(work())


def test_what_is_held_is_delivered_at_the_end_at_the_latest(kept: Kept) -> None:
    ledger = kept.ledger(pause=60)

    async def work() -> None:
        await ledger.find([key(kept.ref)])
        kept.scores.error = Unavailable("away")
        await ledger.use({key(kept.ref): score()})
        with pytest.raises(Unavailable):
            await ledger.finish(OUTCOME)
        assert (ledger.held, kept.registry.runs.show(RUN).status) == (1, "running")
        kept.scores.error = None
        await ledger.finish(OUTCOME)
        ledger.close()

    asyncio.run(work())
    shown = kept.registry.runs.show(RUN)
    assert (shown.status, shown.outcome, kept.there) == ("finished", OUTCOME, 1)


def test_a_caller_who_leaves_while_scores_are_sent_loses_none(kept: Kept) -> None:
    ledger = kept.ledger()

    async def work() -> None:
        await ledger.find([key(kept.ref)])
        begun, never = asyncio.Event(), asyncio.Event()
        usual = kept.inner.use

        async def hangs(_: object) -> None:
            begun.set()
            await never.wait()

        kept.inner.use = hangs  # type: ignore[assignment, method-assign]
        task = asyncio.create_task(ledger.use({key(kept.ref, 1): score()}))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert ledger.held == 1
        kept.inner.use = usual  # type: ignore[method-assign]
        await ledger.use({key(kept.ref, 2): score()})
        assert (ledger.held, kept.there) == (0, 2)

    asyncio.run(work())


def test_what_is_held_is_bounded_and_the_oldest_is_given_up(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_MOST_HELD", 3)
    ledger = kept.ledger(pause=60)

    async def work() -> None:
        await ledger.find([key(kept.ref)])
        kept.scores.error = Unavailable("away")
        for number in range(5):
            await ledger.use({key(kept.ref, number): score()})
        assert ledger.held == 3
        kept.scores.error = None
        await ledger.finish(OUTCOME)
        found = kept.registry.scores.of_run(RUN).items
        assert {one.key for one in found} == {key(kept.ref, number) for number in (2, 3, 4)}
        ledger.close()

    asyncio.run(work())


def test_an_edit_is_said_once_and_never_applied(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = kept.ledger(look_every=0)

    async def work() -> None:
        await ledger.find([key(kept.ref)])
        ledger.announce()
        put(kept.registry, "alice/one", description="second")
        ledger.announce()
        await until(lambda: ledger.newer == ["alice/one@2"])
        ledger.announce()
        put(kept.registry, "alice/one", description="third")
        ledger.announce()
        await until(lambda: len(ledger.newer) == 2)
        ledger.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(work())
    said = [record.message for record in caplog.records]
    assert sum("alice/one@2 is the current version by now" in line for line in said) == 1
    assert Ref.parse("alice/one@1") == kept.ref
    assert [c.rubric for c in kept.registry.runs.show(RUN).citations] == ["alice/one@1"]


def test_a_look_that_fails_costs_nothing(kept: Kept) -> None:
    ledger = kept.ledger(look_every=0)

    async def work() -> None:
        await ledger.find([key(kept.ref)])

        async def gone() -> list[Ref]:
            raise NotFound("made private")

        kept.inner.newer = gone  # type: ignore[method-assign]
        ledger.announce()
        await ledger.finish(OUTCOME)
        assert ledger.newer == []

    asyncio.run(work())
