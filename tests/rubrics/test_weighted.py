import itertools
import json
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from starforge_rewards.conversation import Message, Rollout
from starforge_rewards.errors import InputError
from starforge_rewards.question import Answer, NoAnswer, Reply, weighed
from starforge_rewards.rubrics.weighted import (
    MAX_LEVELS,
    Criterion,
    Poser,
    Rubric,
    Score,
    Unscored,
    choices_of,
    evidence_of,
    levels_of,
    lowest,
    tally,
    tally_bulk,
)

SUPPORT: dict[str, JsonValue] = {
    "description": "Scoring customer-support answers.",
    "visibility": "private",
    "scale_min": 0,
    "scale_max": 5,
    "criteria": [
        {"name": "Factually correct", "weight": 3.0, "description": "Every claim is true."},
        {"name": "Answers the question", "weight": 2.0, "description": "The actual problem."},
        {"name": "Cites the handbook", "weight": 1.0, "description": "A human could check."},
    ],
}


def rubric(**changed: object) -> Rubric:
    return Rubric.model_validate(SUPPORT | changed)


def weighing(*weights: float, low: float = 0.0, high: float = 1.0) -> Rubric:
    criteria = tuple(Criterion(name=f"c{i}", weight=w) for i, w in enumerate(weights))
    return Rubric(scale_min=low, scale_max=high, criteria=criteria)


def said(*values: float | None) -> list[Reply]:
    """One reply for each value; None or NaN where the judge could not answer."""
    return [
        NoAnswer(cause="timeout", detail="slow")
        if value is None or math.isnan(value)
        else Answer(label=f"{value:g}", value=value)
        for value in values
    ]


def scored(result: Score | Unscored) -> Score:
    assert isinstance(result, Score)
    return result


def unscored(result: Score | Unscored) -> Unscored:
    assert isinstance(result, Unscored)
    return result


# --- what may be written ---


def test_a_rubric_as_its_user_wrote_it_is_accepted() -> None:
    assert [c.weight for c in rubric().criteria] == [3.0, 2.0, 1.0]
    assert (rubric().scale_min, rubric().scale_max, rubric().levels) == (0.0, 5.0, None)


def test_a_rubric_without_a_scale_is_on_zero_to_one_and_private() -> None:
    small = Rubric.model_validate({"criteria": [{"name": " A ", "weight": 1}]})
    assert (small.scale_min, small.scale_max, small.visibility) == (0.0, 1.0, "private")
    assert small.criteria[0].name == "A"


def criteria(**changed: object) -> dict[str, object]:
    """Two criteria of which the second is changed."""
    return {"criteria": [{"name": "A", "weight": 1}, {"name": "B", "weight": 1} | changed]}


NUMBERS = [math.nan, math.inf, -math.inf, True, False, "1", "1.5", None, [1], 10**400]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        *((criteria(weight=bad), "criteria[1].weight") for bad in NUMBERS),
        *(({"scale_min": bad}, "scale_min") for bad in NUMBERS),
        *(({"scale_max": bad}, "scale_max") for bad in NUMBERS),
        ({"scale_min": 5, "scale_max": 5}, "scale_min"),
        ({"scale_min": 6}, "scale_min"),
        ({"scale_min": -1e308, "scale_max": 1e308}, "scale_max"),
        ({"scale_max": 1e308}, "scale_max"),
        ({"scale_min": 1e9, "scale_max": 1e9 + 1, "levels": 5}, "levels"),
        ({"scale_min": 1e9, "scale_max": 1e9 + 0.5}, "scale_max"),
        ({"levels": 1}, "levels"),
        ({"levels": 53}, "levels"),
        ({"levels": True}, "levels"),
        ({"levels": 2.0}, "levels"),
        ({"levels": "2"}, "levels"),
        ({"visibility": "secret"}, "visibility"),
        ({"description": 5}, "description"),
        ({"description": "\ud800"}, "description"),
        ({"kind": "scenario"}, "kind"),
        ({"colour": "red"}, "colour"),
        ({"criteria": []}, "criteria"),
        ({"criteria": None}, "criteria"),
        ({"criteria": {"A": 1}}, "criteria"),
        ({"criteria": [{"name": "A", "weight": 0}, {"name": "B", "weight": -0.0}]}, "criteria"),
        ({"criteria": [{"name": "A", "weight": -1}, {"name": "B", "weight": 0}]}, "criteria"),
        ({"criteria": [{"name": n, "weight": 1e308} for n in "AB"]}, "criteria"),
        ({"criteria": [{"name": "A", "weight": 5e-324}, {"name": "B", "weight": -1}]}, "criteria"),
        ({"criteria": [{"name": "A", "weight": 5e-324}]}, "criteria"),  # 0.4 of it rounds to zero
        (criteria(name=""), "criteria[1].name"),
        (criteria(name=" \t\n\u2003"), "criteria[1].name"),
        (criteria(name=5), "criteria[1].name"),
        (criteria(name="A"), "criteria[1].name"),
        (criteria(name="\n A  "), "criteria[1].name"),
        (criteria(name="a\udfff"), "criteria[1].name"),
        (criteria(description=None), "criteria[1].description"),
        (criteria(wieght=1), "criteria[1].wieght"),
        (criteria(anchors=["no"]), "criteria[1].anchors"),
        (criteria(anchors={"0": 5}), "criteria[1].anchors.0"),
        (criteria(anchors={"7": "x"}), "criteria[1].anchors.7"),
        (criteria(anchors={"0.5": "x"}), "criteria[1].anchors.0.5"),
        (criteria(anchors={True: "x"}), "criteria[1].anchors[1]"),
        ({"criteria": [{"weight": 1}]}, "criteria[0].name"),
        ({"criteria": [{"name": "A"}]}, "criteria[0].weight"),
    ],
)
def test_what_no_judge_could_score_is_refused_with_the_path_of_the_field(
    changed: dict[str, object], field: str
) -> None:
    data = SUPPORT | changed
    with pytest.raises(ValidationError) as error:
        Rubric.model_validate(data)
    assert str(InputError.of(error.value, data=data)).startswith(f"{field}: ")


