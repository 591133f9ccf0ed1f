import itertools
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import JsonValue

from starforge_rewards import documents
from starforge_rewards.rubrics.lint import Advice, lint
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.settings import shipped

TRUE_TEXT = "Compare each claim with the reference. It fails when one contradicts it."
TRUE: dict[str, Any] = {"name": "Factually correct", "weight": 3, "description": TRUE_TEXT}
CITES: dict[str, Any] = {
    "name": "Cites the handbook",
    "weight": 2,
    "description": "Look for a section number. It fails when there is none, or another one.",
}


def rubric(*criteria: dict[str, Any], **fields: JsonValue) -> Rubric:
    body = {"description": "Support answers.", "criteria": list(criteria) or [TRUE, CITES]}
    return Rubric.model_validate(body | fields)


def said(advice: list[Advice]) -> list[tuple[str, str]]:
    return [(one.rule, one.field) for one in advice]


def described(text: str, **more: Any) -> list[tuple[str, str]]:
    return said(lint(rubric(TRUE | {"description": text} | more)))


def test_a_standard_that_a_reader_can_apply_needs_no_advice() -> None:
    assert lint(rubric()) == []


@pytest.mark.parametrize(
    "path", sorted(shipped("configs", "rubrics").rglob("*.yaml")), ids=lambda path: path.stem
)
def test_the_shipped_rubrics_need_no_advice(path: Any) -> None:
    assert lint(documents.load(path, Rubric)) == []


def test_each_advice_says_what_to_do() -> None:
    (advice,) = lint(rubric(TRUE, CITES | {"weight": 0}))
    assert advice == Advice(
        rule="idle_weight",
        field="criteria[1].weight",
        said="it is asked and reported, and never counts: give it a weight if it should",
    )


def test_more_than_seven_criteria_are_too_many() -> None:
    names = ["Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta", "Eta", "Theta"]
    many = [
        TRUE | {"name": name, "description": f"Find {name} and {name}s, not the {i}th."}
        for i, name in enumerate(names)
    ]
    assert lint(rubric(*many[:7])) == []
    assert said(lint(rubric(*many))) == [("too_many_criteria", "criteria")]


def test_a_rubric_and_its_criteria_need_descriptions() -> None:
    bare = rubric(TRUE, {"name": "Cites", "weight": 1}, description="  ")
    assert said(lint(bare)) == [
        ("no_description", "description"),
        ("no_description", "criteria[1].description"),
    ]


@pytest.mark.parametrize("label", ["Accuracy", "Is it clear?", "factually correct.", "准确性"])
def test_a_label_is_no_description(label: str) -> None:
    assert described(label) == [("label", "criteria[0].description")]


def test_a_name_said_again_is_no_description() -> None:
    long = "Every claim is true, not invented"
    assert described(f"{long}.", name=long) == [("label", "criteria[0].description")]


@pytest.mark.parametrize(
    "text",
    [
        "Every claim about the product is true and current.",
        "Points to the section a human could check.",
    ],
)
def test_a_description_of_success_alone_is_half_a_description(text: str) -> None:
    assert described(text) == [("success_only", "criteria[0].description")]


@pytest.mark.parametrize(
    "text",
    [
        "Addresses the actual problem of the customer, not an adjacent one.",
        "All steps are there; a missing step is a 0.",
        "The claims agree with the reference, or it fails.",
        "The answer doesn\u2019t promise what the handbook excludes.",
        "Jede Angabe zum Produkt stimmt und ist aktuell.",
        "每个关于产品的说法都是真实且最新的",
    ],
)
def test_a_description_that_says_when_it_fails_or_is_not_english_is_left_alone(text: str) -> None:
    assert described(text) == []


def test_the_lowest_anchor_describes_the_failure() -> None:
    text = "Points to the section a human could check."
    assert described(text, anchors={"0": "no section"}) == []
    assert described(text, anchors={"1": "the section"}) != []


def test_a_penalty_describes_its_failure() -> None:
    penalty = CITES | {"weight": -1, "description": "The response promises the user a refund."}
    assert lint(rubric(TRUE, penalty)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Clarity", "Readability"),
        ("Factually correct", "Accuracy"),
        ("Cites the handbook", "Citing handbooks"),
        ("Brevity", "The answer is concise"),
    ],
)
def test_names_that_mean_the_same_are_near_duplicates(one: str, other: str) -> None:
    found = lint(rubric(TRUE | {"name": one}, CITES | {"name": other, "weight": 3}))
    assert said(found) == [("near_duplicate", "criteria[1]")]
    assert repr(one) in found[0].said


