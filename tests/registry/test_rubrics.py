from collections.abc import Callable

import pytest
from pydantic import JsonValue
from sqlalchemy import event

from starforge_rewards.errors import Conflict, Forbidden, InputError, NotFound
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Rubric

REF = Ref(owner="alice", name="answer-quality")
BODY: dict[str, JsonValue] = {
    "description": "Scoring customer-support answers.",
    "visibility": "private",
    "scale_min": 0,
    "scale_max": 5,
    "criteria": [
        {"name": "Factually correct", "weight": 3.0, "description": "Every claim is true."},
        {"name": "Cites the handbook", "weight": 1.0, "description": "Points to the section."},
    ],
}


def rubric(**changes: JsonValue) -> Rubric:
    return Rubric.model_validate({k: v for k, v in (BODY | changes).items() if v is not None})


@pytest.fixture
def alice(database: Database) -> Registry:
    return registry_of(database, User(owner="alice"))


@pytest.fixture
def bob(database: Database) -> Registry:
    return registry_of(database, User(owner="bob"))


@pytest.fixture
def admin(database: Database) -> Registry:
    return registry_of(database, User(owner="root", admin=True))


def test_the_first_write_is_version_1_and_every_edit_the_next(alice: Registry) -> None:
    first = alice.rubrics.put(REF, rubric())
    assert (first.version, first.changed, first.created) == (1, True, True)
    second = alice.rubrics.put(REF, rubric(description="Another."))
    assert (second.version, second.changed, second.created) == (2, True, False)
    third = alice.rubrics.put(REF, rubric(description="Another.", visibility="public"))
    assert third.version == 3
    texts = [revision.rubric for revision in alice.rubrics.revisions(REF)]
    assert [text["description"] for text in texts] == ["Another.", "Another.", BODY["description"]]
    assert [text["visibility"] for text in texts] == ["public", "private", "private"]
    assert alice.rubrics.show(REF).rubric == texts[0]
    assert alice.rubrics.show(Ref.parse(f"{REF}@1")).rubric == texts[2]


def test_an_equal_body_is_no_edit_however_it_is_written(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric(levels=6))
    again = alice.rubrics.put(REF, rubric(levels=6, scale_max=5.0))
    assert (again.version, again.changed) == (1, False)
    assert again == alice.rubrics.put(REF, Rubric.model_validate(again.rubric))
    assert len(alice.rubrics.revisions(REF)) == 1


def test_an_absent_visibility_keeps_the_current_one(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric(visibility="public"))
    kept = alice.rubrics.put(REF, rubric(visibility=None, description="New."))
    assert kept.rubric["visibility"] == "public"
    assert not alice.rubrics.put(REF, rubric(visibility=None, description="New.")).changed
    new = alice.rubrics.put(Ref(owner="alice", name="other"), rubric(visibility=None))
    assert new.rubric["visibility"] == "private"


def test_what_is_stored_is_what_was_written(alice: Registry) -> None:
    criteria: JsonValue = [
        {"name": "Ünïcode 🙂", "weight": -0.1, "description": "a\tb\nc", "anchors": {"5": "best"}},
        {"name": "x", "weight": 0.30000000000000004},
    ]
    written = rubric(criteria=criteria, levels=6)
    alice.rubrics.put(REF, written)
    held = alice.rubrics.resolve("alice/answer-quality")
    assert held.rubric == written
    assert held.ref == Ref.parse("alice/answer-quality@1")
    assert not held.unversioned


def test_a_resolved_reference_is_pinned_to_its_version(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric())
    held = alice.rubrics.resolve(str(REF))
    alice.rubrics.put(REF, rubric(scale_max=10))
    assert str(held) == f"{REF}@1"
    assert alice.rubrics.resolve(f"{REF}@1") == held
    assert alice.rubrics.resolve(str(REF)).rubric.scale_max == 10
    with pytest.raises(NotFound, match=r"answer-quality@3 that you can read"):
        alice.rubrics.resolve(f"{REF}@3")


def test_an_expected_version_that_does_not_match_writes_nothing(alice: Registry) -> None:
    with pytest.raises(Conflict, match="at version 0, not 1"):
        alice.rubrics.put(REF, rubric(), expected_version=1)
    with pytest.raises(NotFound):
        alice.rubrics.show(REF)
    alice.rubrics.put(REF, rubric(), expected_version=0)
    with pytest.raises(Conflict, match="at version 1, not 0"):
        alice.rubrics.put(REF, rubric(scale_max=10), expected_version=0)
    assert alice.rubrics.put(REF, rubric(scale_max=10), expected_version=1).version == 2