@pytest.mark.parametrize("bound", ["scale_min", "scale_max"])
def test_one_bound_alone_is_refused(bound: str) -> None:
    data = {"criteria": [{"name": "A", "weight": 1}], bound: 0.5}
    with pytest.raises(ValidationError) as error:
        Rubric.model_validate(data)
    assert str(InputError.of(error.value)).startswith(f"{bound}: give scale_min and scale_max")


def test_a_rubric_without_criteria_is_refused() -> None:
    with pytest.raises(ValidationError) as error:
        Rubric.model_validate({"description": "x"})
    assert InputError.of(error.value).field == "criteria"


def test_a_refusal_says_what_the_levels_are() -> None:
    with pytest.raises(ValidationError, match="'7' is no level: the levels are 0, 1, 2, 3, 4, 5"):
        rubric(**criteria(anchors={"7": "x"}))


def test_an_anchor_may_be_written_as_a_number() -> None:
    anchored = rubric(**criteria(anchors={0: "no", 5: "yes"}))
    assert anchored.criteria[1].anchors == {"0": "no", "5": "yes"}


SCALES = [
    (0.0, 1.0),
    (0.0, 5.0),
    (-2.0, 7.0),
    (0.1, 0.3),
    (-0.7, 0.1),
    (-0.1, 0.3),
    (1.0, 10.0),
    (99_990.0, 99_999.0),
    (-1e300, 1e300),
    (0.0, 3e306),
    (1e-300, 3e-300),
    (0.0, 1e-310),
]
WEIGHTS = st.sampled_from([0.0, 1.0, -1.0, 1e-150, 1e150, -1e150]) | st.integers(-30, 30).map(
    lambda sevenths: sevenths / 7
)
PRINTED = st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\t\n\r\x85")
TEXT = st.text(PRINTED, max_size=12)


@st.composite
def rubrics(draw: st.DrawFn) -> Rubric:
    low, high = draw(st.sampled_from(SCALES))
    names = draw(
        st.lists(TEXT.filter(str.strip), min_size=1, max_size=4, unique_by=lambda n: n.strip())
    )
    weights = [draw(WEIGHTS) for _ in names]
    if sum(weight for weight in weights if weight > 0) < sys.float_info.min:
        weights[0] = 0.3
    plain = Rubric(
        description=draw(TEXT),
        visibility=draw(st.sampled_from(["private", "public"])),
        scale_min=low,
        scale_max=high,
        levels=draw(st.none() | st.integers(2, 10)),
        criteria=tuple(
            Criterion(name=name, weight=weight, description=draw(TEXT))
            for name, weight in zip(names, weights, strict=True)
        ),
    )
    labels = [choice.label for choice in levels_of(plain)]
    anchors = draw(st.dictionaries(st.sampled_from(labels), TEXT, max_size=2))
    first = plain.criteria[0].model_copy(update={"anchors": anchors})
    return plain.model_copy(update={"criteria": (first, *plain.criteria[1:])})


