import asyncio
import os
import pickle
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starforge_rewards.engine import actors
from starforge_rewards.engine.actors import Address
from starforge_rewards.errors import EngineFailed, InputError, NotFound
from starforge_rewards.judge import pool
from starforge_rewards.judge.config import Deadlines, Pool
from starforge_rewards.judge.pool import Plan, PooledJudge
from starforge_rewards.question import (
    Answer,
    Choice,
    Evidence,
    NoAnswer,
    Part,
    Question,
)
from tests.judge.hosted import IDENTITY, replica, until

AT = Address(namespace="test")


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    """A cluster of this test process."""
    actors.join(AT)
    yield
    actors.leave()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """What the replicas answered, a line each."""
    return tmp_path / "notes"


def questions(count: int, group: int = 1) -> list[Question]:
    choices = (Choice(label="0", value=0), Choice(label="1", value=1))
    return [
        Question(
            source=f"q{n}",
            evidence=Evidence(
                parts=(
                    Part(name="task_prompt", content=f"prompt {n // group}"),
                    Part(name="response", content=str(n)),
                )
            ),
            instruction="Is it so?",
            choices=choices,
        )
        for n in range(count)
    ]


def plan(notes: Path, pause: float = 0.0, **settings: int) -> Plan:
    return Plan(
        name=f"p{uuid.uuid4().hex[:8]}",
        factory=replica,
        args=(notes, pause),
        identity=IDENTITY,
        at=AT,
        pool=Pool.model_validate({"replicas": 2, "max_in_flight": 64, **settings}),
        deadlines=Deadlines(evaluation=60),
    )


def handle(of: Plan) -> PooledJudge:
    return PooledJudge(of.name, IDENTITY, AT, of.pool.fronts)


def run(of: Plan, work: Callable[[], object]) -> None:
    async def whole() -> None:
        end = await pool.launch(of)
        try:
            await work()  # type: ignore[misc]
        finally:
            end()

    asyncio.run(whole())


async def pid(of: Plan, number: int) -> int:
    return await actors.find(of.replica(number), AT).ready()


def answered(notes: Path) -> list[str]:
    return notes.read_text().split()[1::2] if notes.exists() else []


def test_a_pool_answers_in_order_and_shares_the_work(notes: Path) -> None:
    of = plan(notes, fronts=2)

    async def work() -> None:
        asked = questions(300)
        replies = await handle(of).answer(asked)
        assert all(isinstance(reply, Answer) for reply in replies)
        assert sorted(answered(notes)) == sorted(q.source for q in asked)
        assert all(r.answered for r in (await pool.status(of.name, AT))[0].replicas)

    run(of, work)


def test_a_handle_pickles_without_its_connections_and_still_answers(notes: Path) -> None:
    of = plan(notes)

    async def work() -> None:
        judge = handle(of)
        await judge.answer(questions(1))
        again = pickle.loads(pickle.dumps(judge))  # noqa: S301 - our own object
        assert again == judge
        assert not again._found
        assert len(await again.answer(questions(2))) == 2

    run(of, work)


def test_one_of_two_replicas_is_killed_and_every_question_is_answered_once(notes: Path) -> None:
    of = plan(notes, pause=0.3, restarts=1)

    async def work() -> None:
        asked = questions(640)
        running = asyncio.create_task(handle(of).answer(asked))
        await until(lambda: len(answered(notes)) >= 128)
        os.kill(await pid(of, 0), signal.SIGKILL)
        replies = await running
        assert all(isinstance(reply, Answer) for reply in replies)
        assert len(replies) == 640
        [front] = await pool.status(of.name, AT)
        assert sum(r.answered for r in front.replicas) == 640

    run(of, work)


def test_all_are_killed_with_restarts_off_and_only_what_was_left_is_unreachable(
    notes: Path,
) -> None:
    of = plan(notes, pause=0.5, restarts=0, resends=1)

    async def work() -> None:
        running = asyncio.create_task(handle(of).answer(questions(640)))
        await until(lambda: len(answered(notes)) >= 128)
        for number in range(2):
            os.kill(await pid(of, number), signal.SIGKILL)
        replies = await running
        kept = [reply for reply in replies if isinstance(reply, Answer)]
        lost = [reply for reply in replies if isinstance(reply, NoAnswer)]
        assert len(kept) >= 128
        assert {reply.cause for reply in lost} == {"unreachable"}
        assert len(kept) + len(lost) == 640

    run(of, work)


def test_a_killed_front_comes_back_and_the_caller_gets_its_answers(notes: Path) -> None:
    of = plan(notes, pause=0.3)

    async def work() -> None:
        running = asyncio.create_task(handle(of).answer(questions(256)))
        await until(lambda: len(answered(notes)) >= 64)
        os.kill(await actors.find(of.front(0), AT).ready(), signal.SIGKILL)
        assert all(isinstance(reply, Answer) for reply in await running)

    run(of, work)


def test_a_pool_that_is_not_there_is_unreachable_for_its_handle_and_not_found_by_name(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_FRONT_TRIES", 2)
    [reply] = asyncio.run(handle(plan(notes)).answer(questions(1)))
    assert isinstance(reply, NoAnswer)
    assert reply.cause == "unreachable"
    with pytest.raises(NotFound, match="no judge pool"):
        asyncio.run(pool.attach("nobody", AT))


def refuse(_notes: Path, _pause: float) -> None:
    raise EngineFailed("no such model")


def crash(_notes: Path, _pause: float) -> None:
    os._exit(3)


@pytest.mark.parametrize(
    ("factory", "said"), [(refuse, "no such model"), (crash, "died while it started")]
)
def test_a_replica_that_does_not_start_says_why_and_leaves_nothing(
    notes: Path, factory: Callable[..., object], said: str
) -> None:
    of = plan(notes, restarts=0)
    broken = Plan(**{**of.__dict__, "factory": factory})
    with pytest.raises(EngineFailed, match=said):
        asyncio.run(pool.launch(broken))
    assert of.name not in pool.pools(AT)


def test_shutting_a_pool_ends_its_actors_and_no_others(notes: Path) -> None:
    one, other = plan(notes), plan(notes)

    async def work() -> None:
        ends = [await pool.launch(one), await pool.launch(other)]
        assert pool.shut(one.name, AT) == 3
        assert pool.shut(one.name, AT) == 0
        assert isinstance((await handle(other).answer(questions(1)))[0], Answer)
        ends.pop()()

    asyncio.run(work())


def test_a_detached_pool_outlives_what_launched_it(notes: Path) -> None:
    of = plan(notes)
    detached = Plan(**{**of.__dict__, "at": Address(namespace="test", detached=True)})
    asyncio.run(pool.launch(detached))
    try:
        judge = asyncio.run(pool.attach(of.name, AT))
        assert isinstance(asyncio.run(judge.answer(questions(1)))[0], Answer)
    finally:
        assert pool.shut(of.name, AT) == 3


def test_a_pool_name_is_one_word() -> None:
    with pytest.raises(InputError, match="no pool name"):
        Plan(name="a.b", factory=replica, args=(), identity=IDENTITY, at=AT)
