import pytest

from starforge_rewards.errors import NotFound
from starforge_rewards.registry.database import Database
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.run import Outcome
from tests.registry.samples import put, registry, run

X = Ref.parse("alice/x")


def test_usage_says_which_run_cited_which_version_as_what(database: Database) -> None:
    alice = registry(database, "alice")
    one, two = put(alice, "alice/x"), put(alice, "alice/x", description="New.")
    put(alice, "alice/other")
    alice.rubrics.resolve("alice/x")
    assert alice.rubrics.usage(X) == []
    alice.runs.put("run-training", run(one, role="training_reward"))
    done = Outcome(rows=2, scored=2, unscored={}, score=3.5, normalized=0.7)
    safety = run(one, two, role="benchmark_score", runner="safety", status="finished", outcome=done)
    alice.runs.put("run-safety-1", safety)
    alice.runs.put("run-elsewhere", run("alice/other@1"))
    newest_first = alice.rubrics.usage(X)
    assert [(use.run, use.version) for use in newest_first] == [
        ("run-safety-1", 2),
        ("run-safety-1", 1),
        ("run-training", 1),
    ]
    assert [(use.role, use.runner, use.status, use.score) for use in newest_first[1:]] == [
        ("benchmark_score", "safety", "finished", 3.5),
        ("training_reward", None, "running", None),
    ]
    assert (newest_first[0].owner, newest_first[0].normalized) == ("alice", 0.7)
    assert newest_first[0].created_at == alice.runs.show("run-safety-1").created_at


def test_a_pinned_reference_narrows_to_its_version(database: Database) -> None:
    alice = registry(database, "alice")
    one, two = put(alice, "alice/x"), put(alice, "alice/x", description="New.")
    alice.runs.put("run-00000001", run(one))
    alice.runs.put("run-00000002", run(two))
    assert [use.run for use in alice.rubrics.usage(one)] == ["run-00000001"]
    assert [use.run for use in alice.rubrics.usage(two)] == ["run-00000002"]
    with pytest.raises(NotFound, match="alice/x@3"):
        alice.rubrics.usage(Ref.parse("alice/x@3"))


def test_owner_and_administrators_see_all_and_other_readers_their_own(database: Database) -> None:
    alice, bob = registry(database, "alice"), registry(database, "bob")
    ref = put(alice, "alice/x", visibility="public")
    alice.runs.put("run-of-alice", run(ref))
    bob.runs.put("run-of-bob", run(ref))
    both = ["run-of-bob", "run-of-alice"]
    assert [use.run for use in alice.rubrics.usage(X)] == both
    root = registry(database, "root", admin=True)
    assert [use.run for use in root.rubrics.usage(X)] == both
    assert [use.run for use in bob.rubrics.usage(X)] == ["run-of-bob"]
    assert registry(database, "carol").rubrics.usage(X) == []


def test_of_a_rubric_that_became_private_the_owner_still_sees_all(database: Database) -> None:
    alice, bob = registry(database, "alice"), registry(database, "bob")
    bob.runs.put("run-of-bob", run(put(alice, "alice/x", visibility="public")))
    put(alice, "alice/x", visibility="private")
    assert [use.run for use in alice.rubrics.usage(X)] == ["run-of-bob"]
    with pytest.raises(NotFound):
        bob.rubrics.usage(X)