@settings(deadline=None, max_examples=40)
@given(rubrics())
def test_a_rubric_is_the_same_after_a_trip_through_json_and_yaml(written: Rubric) -> None:
    assert Rubric.model_validate_json(written.model_dump_json()) == written
    body = written.model_dump(mode="json")
    assert Rubric.model_validate(json.loads(json.dumps(body))) == written
    assert Rubric.model_validate(yaml.safe_load(yaml.safe_dump(body))) == written


def test_a_dump_has_the_keys_that_people_write() -> None:
    assert list(rubric().model_dump()) == [
        "description",
        "visibility",
        "scale_min",
        "scale_max",
        "levels",
        "criteria",
    ]


# --- levels and questions ---


@pytest.mark.parametrize(
    ("low", "high", "levels", "labels"),
    [
        (0, 5, None, "0 1 2 3 4 5"),
        (0, 1, None, "0 1"),
        (0, 9, None, "0 1 2 3 4 5 6 7 8 9"),
        (1, 10, None, "1 2 3 4 5 6 7 8 9 10"),
        (-2, 7, None, "-2 -1 0 1 2 3 4 5 6 7"),
        (0, 1, 2, "0 1"),
        (0, 1, 3, "0 0.5 1"),
        (0, 5, 11, "0 0.5 1 1.5 2 2.5 3 3.5 4 4.5 5"),
        (0, 90, None, "0 10 20 30 40 50 60 70 80 90"),
        (0, 10, 11, "0 1 2 3 4 5 6 7 8 9 10"),
        (-0.0, 1, None, "0 1"),
        (-0.3, 1.2, 6, "-0.3 0 0.3 0.6 0.9 1.2"),
        (-0.1, 0.2, 4, "-0.1 0 0.1 0.2"),
        (-0.7, 0.7, 15, "-0.7 -0.6 -0.5 -0.4 -0.3 -0.2 -0.1 0 0.1 0.2 0.3 0.4 0.5 0.6 0.7"),
    ],
)
def test_a_scale_is_asked_in_levels_that_a_person_would_write(
    low: float, high: float, levels: int | None, labels: str
) -> None:
    choices = levels_of(rubric(scale_min=low, scale_max=high, levels=levels))
    assert " ".join(choice.label for choice in choices) == labels
    assert [c.value for c in choices] == pytest.approx([float(c.label) for c in choices], abs=1e-12)


def test_a_wide_or_fractional_scale_has_ten_evenly_spaced_levels() -> None:
    for low, high in ((0.0, 100.0), (0.0, 10.0), (0.5, 1.5), (-1.5, 3.0)):
        values = [c.value or 0.0 for c in levels_of(rubric(scale_min=low, scale_max=high))]
        assert len(values) == 10
        assert (values[0], values[-1]) == (low, high)
        steps = [b - a for a, b in itertools.pairwise(values)]
        assert steps == pytest.approx([(high - low) / 9] * 9)


@settings(deadline=None)
@given(st.sampled_from(SCALES), st.none() | st.integers(2, MAX_LEVELS))
def test_levels_rise_from_one_end_of_the_scale_to_the_other(
    scale: tuple[float, float], levels: int | None
) -> None:
    low, high = scale
    finer = weighing(1, low=low, high=high).model_copy(update={"levels": levels})
    values = [choice.value for choice in levels_of(finer)]
    assert (values[0], values[-1]) == (low, high)
    assert all(a is not None and b is not None and a < b for a, b in itertools.pairwise(values))


def test_the_ends_of_the_scale_mean_something_without_anchors() -> None:
    meanings = [c.meaning for c in choices_of(rubric(), rubric().criteria[0])]
    assert meanings == ["not met at all", "", "", "", "", "fully met"]


def test_anchors_replace_the_meanings_of_the_ends() -> None:
    anchored = rubric(**criteria(anchors={"1": "one {claim} wrong", "5": ""}))
    meanings = [c.meaning for c in choices_of(anchored, anchored.criteria[1])]
    assert meanings == ["", "one {claim} wrong", "", "", "", ""]


ROLLOUT = Rollout(
    id="7",
    prompt="How do I reset it?",
    response="Hold the button.",
    reference="Hold it for ten seconds.",
    context="Handbook, section 3.",
    rubric="alice/secret-rubric",
    metadata={"expect": "refuse"},
)