def test_a_write_that_is_sent_twice_lands_once(alice: Registry) -> None:
    first = alice.rubrics.put(REF, rubric(), write_key="k1")
    alice.rubrics.put(REF, rubric(description="Somebody's edit in between."), write_key="k2")
    again = alice.rubrics.put(REF, rubric(), write_key="k1")
    assert again == first
    assert alice.rubrics.show(REF).version == 2
    other = Ref(owner="alice", name="other")
    assert alice.rubrics.put(other, rubric(), write_key="k1").created


def test_nobody_writes_in_anothers_namespace_and_learns_nothing_by_trying(
    alice: Registry, bob: Registry, admin: Registry
) -> None:
    alice.rubrics.put(REF, rubric())
    for other in (bob, admin):
        for ref in (REF, Ref(owner="alice", name="absent")):
            with pytest.raises(Forbidden, match="'alice' is not your namespace"):
                other.rubrics.put(ref, rubric())
    assert alice.rubrics.show(REF).version == 1


def test_a_version_cannot_be_written(alice: Registry) -> None:
    with pytest.raises(InputError, match="leave out @1"):
        alice.rubrics.put(Ref.parse("alice/answer-quality@1"), rubric())


Look = Callable[[Registry, Ref], object]
LOOKS: dict[str, Look] = {
    "resolve": lambda registry, ref: registry.rubrics.resolve(str(ref)),
    "show": lambda registry, ref: registry.rubrics.show(ref),
    "revisions": lambda registry, ref: registry.rubrics.revisions(ref),
    "usage": lambda registry, ref: registry.rubrics.usage(ref),
    "archive": lambda registry, ref: registry.rubrics.archive(ref, archived=True),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_private_rubric_cannot_be_told_from_an_absent_one(
    database: Database, alice: Registry, bob: Registry, look: Look
) -> None:
    alice.rubrics.put(REF, rubric())
    absent = Ref(owner="alice", name="absent")
    seen: dict[str, tuple[str, list[str]]] = {}
    for ref in (REF, absent):
        statements: list[str] = []

        def note(_c: object, _u: object, statement: str, *_: object) -> None:
            statements.append(statement)  # noqa: B023 - removed below, in the same turn

        event.listen(database.engine, "before_cursor_execute", note)
        with pytest.raises(NotFound) as caught:
            look(bob, ref)
        event.remove(database.engine, "before_cursor_execute", note)
        seen[ref.name] = (str(caught.value).replace(str(ref), "REF"), statements)
    assert seen["absent"] == seen[REF.name]
    assert seen["absent"][1]


def test_a_public_rubric_is_read_by_everyone_and_written_by_its_owner(
    alice: Registry, bob: Registry
) -> None:
    alice.rubrics.put(REF, rubric(visibility="public"))
    assert bob.rubrics.resolve(str(REF)).rubric.scale_max == 5
    with pytest.raises(Forbidden):
        bob.rubrics.archive(REF, archived=True)
    alice.rubrics.put(REF, rubric(visibility="private"))
    for text in (str(REF), f"{REF}@1"):  # the present visibility governs all versions
        with pytest.raises(NotFound):
            bob.rubrics.resolve(text)


def test_an_administrator_reads_what_is_private(alice: Registry, admin: Registry) -> None:
    alice.rubrics.put(REF, rubric())
    assert admin.rubrics.resolve(str(REF)).digest == alice.rubrics.resolve(str(REF)).digest


def test_an_archived_rubric_leaves_the_listing_and_nothing_else(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric())
    assert alice.rubrics.archive(REF, archived=True).archived
    assert alice.rubrics.resolve(str(REF)).ref == Ref.parse(f"{REF}@1")
    assert alice.rubrics.put(REF, rubric(scale_max=10)).version == 2
    assert alice.rubrics.show(REF).archived
    assert not alice.rubrics.archive(REF, archived=False).archived


def test_a_write_key_that_was_used_for_another_body_is_refused(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric(), write_key="k1")
    with pytest.raises(Conflict, match="'k1' was used for another body"):
        alice.rubrics.put(REF, rubric(description="Other."), write_key="k1")
    assert alice.rubrics.show(REF).version == 1
