import asyncio
import json
import logging
import math
import multiprocessing
import os
import pickle
import random
import socket
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge_rewards.conversation import Message
from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.training import live as live_module
from starforge_rewards.training.recording import HoldingLedger
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from tests.server.live import live
from tests.training import scripted
from tests.training.made import BY_RUBRIC, RUBRIC, environment, item, loaded

WORDS = {"kind": "plugin", "plugin": "tests.training.scripted:words"}
REF = Ref.parse("alice/one")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("SF_URL", "SF_TOKEN", "SF_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    scripted.ASKED.clear()
    scripted.GATE.clear()
    yield
    scripted.GATE.set()  # nobody is left waiting


def reward(folder: Path, judge: str = "judge", **keys: Any) -> RubricReward:
    return RubricReward(loaded(folder, **keys), judge=scripted.config(judge))


def values(rewards: list[Reward]) -> list[float | None]:
    return [one.value for one in rewards]


# --- what a reward is ---


def test_a_rollout_gets_its_total_with_the_criteria_beside_it(tmp_path: Path) -> None:
    [one] = reward(tmp_path).score([item("5")])
    assert (one.value, one.total, one.normalized, one.measure) == (5, 5, 1, "total")
    assert one.criteria == {"Right": 5, "Short": 5}
    assert one.verifiers == {"rubric": 5}
    [half] = reward(tmp_path, value="normalized").score([item("Right timeout"), item("5")])[1:]
    assert half.value == 1


def test_one_verifier_counts_with_its_weight(tmp_path: Path) -> None:
    one = reward(tmp_path, verifier={**BY_RUBRIC, "weight": -2})
    assert values(one.score([item("5")])) == [-10]


def test_a_list_is_the_sum_of_weight_times_value(tmp_path: Path) -> None:
    mixed = [{**BY_RUBRIC, "weight": 2}, {**WORDS, "weight": 4}]
    one = reward(tmp_path, verifiers=mixed)
    assert values(one.score([item("5"), item("0")])) == [2 * 1 + 4 * 0.5, 4 * 0.5]
    total = reward(tmp_path, verifiers=[{**BY_RUBRIC, "value": "total"}, WORDS])
    assert values(total.score([item("5")])) == [5.5]


def test_one_failed_verifier_leaves_no_score_unless_its_weight_is_zero(tmp_path: Path) -> None:
    mixed = reward(tmp_path, verifiers=[BY_RUBRIC, WORDS])
    raised, unjudged = mixed.score([item("raise 5"), item("fail timeout")])
    assert (raised.value, raised.cause, raised.total) == (None, "plugin_failed", 5)
    assert (unjudged.value, unjudged.cause) == (None, "timeout")
    idle = reward(tmp_path, verifiers=[BY_RUBRIC, {**WORDS, "weight": 0}])
    assert values(idle.score([item("raise 5"), item("5")])) == [1, 1]


def test_no_judge_sees_what_is_hidden(tmp_path: Path) -> None:
    hidden = "xyzzy"
    rows = [
        item("5", id=hidden, split="eval", expect=expect, metadata={hidden: hidden})
        for expect in ("comply", "refuse")
    ]
    found = reward(tmp_path).score(rows)
    assert values(found) == [0, 5]
    assert found[0].measure == "complied"
    assert scripted.ASKED
    for question in scripted.ASKED:
        shown = question.model_dump_json(exclude={"source"})
        assert not {hidden, "comply", "refuse", "expect", "split", "eval"} & {*shown.split('"')}
        assert hidden not in shown


def test_a_response_that_is_no_text_costs_its_own_reward_alone(tmp_path: Path) -> None:
    found = reward(tmp_path).score([item("5"), item("\ud800"), item("0")])
    assert values(found) == [5, None, 0]
    assert found[1].cause == "not_text"


def test_no_rollouts_are_no_rewards(tmp_path: Path) -> None:
    assert reward(tmp_path).score([]) == []


def test_what_the_environment_names_is_checked_before_any_rollout(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="alice/one"):
        reward(tmp_path, verifier={"kind": "rubric", "ref": "alice/one"})
    one = reward(tmp_path, verifier={"kind": "rubric", "ref_column": "rubric"})
    with pytest.raises(InputError, match="has no rubric of its own"):
        one.score([item("5")])
    assert values(one.score([item("5", rubric=RUBRIC)])) == [5]


# --- reasoning ---


def test_reasoning_is_removed_unless_it_is_asked_for(tmp_path: Path) -> None:
    said = "<think>5</think> 0"
    turns = (Message(role="assistant", content=said),)
    one = reward(tmp_path)
    assert values(one.score([item(said), item("")._replace(response=turns)])) == [0, 0]
    assert all("<think>" not in q.model_dump_json() for q in scripted.ASKED)
    kept = reward(tmp_path, keep_reasoning=True)
    assert values(kept.score([item("<think> 5 </think>")])) == [5]


@pytest.mark.parametrize("said", ["", "<think>5", "<think>5</think>\n\n", "5</think>"])
def test_an_answer_that_is_empty_without_its_reasoning_is_decided_by_the_declared_rule(
    tmp_path: Path, said: str
) -> None:
    assert values(reward(tmp_path).score([item(said)])) == [0]
    rule = scripted.config().model_copy(update={"empty_response": "unscored"})
    [one] = RubricReward(loaded(tmp_path), judge=rule).score([item(said)])
    assert (one.value, one.cause) == (None, "empty_response")
    assert not scripted.ASKED


# --- what belongs together ---


def test_identical_completions_are_judged_once(tmp_path: Path) -> None:
    one = reward(tmp_path)
    found = one.score([item(said, id=str(n)) for n, said in enumerate("5050")])
    assert values(found) == [5, 0, 5, 0]
    assert len(scripted.ASKED) == 4, "two completions, two criteria"
    assert (one.metrics().asked, one.metrics().cached) == (4, 4)


def test_a_plugin_that_looks_at_the_id_is_asked_for_each(tmp_path: Path) -> None:
    by_id = {"kind": "plugin", "plugin": "tests.training.scripted:later"}
    one = reward(tmp_path, verifier=by_id)
    assert values(one.score([item("r"), item("r", id="other"), item("r")])) == [1, 2, 1]


def test_groups_are_found_by_prompt_in_any_order(tmp_path: Path) -> None:
    one = reward(tmp_path, on_failure="group_median")
    items = [item(said, prompt=p) for p, all_ in {"p": "1234", "q": "55"}.items() for said in all_]
    items += [item("fail timeout", prompt="p"), item("fail refused", prompt="q")]
    random.Random(7).shuffle(items)  # noqa: S311 - no secret
    for each, found in zip(items, one.numbers(items), strict=True):
        if str(each.response).startswith("fail"):
            assert (found.value, found.imputed) == (2.5 if each.row.prompt == "p" else 5, True)
        else:
            assert (found.value, found.imputed) == (float(str(each.response)), False)
    assert one.metrics().tie_rate == 0.5


# --- failures ---


def test_trainers_without_no_score_stop_unless_a_person_declared_otherwise(tmp_path: Path) -> None:
    one = reward(tmp_path)
    with pytest.raises(RewardsFailing, match=r"timeout: Right: told to.*on_failure is stop"):
        one.numbers([item("5"), item("4"), item("fail timeout")])
    assert one.metrics().failed == {"timeout": 1}
    with pytest.raises(RewardsFailing):
        asyncio.run(one.anumbers([item("fail timeout")]))


def test_earlier_scores_of_the_prompt_stand_in_where_that_is_declared(tmp_path: Path) -> None:
    one = reward(tmp_path, on_failure="prompt_median")
    with pytest.raises(RewardsFailing):
        one.numbers([item("fail timeout")])
    one.score([item("5")])
    one.numbers([item("3")])
    [found] = asyncio.run(one.anumbers([item("fail timeout")]))
    assert (found.value, found.imputed, found.cause) == (4, True, "timeout")
    assert one.metrics().imputed == 1


def test_what_failed_once_is_judged_again_and_counts_once(tmp_path: Path) -> None:
    one = reward(tmp_path, "once_down")
    assert values(one.numbers([item("5"), item("4")])) == [5, 4]
    found = one.metrics()
    assert (found.scored, found.failed, found.failure_rate) == (2, {}, 0)


def test_a_run_in_which_too_many_fail_is_told_to_stop(tmp_path: Path) -> None:
    one = reward(tmp_path, abort_failure_rate=0.25)
    one.score([item(f"fail timeout {n}") for n in range(20)])
    one.stop_where_failing()
    one.score([item(f"5 {n}") for n in range(20)])
    assert one.failing
    with pytest.raises(RewardsFailing, match="50% of the recent rollouts have no score"):
        one.stop_where_failing()


SAID = st.sampled_from(
    [*"05", "", "<think>5", "raise 5", "exit", "nan", "text", "none", "huge", "\ud800"]
    + [f"fail {cause}" for cause in scripted.CAUSES]
    + [f"Short {cause}" for cause in scripted.CAUSES[:2]]
)
WEIGHTS = st.sampled_from([-1.0, 0.0, 0.5, 1.5e308])


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    said=st.lists(st.tuples(SAID, st.sampled_from("pq"), st.sampled_from(["comply", None]))),
    weights=st.tuples(WEIGHTS, WEIGHTS).filter(any),
    policy=st.sampled_from(["stop", "group_median", "prompt_median"]),
    kinds=st.sampled_from([(BY_RUBRIC, WORDS), (WORDS, BY_RUBRIC), (BY_RUBRIC, BY_RUBRIC)]),
)
def test_a_failure_never_becomes_a_number(
    said: list[tuple[str, str, str | None]],
    weights: tuple[float, float],
    policy: str,
    kinds: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    verifiers = [{**kind, "weight": w} for kind, w in zip(kinds, weights, strict=True)]
    items = [item(text, prompt=prompt, expect=expect) for text, prompt, expect in said]
    with tempfile.TemporaryDirectory() as folder:
        one = reward(Path(folder), verifiers=verifiers, on_failure=policy)
        found = one.score(items)
        try:
            numbers = one.numbers(items)
        except RewardsFailing:
            assert None in values(found)
            numbers = []
    for each, had in zip(items, found, strict=True):
        assert (had.value is None) == (had.cause is not None)
        assert not had.imputed
        assert had.value is None or math.isfinite(had.value)
        text = str(each.response)
        judged = any(w and kind is BY_RUBRIC for kind, w in zip(kinds, weights, strict=True))
        if judged and text.startswith(("fail", "Short")):
            assert had.value is None
        assert had.value is None or text != "\ud800"
    for had, got in zip(found, numbers, strict=bool(numbers)):
        assert got.value is not None
        assert got.imputed == (had.value is None)
        assert got.imputed == (got.cause is not None)
        assert policy != "stop" or not got.imputed


# --- processes, threads and loops ---


def work(one: RubricReward) -> list[float | None]:
    """In another process."""
    return [*values(one.score([item("5"), item("fail timeout")])), len(scripted.ASKED)]


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_reward_travels_to_another_process_without_what_is_open(
    tmp_path: Path, method: str
) -> None:
    one = reward(tmp_path)
    one.score([item("0")])
    before = len(scripted.ASKED) if method == "fork" else 0
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(work, one).result(60) == [5, None, before + 4]
    assert values(one.score([item("4")])) == [4]


def test_a_forked_process_uses_a_reward_that_it_finds_there(tmp_path: Path) -> None:
    one = reward(tmp_path)
    one.score([item("0")])
    if not (child := os.fork()):
        try:
            os._exit(10 + int(work(one)[0] or 0))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 15
    assert values(one.score([item("4")])) == [4]


def test_a_pickled_reward_is_the_same_run_with_the_same_rubrics(tmp_path: Path) -> None:
    one = reward(tmp_path)
    one.score([item("5")])
    other = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert (other.run_id, other.pinned, other.__name__) == (one.run_id, one.pinned, "env")
    assert other.metrics().scored == 0
    assert values(other.score([item("5")])) == [5]
    assert one.metrics().scored == 1


def test_threads_and_event_loops_may_come_and_go(tmp_path: Path) -> None:
    one = reward(tmp_path)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda n: one.score([item(str(n % 6), id=str(n))]), range(200)))
    assert [reward[0].value for reward in found] == [n % 6 for n in range(200)]
    assert one.metrics().scored == 200
    for n in range(3):
        assert values(asyncio.run(one.ascore([item(str(n))]))) == [n]