def test_the_judge_sees_prompt_response_reference_and_context_in_this_order_and_no_more() -> None:
    parts = [(part.name, part.content) for part in evidence_of(ROLLOUT).parts]
    assert parts == [
        ("task_prompt", "How do I reset it?"),
        ("response", "Hold the button."),
        ("reference", "Hold it for ten seconds."),
        ("context", "Handbook, section 3."),
    ]
    for hidden in ("secret-rubric", "refuse", '"7"'):
        assert hidden not in evidence_of(ROLLOUT).model_dump_json()


def test_what_a_rollout_does_not_have_is_not_shown() -> None:
    turns = (Message(role="user", content="Hi"),)
    parts = evidence_of(Rollout(prompt=turns, response="Hello")).parts
    assert [part.name for part in parts] == ["task_prompt", "response"]
    assert parts[0].content == turns


def test_each_criterion_is_one_question_in_the_rubrics_order() -> None:
    asked = Poser(rubric(), "alice/support@2").pose(evidence_of(ROLLOUT), repeat=1)
    assert [question.source for question in asked] == [
        "alice/support@2#Factually correct",
        "alice/support@2#Answers the question",
        "alice/support@2#Cites the handbook",
    ]
    assert asked[0].instruction == "Factually correct\nEvery claim is true."
    assert {question.repeat for question in asked} == {1}
    assert {question.evidence for question in asked} == {evidence_of(ROLLOUT)}
    assert asked[2].choices == choices_of(rubric(), rubric().criteria[2])


def test_a_criterion_without_a_description_is_asked_by_its_name() -> None:
    assert Poser(weighing(1), "x").pose(evidence_of(ROLLOUT))[0].instruction == "c0"


def test_an_edited_weight_asks_nothing_anew_and_an_edited_text_asks_that_criterion() -> None:
    def keys(edited: Rubric) -> list[bytes]:
        return [question.key for question in Poser(edited, "x").pose(evidence_of(ROLLOUT))]

    first, *rest = rubric().criteria
    heavier = first.model_copy(update={"weight": 9.0})
    assert keys(rubric(criteria=(heavier, *rest))) == keys(rubric())
    reworded = keys(rubric(criteria=(first.model_copy(update={"description": "Else."}), *rest)))
    same = [a == b for a, b in zip(reworded, keys(rubric()), strict=True)]
    assert same == [False, True, True]


# --- tally ---


def test_weights_3_2_1_and_scores_5_4_0_on_0_to_5_give_23_sixths() -> None:
    score = scored(tally(rubric(), said(5, 4, 0)))
    assert score.total == pytest.approx(23 / 6, abs=1e-15)
    assert score.normalized == score.raw == pytest.approx(23 / 30, abs=1e-15)
    assert [c.value for c in score.criteria.values()] == [5, 4, 0]
    assert [c.normalized for c in score.criteria.values()] == [1, 0.8, 0]
    assert list(score.criteria) == [c.name for c in rubric().criteria]
    assert (score.unanswered, score.decided) == ({}, "judge")


def test_a_scale_that_does_not_begin_at_zero_is_moved_and_not_stretched() -> None:
    odd = weighing(3, 2, 1, low=-2, high=7)
    assert scored(tally(odd, said(-2, -2, -2))).total == -2
    assert scored(tally(odd, said(7, 7, 7))).total == 7
    assert scored(tally(odd, said(1, 4, 7))).total == pytest.approx((3 * 1 + 2 * 4 + 7) / 6)


def test_a_penalty_takes_away_and_only_raw_may_leave_the_scale() -> None:
    harsh = weighing(1, -2, low=0, high=5)
    low = scored(tally(harsh, said(5, 5)))
    assert (low.raw, low.normalized, low.total) == (-1.0, 0.0, 0.0)
    clean = scored(tally(harsh, said(5, 0)))
    assert (clean.raw, clean.normalized, clean.total) == (1.0, 1.0, 5.0)
    half = scored(tally(harsh, said(5, 1.25)))
    assert (half.raw, half.total) == (0.5, 2.5)


def test_a_penalty_on_a_scale_below_zero_is_counted_by_how_much_it_is_so() -> None:
    odd = weighing(2, -1, low=-2, high=7)
    assert scored(tally(odd, said(7, -2))).total == 7
    assert scored(tally(odd, said(7, 7))).raw == 0.5


