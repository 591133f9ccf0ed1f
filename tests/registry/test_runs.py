from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge_rewards.errors import Conflict, InputError, NotFound, StarforgeError
from starforge_rewards.registry import cursor
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import RunQuery
from starforge_rewards.run import Outcome, ResultRow, Run
from tests.registry.samples import JUDGE, OTHER_JUDGE, RUN, put, registry, run


@pytest.fixture
def alice(database: Database) -> Registry:
    return registry(database, "alice")


@pytest.fixture
def bob(database: Database) -> Registry:
    return registry(database, "bob")


@pytest.fixture
def admin(database: Database) -> Registry:
    return registry(database, "root", admin=True)


OUTCOME = Outcome(rows=3, scored=2, unscored={"timeout": 1}, score=0.1 + 0.2, normalized=0.5)


def test_a_run_comes_back_as_it_was_recorded(alice: Registry) -> None:
    ref = put(alice, "alice/x")
    said = run(ref, role="benchmark_score", runner="safety", subject="Modell Ü", outcome=OUTCOME)
    record = alice.runs.put(RUN, said)
    assert alice.runs.show(RUN) == record
    assert (record.id, record.owner, record.role, record.runner) == (
        RUN,
        "alice",
        "benchmark_score",
        "safety",
    )
    assert (record.subject, record.judge, record.outcome) == ("Modell Ü", JUDGE, OUTCOME)
    (citation,) = record.citations
    assert (citation.rubric, citation.readable) == ("alice/x@1", True)
    assert citation.digest == alice.rubrics.resolve("alice/x@1").digest


def test_saying_the_same_again_changes_nothing(alice: Registry) -> None:
    said = run(put(alice, "alice/x"), outcome=OUTCOME, status="finished")
    first = alice.runs.put(RUN, said)
    assert alice.runs.put(RUN, said) == first
    assert alice.runs.show(RUN) == first


def test_status_outcome_and_citations_grow(alice: Registry) -> None:
    one, two = put(alice, "alice/x"), put(alice, "alice/x", description="New.")
    first = alice.runs.put(RUN, run(two))
    assert (first.status, first.outcome) == ("running", None)
    second = alice.runs.put(RUN, run(one, status="finished", outcome=OUTCOME))
    assert (second.status, second.outcome) == ("finished", OUTCOME)
    assert [each.rubric for each in second.citations] == ["alice/x@1", "alice/x@2"]
    assert (second.created_at, second.updated_at > first.updated_at) == (first.created_at, True)
    third = alice.runs.put(RUN, run(status="failed"))
    assert (third.status, third.outcome, third.citations) == ("failed", OUTCOME, second.citations)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"role": "gate"}, "another role"),
        ({"role": "benchmark_score", "runner": "judge"}, "another role"),
        ({"subject": "other"}, "another subject"),
        ({"judge": OTHER_JUDGE}, "another judge"),
        ({"judge": None}, "another judge"),
    ],
)
def test_what_a_run_is_cannot_change(
    alice: Registry, change: dict[str, object], named: str
) -> None:
    before = alice.runs.put(RUN, run())
    with pytest.raises(Conflict, match=named):
        alice.runs.put(RUN, run(status="failed", **change))
    assert alice.runs.show(RUN) == before


def test_a_benchmark_keeps_its_runner(alice: Registry) -> None:
    alice.runs.put(RUN, run(role="benchmark_score", runner="judge"))
    with pytest.raises(Conflict, match="another runner"):
        alice.runs.put(RUN, run(role="benchmark_score", runner="safety"))


def test_anothers_id_is_taken_for_administrators_too(
    alice: Registry, bob: Registry, admin: Registry
) -> None:
    before = alice.runs.put(RUN, run())
    for other in (bob, admin):
        with pytest.raises(Conflict, match="is taken"):
            other.runs.put(RUN, run(status="failed"))
    assert alice.runs.show(RUN) == before


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("alice/none@1", NotFound),
        ("alice/private@1", NotFound),
        ("alice/public@2", NotFound),
        ("alice/public@999999999", NotFound),
        ("alice/public", InputError),
        ("public", InputError),
        ("alice/public@0", InputError),
        ("alice/public@01", InputError),
        ("alice/../x@1", InputError),
        ("resolve/x@1", InputError),
        ("", InputError),
    ],
)
def test_a_citation_that_cannot_be_made_records_nothing(
    alice: Registry, bob: Registry, text: str, error: type[StarforgeError]
) -> None:
    put(alice, "alice/private")
    good = put(alice, "alice/public", visibility="public")
    with pytest.raises(error) as caught:
        bob.runs.put(RUN, run(good, text))
    assert not isinstance(caught.value, InputError) or caught.value.field == "citations[1]"
    with pytest.raises(NotFound):
        bob.runs.show(RUN)
    before = bob.runs.put(RUN, run())
    with pytest.raises(error):
        bob.runs.put(RUN, run(good, text, status="failed"))
    assert bob.runs.show(RUN) == before
    assert bob.rubrics.usage(good) == []


