from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry import cursor
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import KeyedScore, ScoreKey
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import CriterionScore, Score
from tests.registry.samples import JUDGE, OTHER_JUDGE, RUN, key, put, registry, run, score

LATER = "run-00000002"


@pytest.fixture
def alice(database: Database) -> Registry:
    """Two runs of hers cite version 1 of `alice/x`."""
    one = registry(database, "alice")
    ref = put(one, "alice/x", visibility="public")
    one.runs.put(RUN, run(ref))
    one.runs.put(LATER, run(ref))
    return one


@pytest.fixture
def x(alice: Registry) -> Ref:
    return Ref.parse("alice/x@1")


def of_run(of: Registry, run_id: str, limit: int = 200) -> list[KeyedScore]:
    """Of all pages."""
    found: list[KeyedScore] = []
    at: str | None = None
    while True:
        page = of.scores.of_run(run_id, cursor=at, limit=limit)
        found += page.items
        if (at := page.next) is None:
            return found
        assert len(page.items) == limit


def from_ledger(one: Score) -> Score:
    criteria = {
        name: each.model_copy(update={"origin": "ledger"}) for name, each in one.criteria.items()
    }
    return one.model_copy(update={"criteria": criteria})


texts = st.text(st.characters(codec="utf-8"), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def possible(draw: st.DrawFn) -> Score:
    """Any score that a judge may have given on the scale from 0 to 1."""
    value, first = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    one = CriterionScore(
        value=value,
        normalized=value,
        label=draw(st.sampled_from("01")),
        probabilities=draw(st.sampled_from([None, (first, 1 - first)])),
        mass=draw(st.none() | numbers),
        reason=draw(texts),
        origin=draw(st.sampled_from(["asked", "cached", "ledger"])),
    )
    return Score(total=value, normalized=value, raw=value, criteria={"Correct": one})


scores = possible()
keys = st.builds(key, st.just("alice/x@1"), st.integers(0, 2**256 - 1), repeat=st.integers(0, 9))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(added=st.dictionaries(keys, scores, max_size=5), number=st.integers(0, 10**7))
def test_what_was_added_is_found_and_shown(
    alice: Registry, added: Mapping[ScoreKey, Score], number: int
) -> None:
    run_id = f"run-{number:08}"
    alice.runs.put(run_id, run("alice/x@1"))
    before = alice.scores.find(JUDGE.digest, list(added))
    alice.scores.add(run_id, added)
    expected = {one: before.get(one) or from_ledger(its) for one, its in added.items()}
    assert alice.scores.find(JUDGE.digest, list(added)) == expected
    shown = {one.key: from_ledger(one.score) for one in of_run(alice, run_id)}
    for one, its in added.items():
        if one not in before:
            assert shown[one] == from_ledger(its)


def test_adding_the_same_again_changes_nothing(alice: Registry, x: Ref) -> None:
    added = {key(x, number): score(number / 10) for number in range(9)}
    added[key(x, 9)] = score(unanswered={"Style": "timeout"})
    alice.scores.add(RUN, added)
    before = of_run(alice, RUN)
    assert {one.key: one.score for one in before} == added
    alice.scores.add(RUN, added)
    cached = {one: recalled(its, "cached") for one, its in added.items()}
    alice.scores.add(RUN, cached)
    alice.scores.add(RUN, {})
    assert of_run(alice, RUN) == before
    assert len(alice.scores.find(JUDGE.digest, list(added))) == 9


def recalled(one: Score, origin: str) -> Score:
    criteria = {
        name: each.model_copy(update={"origin": origin}) for name, each in one.criteria.items()
    }
    return one.model_copy(update={"criteria": criteria})


def test_the_first_score_is_served_and_another_is_kept_beside_it(alice: Registry, x: Ref) -> None:
    alice.scores.add(RUN, {key(x, 1): score(0.2), key(x, 2): score(0.3)})
    alice.scores.add(LATER, {key(x, 1): score(0.9), key(x, 2): score(0.3), key(x, 3): score(0.4)})
    found = alice.scores.find(JUDGE.digest, [key(x, number) for number in range(5)])
    assert {one.evidence[-1]: its.total for one, its in found.items()} == {
        "1": 0.2,
        "2": 0.3,
        "3": 0.4,
    }
    assert totals(alice, RUN) == {key(x, 1): [0.2], key(x, 2): [0.3]}
    assert totals(alice, LATER) == {key(x, 1): [0.9], key(x, 2): [0.3], key(x, 3): [0.4]}


def totals(of: Registry, run_id: str) -> dict[ScoreKey, list[float]]:
    found: dict[ScoreKey, list[float]] = {}
    for one in of_run(of, run_id):
        found.setdefault(one.key, []).append(one.score.total)
    return {one: sorted(its) for one, its in found.items()}


def test_every_score_that_one_run_used_is_shown(alice: Registry, x: Ref) -> None:
    for value in (0.2, 0.9, 0.4, 0.9):
        alice.scores.add(RUN, {key(x): score(value)})
    assert totals(alice, RUN) == {key(x): [0.2, 0.4, 0.9]}
    assert alice.scores.find(JUDGE.digest, [key(x)])[key(x)].total == 0.2


def test_a_difference_that_numbers_do_not_show_is_kept(alice: Registry, x: Ref) -> None:
    first = score(0.5)
    criteria = {"Correct": first.criteria["Correct"].model_copy(update={"reason": "because"})}
    alice.scores.add(RUN, {key(x): first})
    alice.scores.add(LATER, {key(x): score(0.5, criteria=criteria)})
    assert of_run(alice, LATER)[0].score.criteria["Correct"].reason == "because"


def test_an_incomplete_score_is_shown_and_never_served(alice: Registry, x: Ref) -> None:
    partial = score(0.5, unanswered={"Style": "timeout"})
    alice.scores.add(RUN, {key(x): partial})
    assert alice.scores.find(JUDGE.digest, [key(x)]) == {}
    assert [one.score for one in of_run(alice, RUN)] == [partial]
    alice.scores.add(LATER, {key(x): score(0.7)})
    assert alice.scores.find(JUDGE.digest, [key(x)])[key(x)].total == 0.7
    alice.scores.add(RUN, {key(x): partial})
    assert totals(alice, RUN) == {key(x): [0.5]}


def test_nobody_is_served_what_another_recorded(
    database: Database, alice: Registry, x: Ref
) -> None:
    bob, root = registry(database, "bob"), registry(database, "root", admin=True)
    alice.scores.add(RUN, {key(x): score(0.2)})
    for other in (bob, root):
        assert other.scores.find(JUDGE.digest, [key(x)]) == {}
    bob.runs.put("run-of-bob", run(x))
    bob.scores.add("run-of-bob", {key(x): score(0.9)})
    assert bob.scores.find(JUDGE.digest, [key(x)])[key(x)].total == 0.9
    assert alice.scores.find(JUDGE.digest, [key(x)])[key(x)].total == 0.2
    assert totals(root, RUN) == {key(x): [0.2]}
    for look in (RUN, "run-absent"):
        with pytest.raises(NotFound, match="of yours"):
            bob.scores.of_run(look)
        with pytest.raises(NotFound, match="of yours"):
            bob.scores.add(look, {key(x): score()})
    with pytest.raises(NotFound):
        root.scores.add(RUN, {key(x, 1): score()})


def test_another_judge_version_repeat_or_evidence_misses(alice: Registry, x: Ref) -> None:
    two = put(alice, "alice/x", visibility="public", description="New.")
    same_text = put(alice, "alice/y", visibility="public")
    alice.runs.put("run-other-judge", run(x, judge=OTHER_JUDGE))
    alice.scores.add(RUN, {key(x, 1): score()})
    others = [key(two, 1), key(same_text, 1), key(x, 2), key(x, 1, repeat=1)]
    assert alice.scores.find(JUDGE.digest, others) == {}
    assert alice.scores.find(OTHER_JUDGE.digest, [key(x, 1)]) == {}
    alice.scores.add("run-other-judge", {key(x, 1): score(0.9)})
    assert alice.scores.find(OTHER_JUDGE.digest, [key(x, 1)])[key(x, 1)].total == 0.9
    assert alice.scores.find(JUDGE.digest, [key(x, 1), *others]) == {
        key(x, 1): from_ledger(score())
    }


@pytest.mark.parametrize("cited", ["alice/x@2", "alice/y@1", "alice/none@1", "alice/x", "x", ""])
def test_a_score_of_what_the_run_does_not_cite_keeps_nothing(
    alice: Registry, x: Ref, cited: str
) -> None:
    put(alice, "alice/x", visibility="public", description="New.")
    put(alice, "alice/y")
    with pytest.raises(InputError):
        alice.scores.add(RUN, {key(x): score(), key(cited): score()})
    assert of_run(alice, RUN) == []
    assert alice.scores.find(JUDGE.digest, [key(x)]) == {}


def test_a_run_without_a_judge_has_no_scores(alice: Registry, x: Ref) -> None:
    alice.runs.put("run-no-judge", run(x, judge=None))
    with pytest.raises(InputError, match="names no judge"):
        alice.scores.add("run-no-judge", {key(x): score()})


@pytest.mark.parametrize("limit", [1, 7, 20, 200])
def test_scores_of_a_run_come_in_pages(alice: Registry, x: Ref, limit: int) -> None:
    added = {key(x, number): score(number / 20) for number in range(20)}
    alice.scores.add(LATER, {key(x, 3): score(0.99)})
    alice.scores.add(RUN, added)
    found = of_run(alice, RUN, limit)
    assert len(found) == 20
    assert {one.key: one.score for one in found} == added


@pytest.mark.parametrize(
    "given", ["", "x", "é", "\ud800", cursor.encode(["xyz"]), cursor.encode(["abc"]), "WzFd"]
)
def test_a_damaged_cursor_is_refused(alice: Registry, given: str) -> None:
    with pytest.raises(InputError, match="cursor: is no cursor"):
        alice.scores.of_run(RUN, cursor=given)


def test_ten_thousand_at_once(alice: Registry, x: Ref) -> None:
    added = {key(x, number): score(number / 10_000) for number in range(10_000)}
    alice.scores.add(RUN, added)
    found = alice.scores.find(JUDGE.digest, [*added, *(key(x, n) for n in range(10_000, 11_000))])
    assert {one: its.total for one, its in found.items()} == {
        one: its.total for one, its in added.items()
    }
    changed = dict(added) | {key(x, 9_999): score(0.5)}
    alice.scores.add(LATER, changed)
    assert {one.key: one.score for one in of_run(alice, LATER, 5_000)} == changed


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused_and_nothing_is_kept(
    alice: Registry, x: Ref, value: float
) -> None:
    mass = score().criteria["Correct"].model_copy(update={"mass": value})
    for one in (score(value), score(criteria={"Correct": mass})):
        with pytest.raises(InputError, match=r"finite|outside the scale"):
            alice.scores.add(RUN, {key(x, 1): score(), key(x): one})
    assert of_run(alice, RUN) == []