def test_a_caller_who_is_cancelled_takes_nobody_with_them(tmp_path: Path) -> None:
    one = reward(tmp_path, "gated")

    async def work() -> None:
        leaves = asyncio.create_task(one.ascore([item("1")]))
        stays = asyncio.create_task(one.ascore([item("2")]))
        async with asyncio.timeout(20):
            while one.metrics().queue_depth < 4:  # noqa: ASYNC110 - of another thread
                await asyncio.sleep(0.005)
            leaves.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaves
            scripted.GATE.set()
            assert values(await stays) == [2]

    asyncio.run(work())
    assert one.metrics().scored == 1
    assert one.metrics().queue_depth == 0


# --- streams ---


def test_a_stream_keeps_its_order_and_looks_ahead_only_so_far(tmp_path: Path) -> None:
    one, taken = reward(tmp_path), count()

    def coming() -> Iterator[Item]:
        for n in range(3000):
            next(taken)
            yield item(f"{n % 6} {n}")

    async def work() -> list[Reward]:
        found: list[Reward] = []
        async for each in one.stream(coming()):
            if not found:
                assert next(taken) < 1100
            found.append(each)
        return found

    assert values(asyncio.run(work())) == [n % 6 for n in range(3000)]
    assert one.metrics().scored == 3000