def test_a_rubric_that_becomes_private_stays_cited(
    alice: Registry, bob: Registry, admin: Registry
) -> None:
    ref = put(alice, "alice/x", visibility="public")
    bob.runs.put(RUN, run(ref))
    put(alice, "alice/x", visibility="private")
    (citation,) = bob.runs.put(RUN, run(ref, status="finished")).citations
    assert (citation.rubric, citation.readable) == ("alice/x@1", False)
    assert not bob.runs.show(RUN).citations[0].readable
    assert admin.runs.show(RUN).citations[0].readable
    with pytest.raises(NotFound):
        bob.runs.put(RUN, run("alice/x@2"))
    assert [use.run for use in alice.rubrics.usage(ref)] == [RUN]


def test_an_archived_rubric_is_still_cited(alice: Registry) -> None:
    ref = put(alice, "alice/x")
    alice.rubrics.archive(ref, archived=True)
    assert len(alice.runs.put(RUN, run(ref)).citations) == 1


def test_more_citations_than_one_query_takes(alice: Registry) -> None:
    refs = [put(alice, f"alice/r{number:03}") for number in range(501)]
    texts = [str(ref) for ref in refs]
    record = alice.runs.put(RUN, run(*texts, *texts[:9]))
    assert [each.rubric for each in record.citations] == sorted(texts)
    assert alice.runs.put(RUN, run(*texts)) == record


def test_a_run_is_shown_to_its_owner_and_administrators(
    alice: Registry, bob: Registry, admin: Registry
) -> None:
    alice.runs.put(RUN, run())
    alice.runs.add_results(RUN, [row("a")])
    assert admin.runs.show(RUN) == alice.runs.show(RUN)
    assert admin.runs.results(RUN) == alice.runs.results(RUN)
    for name in (RUN, "run-00000002"):
        for look in (bob.runs.show, bob.runs.results):
            with pytest.raises(NotFound, match=f"no run '{name}' of yours"):
                look(name)
    assert bob.runs.list(RunQuery()).items == ()
    for other in (bob, admin):
        with pytest.raises(NotFound):
            other.runs.add_results(RUN, [row("b")])
    assert len(alice.runs.results(RUN)) == 1


@pytest.fixture
def many(alice: Registry, bob: Registry) -> dict[str, Run]:
    """Runs of both, by id, oldest first."""
    ref = put(alice, "alice/x", visibility="public")
    put(alice, "alice/x", visibility="public", description="New.")
    made: dict[str, Run] = {}
    for number in range(14):
        owner = (alice, bob)[number % 2]
        about: dict[str, object] = {"role": ("gate", "adhoc_score")[number % 3 == 0]}
        about["status"] = ("running", "failed", "finished")[number % 3]
        cited = [ref] if number % 4 == 0 else ["alice/x@2"] if number % 4 == 1 else []
        run_id = f"run-{(number * 5) % 14:08}"
        made[run_id] = run(*cited, **about)
        owner.runs.put(run_id, made[run_id])
    return made


def ids(of: Registry, query: RunQuery) -> list[str]:
    """Of all pages."""
    page = of.runs.list(query)
    found = [record.id for record in page.items]
    assert len(found) <= query.limit
    if page.next is None:
        return found
    assert len(found) == query.limit
    return found + ids(of, query.model_copy(update={"cursor": page.next}))


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 14, 200])
def test_runs_are_listed_newest_first_in_pages(
    alice: Registry, bob: Registry, admin: Registry, many: dict[str, Run], limit: int
) -> None:
    newest = list(reversed(many))
    assert ids(admin, RunQuery(limit=limit)) == newest
    assert ids(bob, RunQuery(limit=limit)) == newest[::2]
    assert ids(alice, RunQuery(limit=limit)) == newest[1::2]


