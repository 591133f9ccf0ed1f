from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from starforge_rewards.rubrics.diff import Diff, diff
from starforge_rewards.rubrics.weighted import Rubric

TRUE = {"name": "True", "weight": 3.0, "description": "Each claim is true; it fails where not."}
CITES = {"name": "Cites", "weight": 1.0, "description": "Names a section; it fails where none."}


def rubric(*criteria: dict[str, Any], **fields: JsonValue) -> Rubric:
    return Rubric.model_validate({"criteria": list(criteria) or [TRUE, CITES]} | fields)


def fields(found: Diff) -> list[tuple[str, JsonValue, JsonValue]]:
    return [(change.field, change.before, change.after) for change in found.changes]


def test_a_weight_only_edit_asks_nothing_again() -> None:
    found = diff(rubric(), rubric(TRUE | {"weight": 5}, CITES))
    assert fields(found) == [("criteria[True].weight", 3.0, 5.0)]
    assert found.asked_again == ()


def test_an_edited_criterion_alone_is_asked_again() -> None:
    found = diff(rubric(), rubric(TRUE, CITES | {"description": "Names one."}))
    assert fields(found) == [("criteria[Cites].description", CITES["description"], "Names one.")]
    assert found.asked_again == ("Cites",)


def test_what_only_readers_see_asks_nothing_again() -> None:
    found = diff(rubric(), rubric(description="Support.", visibility="public"))
    assert fields(found) == [
        ("description", "", "Support."),
        ("visibility", "private", "public"),
    ]
    assert found.asked_again == ()


def test_another_scale_asks_everything_again() -> None:
    found = diff(rubric(), rubric(scale_min=0, scale_max=5))
    assert fields(found) == [("scale_max", 1.0, 5.0)]
    assert found.asked_again == ("True", "Cites")


def test_levels_that_come_to_the_same_choices_ask_nothing_again() -> None:
    found = diff(rubric(), rubric(levels=2))
    assert fields(found) == [("levels", None, 2)]
    assert found.asked_again == ()


def test_anchors_are_part_of_the_question() -> None:
    found = diff(rubric(), rubric(TRUE, CITES | {"anchors": {"1": "all of it"}}))
    assert fields(found) == [("criteria[Cites].anchors", {}, {"1": "all of it"})]
    assert found.asked_again == ("Cites",)


def test_another_name_is_another_criterion() -> None:
    found = diff(rubric(), rubric(TRUE, CITES | {"name": "Sources"}))
    whole: dict[str, Any] = CITES | {"anchors": {}}
    assert fields(found) == [
        ("criteria[Cites]", whole, None),
        ("criteria[Sources]", None, whole | {"name": "Sources"}),
    ]
    assert found.asked_again == ("Sources",)


def test_criteria_that_move_are_shown_and_not_asked_again() -> None:
    found = diff(rubric(), rubric(CITES, TRUE))
    assert fields(found) == [("criteria", ["True", "Cites"], ["Cites", "True"])]
    assert found.asked_again == ()


def test_a_criterion_that_is_put_before_others_shows_the_new_order() -> None:
    new = CITES | {"name": "New"}
    assert [field for field, *_ in fields(diff(rubric(), rubric(TRUE, CITES, new)))] == [
        "criteria[New]"
    ]
    assert [field for field, *_ in fields(diff(rubric(), rubric(new, TRUE, CITES)))] == [
        "criteria[New]",
        "criteria",
    ]


def criteria() -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.fixed_dictionaries(
        {
            "name": st.sampled_from(["a", "b", "c", "a.weight", "]"]),
            "weight": st.sampled_from([1.0, 2.0]),
            "description": st.sampled_from(["", "x"]),
            "anchors": st.sampled_from([{}, {"0": "none"}]),
        }
    )
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda c: str(c["name"]))


RUBRICS = st.builds(
    lambda criteria, **more: Rubric.model_validate({"criteria": criteria, "scale_min": 0} | more),
    criteria=criteria(),
    description=st.sampled_from(["", "d"]),
    visibility=st.sampled_from(["private", "public"]),
    scale_max=st.sampled_from([1, 5]),
    levels=st.sampled_from([None, 2, 6]),
)


def applied(before: Rubric, found: Diff) -> dict[str, JsonValue]:
    """`before` with the changes made to it."""
    body: dict[str, Any] = before.model_dump(exclude={"criteria"})
    named: dict[str, Any] = {c.name: c.model_dump() for c in before.criteria}
    places = {f"criteria[{n}].{key}": (n, key) for n, c in named.items() for key in c}
    order: Any = None
    for change in found.changes:
        if change.field in body:
            body[change.field] = change.after
        elif change.field == "criteria":
            order = change.after
        elif change.field in places:
            name, key = places[change.field]
            named[name] = named[name] | {key: change.after}
        elif change.after is None:
            del named[change.field.removeprefix("criteria[")[:-1]]
        else:
            named[change.field.removeprefix("criteria[")[:-1]] = change.after
    return body | {"criteria": [named[name] for name in order or named]}


@given(RUBRICS)
def test_a_rubric_does_not_differ_from_itself(one: Rubric) -> None:
    assert diff(one, one) == Diff(changes=(), asked_again=())


@given(RUBRICS, RUBRICS)
def test_applied_to_the_first_it_makes_the_second(before: Rubric, after: Rubric) -> None:
    made = Rubric.model_validate(applied(before, diff(before, after)))
    assert made == after
    assert [c.name for c in made.criteria] == [c.name for c in after.criteria]