def test_a_weight_of_zero_is_reported_and_not_counted() -> None:
    score = scored(tally(weighing(1, 0), said(0.25, 1)))
    assert score.total == 0.25
    assert score.criteria["c1"].value == 1


def test_a_judge_failure_means_no_total_and_is_never_a_zero() -> None:
    result = unscored(tally(rubric(), said(5, None, 0)))
    assert result.cause == "timeout"
    assert result.missing == ("Answers the question",)
    assert result.detail == "Answers the question: slow"
    assert {name: c.value for name, c in result.answered.items()} == {
        "Factually correct": 5,
        "Cites the handbook": 0,
    }
    assert not {"total", "normalized", "raw"} & set(result.model_dump())


def test_an_unanswered_penalty_means_no_total_either() -> None:
    assert unscored(tally(weighing(1, -1), said(1, None))).missing == ("c1",)


def test_the_first_missing_criterion_gives_the_cause_and_all_are_named() -> None:
    replies: list[Reply] = [
        NoAnswer(cause="refused"),  # of weight zero, and so not missing
        Answer(label="1", value=1.0),
        NoAnswer(cause="truncated"),
        NoAnswer(cause="timeout"),
    ]
    result = unscored(tally(weighing(0, 1, 1, 1), replies))
    assert (result.cause, result.missing) == ("truncated", ("c2", "c3"))


def test_an_unanswered_criterion_of_weight_zero_is_named_beside_the_total() -> None:
    score = scored(tally(weighing(1, 0), said(1, None)))
    assert (score.total, score.unanswered) == (1, {"c1": "timeout"})
    assert list(score.criteria) == ["c0"]


@pytest.mark.parametrize("value", [-0.01, 5.01, 1e300, math.nan, math.inf, -math.inf, None])
def test_a_value_outside_the_scale_is_a_failed_judgement_and_is_never_clamped(
    value: float | None,
) -> None:
    replies = [Answer(label="x", value=value), *said(4, 0)]
    result = unscored(tally(rubric(), replies))
    assert (result.cause, result.missing) == ("off_scale", ("Factually correct",))


@settings(deadline=None)
@given(st.sampled_from(SCALES), st.lists(st.floats(0, 1), min_size=10, max_size=10))
@example(scale=(99_990.0, 99_999.0), raw=[0.0] * 8 + [1e-17, 1.0])
@example(scale=(99_990.0, 99_999.0), raw=[1e-7] * 9 + [1.0])
def test_an_expectation_is_on_the_scale_whatever_its_rounding(
    scale: tuple[float, float], raw: list[float]
) -> None:
    wide = weighing(1, low=scale[0], high=scale[1])
    (question,) = Poser(wide, "x").pose(evidence_of(ROLLOUT))
    some = raw[: len(question.choices)]
    if sum(some) > 0:
        masses = tuple(mass / sum(some) for mass in some)
        scored(tally(wide, [weighed(question, masses, min_mass=0.0)]))


def test_an_end_of_the_scale_that_was_rounded_past_is_that_end() -> None:
    far = weighing(1, low=99_990, high=99_999)
    past = 99_999.0 + 3 * math.ulp(99_999.0)
    assert scored(tally(far, said(past))).criteria["c0"].value == 99_999.0


@pytest.mark.parametrize("count", [0, 2, 4])
def test_a_tally_needs_one_reply_for_each_criterion(count: int) -> None:
    with pytest.raises(ValueError, match="zip"):
        tally(rubric(), said(*[1.0] * count))


def test_an_answer_keeps_all_that_the_judge_said() -> None:
    reply = Answer(
        label="1", value=0.75, probabilities=(0.25, 0.75), mass=0.9, reason="r", origin="cached"
    )
    got = scored(tally(weighing(1), [reply])).criteria["c0"]
    assert got.model_dump() == reply.model_dump(exclude={"tokens"}) | {"normalized": 0.75}


def test_the_lowest_score_is_the_scales_minimum_and_says_who_decided() -> None:
    score = lowest(weighing(1, low=-2, high=7))
    assert (score.total, score.normalized, score.raw) == (-2, 0, 0)
    assert (score.criteria, score.decided) == ({}, "empty_response")


# --- one by one and in bulk ---