@pytest.mark.parametrize("limit", [1, 3, 200])
def test_filters_narrow_the_list(admin: Registry, many: dict[str, Run], limit: int) -> None:
    gates = [name for name in reversed(many) if many[name].role == "gate"]
    assert ids(admin, RunQuery(role="gate", limit=limit)) == gates
    failed = [name for name in gates if many[name].status == "failed"]
    assert ids(admin, RunQuery(role="gate", status="failed", limit=limit)) == failed
    assert ids(admin, RunQuery(role="nothing", limit=limit)) == []
    citing = [name for name in reversed(many) if many[name].citations]
    assert ids(admin, RunQuery(rubric="alice/x", limit=limit)) == citing
    first = [name for name in citing if many[name].citations == ("alice/x@1",)]
    assert ids(admin, RunQuery(rubric="alice/x@1", limit=limit)) == first
    assert ids(admin, RunQuery(rubric="alice/x@3")) == ids(admin, RunQuery(rubric="bob/x")) == []
    with pytest.raises(InputError, match="bare name"):
        admin.runs.list(RunQuery(rubric="x"))


def test_a_list_leaves_out_the_citations_and_nothing_else(
    admin: Registry, many: dict[str, Run]
) -> None:
    for record in admin.runs.list(RunQuery()).items:
        assert record == admin.runs.show(record.id).model_copy(update={"citations": ()})


@pytest.mark.parametrize(
    "given", ["", "x", "é", "\ud800", "null", cursor.encode(["a"]), cursor.encode(["a", "\0"])]
)
def test_a_damaged_cursor_is_refused(alice: Registry, given: str) -> None:
    with pytest.raises(InputError, match="cursor: is no cursor"):
        alice.runs.list(RunQuery(cursor=given))


def row(name: str, position: int = 0, total: float = 0.5) -> ResultRow:
    return ResultRow(key=name, position=position, outcome="scored", total=total)


def test_a_result_that_is_sent_again_takes_the_place_of_the_one_before(alice: Registry) -> None:
    alice.runs.put(RUN, run())
    alice.runs.add_results(RUN, [row("a", 0), row("b", 1), row("a", 2, total=0.25)])
    assert alice.runs.results(RUN) == [row("b", 1), row("a", 2, total=0.25)]
    failed = ResultRow(key="b", position=1, outcome="unscored", cause="timeout")
    for _ in range(2):
        alice.runs.add_results(RUN, [failed, row("c", 0)])
        assert alice.runs.results(RUN) == [row("c", 0), failed, row("a", 2, total=0.25)]
    alice.runs.add_results(RUN, [])
    assert len(alice.runs.results(RUN)) == 3


def test_results_come_in_pages(alice: Registry) -> None:
    alice.runs.put(RUN, run())
    alice.runs.put("run-00000002", run())
    rows = [row(f"r{position}", position) for position in range(1200)]
    alice.runs.add_results(RUN, rows[::-1])
    alice.runs.add_results("run-00000002", rows[:3])
    found: list[ResultRow] = []
    while page := alice.runs.results(RUN, after=found[-1].position if found else -1, limit=499):
        found += page
    assert found == rows
    assert len(alice.runs.results(RUN)) == 200
    assert len(alice.runs.results("run-00000002")) == 3


texts = st.text(st.characters(codec="utf-8"), max_size=20)
prose = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
result_rows = st.builds(
    ResultRow,
    key=prose,
    position=st.integers(0, 2**31 - 1),
    outcome=st.just("scored"),
    detail=texts,
    total=numbers,
    normalized=st.none() | st.floats(0, 1),
    facts=st.dictionaries(texts, texts | st.integers() | st.booleans() | st.none(), max_size=3),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(one=result_rows)
def test_a_result_comes_back_as_it_was_sent(alice: Registry, one: ResultRow) -> None:
    alice.runs.put(RUN, run())
    alice.runs.add_results(RUN, [one])
    assert one in alice.runs.results(RUN, after=one.position - 1, limit=1000)


def test_times_are_moments_of_utc(alice: Registry) -> None:
    record = alice.runs.put(RUN, run())
    assert isinstance(record.created_at, datetime)
    assert record.created_at.utcoffset() is not None
    assert record.created_at.utcoffset().total_seconds() == 0  # type: ignore[union-attr]


def test_rows_that_share_a_position_are_not_parted_by_a_page(alice: Registry) -> None:
    alice.runs.put(RUN, run())
    rows = [ResultRow(key=f"row-{n:03}", outcome="scored", total=1.0) for n in range(30)]
    alice.runs.add_results(RUN, rows)
    assert alice.runs.results(RUN, limit=10) == rows
    assert alice.runs.results(RUN, after=0, limit=10) == []