@pytest.mark.parametrize(
    "again",
    [
        "Compare each claim with the reference. It fails when one contradicts it.",
        "Compare every claim with the references; it fails when one contradicted it.",
        "Compare each claim with the reference. It fails when any one contradicts it.",
    ],
)
def test_descriptions_that_say_the_same_are_near_duplicates(again: str) -> None:
    one = TRUE | {"description": TRUE_TEXT.replace("each", "every")}
    assert said(lint(rubric(one, TRUE | {"name": "Grounded", "description": again}))) == [
        ("near_duplicate", "criteria[1]")
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Answers in under 10 words, not more.", "Answers in under 20 words, not more."),
        ("The user is told to see a doctor.", "The user is not told to see a doctor."),
        ("Names the capital of France, not another.", "Names the capital of Spain, not another."),
    ],
)
def test_what_differs_in_a_number_a_denial_or_its_subject_is_no_duplicate(
    one: str, other: str
) -> None:
    found = lint(
        rubric(TRUE | {"description": one}, TRUE | {"name": "Other", "description": other})
    )
    assert "near_duplicate" not in [rule for rule, _ in said(found)]


def test_names_that_share_a_word_are_no_duplicates() -> None:
    assert lint(rubric(TRUE, CITES | {"name": "Correct section"})) == []


# --- weights ---


def idle(*weights: float, **fields: JsonValue) -> list[int]:
    criteria = [
        TRUE | {"name": f"Criterion {i}", "weight": weight, "description": f"Not {i} but {i}th."}
        for i, weight in enumerate(weights)
    ]
    found = lint(rubric(*criteria, **fields))
    return [
        int(one.field[len("criteria[") :].split("]")[0]) for one in found if "weight" in one.rule
    ]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((3.0, 0.0), [1]),
        ((300.0, 2.0), [1]),  # five steps of 2 are less than one of 300
        ((300.0, -2.0), [1]),
        ((3.0, 0.5), []),  # breaks ties, by much
        ((2.0, 1.0), []),
        ((300.0, 299.0, 2.0), []),  # the others may differ by one step of 1
        ((300.0, 10.0, 2.0), []),  # by one step of 10: a tie
        ((300.0, 10.1, 2.0), []),
        ((300.0, 15.0, 2.0), [2]),
        ((0.3, 0.1, 0.001), [2]),
        ((0.01,), []),
        ((3.0, 0.01, 0.01), []),  # each decides between answers that the other ties
        ((0.0, 1e-9), [0]),
        ((1e300, 1e-300), [1]),
    ],
)
def test_a_weight_that_breaks_ties_by_a_hair_is_named(
    weights: tuple[float, ...], expected: list[int]
) -> None:
    assert idle(*weights, scale_min=0, scale_max=5) == expected


WEIGHTS = st.lists(st.sampled_from([-1, 0, 1, 2, 100, 150, 300, 301]), min_size=2, max_size=4)


def exact(weights: list[int], levels: tuple[int, ...]) -> int:
    """A total in whole steps, clipped at the bottom as `tally` does."""
    return max(sum(w * level for w, level in zip(weights, levels, strict=True)), 0)


@given(WEIGHTS, st.integers(2, 3))
def test_an_idle_weight_never_changes_an_order_that_the_others_make(
    weights: list[int], levels: int
) -> None:
    assume(any(weight > 0 for weight in weights))
    found = idle(*map(float, weights), levels=levels)
    for at in found:
        without = [0 if i == at else weight for i, weight in enumerate(weights)]
        answers = itertools.product(range(levels), repeat=len(weights))
        totals = [(exact(without, answer), exact(weights, answer)) for answer in answers]
        for (a, with_a), (b, with_b) in itertools.combinations(totals, 2):
            assert a == b or (with_a < with_b if a < b else with_a > with_b)


@given(st.integers(100, 400), st.integers(1, 6), st.integers(2, 52))
def test_of_two_weights_every_idle_one_is_found(large: int, small: int, levels: int) -> None:
    turns = small * (levels - 1) >= large  # full span of the one against one step of the other
    matters = small * 100 >= large + small
    assert bool(idle(float(large), float(small), levels=levels)) == (not turns and not matters)


# --- edits ---


def test_one_criterion_at_a_time_is_edited() -> None:
    old = rubric()
    assert lint(rubric(TRUE | {"name": "True to the reference"}, CITES), old) == []
    assert lint(rubric(TRUE | {"weight": 5}, CITES | {"weight": 5}), old) == []
    assert lint(rubric(TRUE, CITES | {"anchors": {"0": "none"}}), old) == []
    both = rubric(TRUE | {"anchors": {"0": "none"}}, CITES | {"anchors": {"0": "none"}})
    assert said(lint(both, old)) == [("several_changed", "criteria")]
    third = TRUE | {"name": "Third", "description": "Whatever else, not that."}
    assert said(lint(rubric(TRUE | {"anchors": {"0": "none"}}, CITES, third), old)) == [
        ("several_changed", "criteria")
    ]