@st.composite
def tables(draw: st.DrawFn) -> tuple[Rubric, list[list[float]]]:
    """A rubric, and rows of values on its scale with a NaN here and there."""
    standard = draw(rubrics())
    low, high = standard.scale_min, standard.scale_max
    cell = st.one_of(
        st.sampled_from([low, high, math.nan]),
        st.floats(0, 1).map(lambda share: min(low + (high - low) * share, high)),
    )
    row = st.lists(cell, min_size=len(standard.criteria), max_size=len(standard.criteria))
    return standard, draw(st.lists(row, min_size=0, max_size=5))


ODD = weighing(3, -2, 0, 0.1, low=-2, high=7)


@settings(deadline=None, max_examples=150)
@given(tables(), st.integers(1, 4))
@example((ODD, [[7, 0.3, math.nan, 1], [math.nan, 7, 7, 7], [-1.9, -2, 1, 6.7]]), 2)
@example((weighing(1e308, 1e307, -1e307), [[0.3, 0.1, 0.7]]), 1)
@example((weighing(3e-308, 1e-320, -1e-310), [[0.3, 0.1, 0.7]]), 1)
@example((weighing(1, low=-0.1, high=0.3), [[0.3]]), 1)  # min + (max - min) is above max
def test_one_by_one_and_in_bulk_agree_bit_for_bit(
    table: tuple[Rubric, list[list[float]]], block: int
) -> None:
    standard, rows = table
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(standard.criteria))
    bulk = tally_bulk(standard, values, block=block)
    assert {column.shape for column in bulk} == {(len(rows),)}
    for index, row in enumerate(rows):
        found = [float(column[index]).hex() for column in bulk]
        match tally(standard, said(*row)):
            case Score(total=total, normalized=normalized, raw=raw):
                assert found == [total.hex(), normalized.hex(), raw.hex()]
            case Unscored():
                assert found == ["nan"] * 3


@settings(deadline=None)
@given(tables())
@example((weighing(1, low=-0.1, high=0.3), [[0.3]]))
def test_a_total_is_on_the_scale_and_close_to_the_exact_one(
    table: tuple[Rubric, list[list[float]]],
) -> None:
    standard, rows = table
    low, high = Fraction(standard.scale_min), Fraction(standard.scale_max)
    weights = [Fraction(criterion.weight) for criterion in standard.criteria]
    positive = sum((weight for weight in weights if weight > 0), Fraction(0))
    cancelled = sum((abs(weight) for weight in weights), Fraction(0)) / positive
    for row in rows:
        score = tally(standard, said(*row))
        if isinstance(score, Unscored):
            continue
        assert standard.scale_min <= score.total <= standard.scale_max
        assert 0 <= score.normalized <= 1
        assert math.isfinite(score.raw)
        counted = [(w, Fraction(v)) for w, v in zip(weights, row, strict=True) if w]
        gained = sum((w * (v - low) / (high - low) for w, v in counted), Fraction(0))
        exact = low + (high - low) * min(max(gained / positive, Fraction(0)), Fraction(1))
        rounding = max(abs(low), abs(high)) * cancelled / 10**12
        assert abs(Fraction(score.total) - exact) <= rounding


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weights", [(1,), (1, 2)])
def test_a_bulk_tally_leaves_the_callers_values_alone(
    order: str, weights: tuple[float, ...]
) -> None:
    standard = weighing(*weights, low=0, high=4)
    values = np.full((3, len(weights)), 2.0, order="F" if order == "F" else "C")
    assert tally_bulk(standard, values).total.tolist() == [2.0] * 3
    assert values.tolist() == [[2.0] * len(weights)] * 3


def test_a_bulk_tally_of_nothing_is_nothing() -> None:
    assert tally_bulk(rubric(), np.empty((0, 3))).total.shape == (0,)


def test_single_precision_is_widened_before_it_is_added() -> None:
    values = np.array([[0.1, 0.7]], dtype=np.float32)
    wide = values.astype(np.float64)
    narrow = tally_bulk(weighing(1, 1), values)  # type: ignore[arg-type]
    assert narrow.total.tolist() == tally_bulk(weighing(1, 1), wide).total.tolist()


@pytest.mark.parametrize("bad", [-0.1, 5.1, math.inf, -math.inf])
def test_a_bulk_value_outside_the_scale_is_refused_with_its_rows(bad: float) -> None:
    values = np.full((5, 3), np.nan)
    values[3, 1] = bad
    with pytest.raises(ValueError, match="a value of rows 2-4 is outside the scale"):
        tally_bulk(rubric(), values, block=2)


def test_a_bulk_table_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="2 columns for 3 criteria"):
        tally_bulk(rubric(), np.zeros((4, 2)))
