import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from starforge_rewards.errors import Problem
from starforge_rewards.rubrics.weighted import Criterion, Rubric
from starforge_rewards.server.console.draft import CriterionDraft, Draft

WORDS = st.text(
    alphabet=st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=20
)
NAMES = WORDS.map(str.strip).filter(bool)
WEIGHTS = st.floats(min_value=1e-6, max_value=1e6)


@st.composite
def rubrics(draw: st.DrawFn) -> Rubric:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    low = draw(st.integers(-9, 9))
    return Rubric(
        description=draw(WORDS),
        visibility=draw(st.sampled_from(["private", "public"])),
        scale_min=float(low),
        scale_max=float(low + draw(st.integers(1, 9))),
        levels=draw(st.none() | st.integers(2, 9)),
        criteria=tuple(
            Criterion(name=name, weight=draw(WEIGHTS), description=draw(WORDS)) for name in names
        ),
    )


@given(rubric=rubrics())
def test_a_rubric_that_is_not_touched_comes_out_as_it_went_in(rubric: Rubric) -> None:
    assert Draft.of(rubric).check() == rubric


def test_anchors_come_out_as_they_went_in_and_blank_ones_are_none() -> None:
    criterion = Criterion(name="Polite", weight=0.1, anchors={"0": "insults", "1": "kind"})
    rubric = Rubric(scale_min=0.0, scale_max=1.0, criteria=(criterion,))
    draft = Draft.of(rubric)
    assert draft.check() == rubric
    draft.criteria[0].anchors["0"] = " "
    assert draft.body()["criteria"] == [
        {"name": "Polite", "weight": 0.1, "description": "", "anchors": {"1": "kind"}}
    ]


def wrong(**changes: str) -> list[tuple[int | str, ...]]:
    """Where a draft of one good criterion is wrong after these changes."""
    draft = Draft(criteria=[CriterionDraft(name="Right")])
    for key, value in changes.items():
        setattr(draft.criteria[0] if key in ("name", "weight") else draft, key, value)
    found = draft.check()
    assert not isinstance(found, Rubric)
    return [problem.loc for problem in found]


@pytest.mark.parametrize("weight", ["", "abc", "nan", "inf", "1_0", "1e999", "0x1", "1,5"])
def test_what_is_no_number_is_refused_at_its_field(weight: str) -> None:
    assert wrong(weight=weight) == [("criteria", 0, "weight")]


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"name": " "}, ("criteria", 0, "name")),
        ({"weight": "0"}, ("criteria",)),
        ({"scale_min": "1"}, ("scale_min",)),
        ({"scale_max": ""}, ("scale_min",)),
        ({"levels": "1"}, ("levels",)),
        ({"levels": "many"}, ("levels",)),
        ({"description": "a\x00b"}, ("description",)),
    ],
)
def test_every_other_fault_is_at_its_field(
    changes: dict[str, str], at: tuple[int | str, ...]
) -> None:
    assert wrong(**changes) == [at]


@pytest.mark.parametrize("weight", ["3", " 3 ", "3.", "+3", "3e0"])
def test_a_number_may_be_written_in_any_usual_way(weight: str) -> None:
    draft = Draft(criteria=[CriterionDraft("Right", weight)])
    found = draft.check()
    assert isinstance(found, Rubric)
    assert found.criteria[0].weight == 3.0


def test_the_levels_follow_the_scale_and_there_are_none_while_it_is_none() -> None:
    draft = Draft(scale_max="3")
    assert draft.labels() == ["0", "1", "2", "3"]
    draft.levels = "2"
    assert draft.labels() == ["0", "3"]
    draft.scale_max = "x"
    assert draft.labels() == []


def test_an_anchor_of_a_level_that_is_gone_is_faulted_where_it_stands() -> None:
    draft = Draft(scale_max="5", criteria=[CriterionDraft("Right", "1", "", {"5": "all of it"})])
    assert isinstance(draft.check(), Rubric)
    draft.scale_max = "4"
    (problem,) = draft.check()
    assert isinstance(problem, Problem)
    assert problem.loc == ("criteria", 0, "anchors", "5")


def test_the_body_is_what_rest_takes() -> None:
    body: JsonValue = Draft(criteria=[CriterionDraft("Right")]).body()
    assert body == {
        "description": "",
        "visibility": "private",
        "scale_min": 0.0,
        "scale_max": 1.0,
        "criteria": [{"name": "Right", "weight": 1.0, "description": ""}],
    }