def test_one_who_leaves_a_stream_leaves_nothing_behind(tmp_path: Path) -> None:
    one = reward(tmp_path)

    async def work() -> int:
        stream = one.stream(item(f"5 {n}") for n in range(5000))
        async for _ in stream:
            break
        await stream.aclose()
        return len(asyncio.all_tasks())

    assert asyncio.run(work()) == 1
    assert asyncio.run(anext(one.stream([item("5")]))).value == 5


def test_a_stream_whose_source_breaks_says_so(tmp_path: Path) -> None:
    def coming() -> Iterator[Item]:
        yield item("5")
        raise OSError("the file is gone")

    async def work() -> None:
        async for _ in reward(tmp_path).stream(coming()):
            pass

    with pytest.raises(OSError, match="the file is gone"):
        asyncio.run(work())


# --- what a registry keeps ---


class Recorded:
    """A registry in a SQLite file, with the rubric `alice/one`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "registry.sqlite"
        self.url = f"sqlite:///{self.path}"
        self.database = Database.open(self.url)
        self.registry: Registry = registry_of(self.database, User(owner="alice"))
        self.edit("first")

    def edit(self, description: str) -> None:
        body = {**RUBRIC, "description": description}
        self.registry.rubrics.put(REF, Rubric.model_validate(body))

    def scores(self, run_id: str) -> int:
        return len(self.registry.scores.of_run(run_id).items)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    one = Recorded(tmp_path)
    monkeypatch.setenv("SF_DATABASE_URL", one.url)
    quick = partial(HoldingLedger, patience=0.5, pause=0.05, look_every=0)
    monkeypatch.setattr(live_module, "HoldingLedger", quick)
    yield one
    one.database.close()


def by_ref(folder: Path, owner: str | None = "alice", **keys: Any) -> RubricReward:
    verifier = {"kind": "rubric", "ref": "alice/one"}
    judge = scripted.config()
    return RubricReward(
        loaded(folder, verifier=verifier, **keys), judge=judge, as_owner=owner, subject="policy"
    )


def wait_until(holds: Callable[[], bool]) -> None:
    tick = threading.Event()
    for _ in range(2000):
        if holds():
            return
        tick.wait(0.01)
    raise AssertionError("waited in vain")


def test_a_run_is_recorded_at_its_first_scoring_call_with_what_it_cites(
    tmp_path: Path, recorded: Recorded
) -> None:
    one = by_ref(tmp_path)
    assert one.pinned == ["alice/one@1"]
    one.metrics()
    with pytest.raises(NotFound):
        recorded.registry.runs.show(one.run_id)
    one.score([item("5"), item("4"), item("fail timeout")])
    run = recorded.registry.runs.show(one.run_id)
    assert (run.role, run.status, run.subject) == ("training_reward", "running", "policy")
    assert [c.rubric for c in run.citations] == ["alice/one@1"]
    assert recorded.scores(one.run_id) == 2, "a failure is not kept"
    one.finish()
    run = recorded.registry.runs.show(one.run_id)
    assert run.outcome is not None
    assert run.status == "finished"
    assert (run.outcome.rows, run.outcome.scored) == (3, 2)
    assert (run.outcome.score, run.outcome.unscored) == (4.5, {"timeout": 1})
    [usage] = recorded.registry.rubrics.usage(REF)
    assert (usage.role, usage.version, usage.score) == ("training_reward", 1, 4.5)


def test_a_stand_in_is_in_no_ledger_and_in_no_report(tmp_path: Path, recorded: Recorded) -> None:
    one = by_ref(tmp_path, on_failure="group_median")
    found = one.numbers([item("5"), item("4"), item("fail timeout")])
    assert values(found) == [5, 4, 4.5]
    one.finish(failed=True)
    run = recorded.registry.runs.show(one.run_id)
    assert run.status == "failed"
    assert run.outcome is not None
    assert (run.outcome.scored, run.outcome.score) == (2, 4.5)
    assert recorded.scores(one.run_id) == 2


def test_an_edit_during_the_run_is_said_and_not_applied(
    tmp_path: Path, recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    one = by_ref(tmp_path)
    one.score([item("5")])
    harder = {**RUBRIC, "criteria": [{"name": "Other", "weight": 1}]}
    recorded.registry.rubrics.put(REF, Rubric.model_validate(harder))
    with caplog.at_level(logging.WARNING):
        [found] = one.score([item("4")])
        wait_until(lambda: one.newer == ["alice/one@2"])
    assert set(found.criteria) == {"Right", "Short"}
    assert one.pinned == ["alice/one@1"]
    assert any("this run keeps its own" in record.message for record in caplog.records)
    travelled = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert set(travelled.score([item("3")])[0].criteria) == {"Right", "Short"}
    one.finish()
    assert one.newer == ["alice/one@2"]
    run = recorded.registry.runs.show(one.run_id)
    assert [c.rubric for c in run.citations] == ["alice/one@1"]


def test_a_private_rubric_of_another_stops_the_job_at_its_start(
    tmp_path: Path, recorded: Recorded
) -> None:
    with pytest.raises(NotFound):
        by_ref(tmp_path, owner="bob")


def test_a_database_that_cannot_be_used_for_a_while_costs_nothing(
    tmp_path: Path, recorded: Recorded
) -> None:
    one = by_ref(tmp_path)
    one.score([item("5")])
    with closing(sqlite3.connect(recorded.path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert values(one.score([item("4"), item("3")])) == [4, 3]
        assert values(one.score([item("2")])) == [2]
        other.rollback()
    wait_until(lambda: recorded.scores(one.run_id) == 4)
    one.finish()
    assert recorded.registry.runs.show(one.run_id).status == "finished"


def test_a_server_that_is_killed_and_started_again_costs_nothing(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    token = Tokens(recorded.database).create("alice").token
    monkeypatch.delenv("SF_DATABASE_URL")
    monkeypatch.setenv("SF_TOKEN", token)
    monkeypatch.setenv("SF_URL", f"http://127.0.0.1:{port}")
    with live(tmp_path, recorded.url, "--port", port):
        one = by_ref(tmp_path, owner=None)
        assert values(one.score([item("5")])) == [5]
    assert values(one.score([item("4"), item("3")])) == [4, 3]
    assert values(one.score([item("2")])) == [2]
    assert recorded.scores(one.run_id) == 1
    with live(tmp_path, recorded.url, "--port", port):
        wait_until(lambda: recorded.scores(one.run_id) == 4)
        one.finish()
    run = recorded.registry.runs.show(one.run_id)
    assert (run.status, run.outcome and run.outcome.scored) == ("finished", 4)


def test_scores_of_an_earlier_run_are_found_where_the_judge_may_be_trusted_to_repeat(
    tmp_path: Path, recorded: Recorded
) -> None:
    """A scripted judge is not: see `remembers`."""
    one, other = by_ref(tmp_path), by_ref(tmp_path)
    one.score([item("5")])
    asked = len(scripted.ASKED)
    other.score([item("5")])
    assert len(scripted.ASKED) == 2 * asked
    assert one.run_id != other.run_id
    assert len(recorded.registry.rubrics.usage(REF)) == 2


def test_an_environment_is_named_by_its_folder_too(tmp_path: Path) -> None:
    home = environment(tmp_path, judge=json.loads(scripted.config().model_dump_json()))
    assert values(RubricReward(str(home)).score([item("5")])) == [5]
