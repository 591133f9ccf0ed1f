import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge_rewards.conversation import Message, ToolCall
from starforge_rewards.question import NoAnswer, Question, weighed
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Rubric, Score, Unscored, evidence_of, tally
from starforge_rewards.training.reward import Part, combined, without_reasoning
from tests.training.made import RUBRIC, item

HELD = Rubric.model_validate(RUBRIC)


def judged(*masses: tuple[float, ...] | None) -> Score | Unscored:
    """A score whose criteria had these probabilities; None: no answer."""
    evidence = evidence_of(item("r").row.rollout("r"))
    questions = ResolvedRubric.pin(HELD).poser.pose(evidence)
    return tally(HELD, [reply(q, m) for q, m in zip(questions, masses, strict=True)])


def reply(question: Question, masses: tuple[float, ...] | None):  # type: ignore[no-untyped-def]
    if masses is None:
        return NoAnswer.because("timeout", "late")
    return weighed(question, masses, min_mass=0)


SURE, SPLIT = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        ("<think>a</think>\n\nb", "b"),
        ("a</think>b", "b"),
        ("<think>a", ""),
        ("b <think>a", "b "),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("x</think>b<think>c</think>d", "bd"),
        ("<think>a</think>b<think>c", "b"),
        ("<think>a<think>c</think>d</think>e", "e"),
        ("<think></think>", ""),
        ("I think so", "I think so"),
    ],
)
def test_what_a_model_thought_is_not_shown(text: str, shown: str) -> None:
    assert without_reasoning(text) == shown


def test_only_what_the_policy_said_is_cut_in_a_conversation() -> None:
    call = ToolCall(name="look")
    turns = (
        Message(role="assistant", content="<think>a</think>b", tool_calls=(call,)),
        Message(role="tool", content="<think>data</think>"),
    )
    cut = without_reasoning(turns)
    assert cut == (Message(role="assistant", content="b", tool_calls=(call,)), turns[1])


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "\n"]), max_size=12))
def test_no_tag_is_left_of_any_text(pieces: list[str]) -> None:
    cut = without_reasoning("".join(pieces))
    assert isinstance(cut, str)
    assert "<think>" not in cut
    assert "</think>" not in cut
    assert without_reasoning(cut) == cut


def test_a_list_adds_up_weight_times_value() -> None:
    parts = [Part("a", 2, 0.5), Part("b", -1, 0.25), Part("c", 0, 9)]
    reward = combined(parts)
    assert reward.value == 0.75
    assert reward.verifiers == {"a": 0.5, "b": 0.25, "c": 9}


def test_one_failed_verifier_that_counts_leaves_no_number() -> None:
    reward = combined([Part("a", 2, 0.5), Part("b", 0.1, None, "plugin_failed", "it raised")])
    assert (reward.value, reward.cause, reward.detail) == (None, "plugin_failed", "it raised")
    assert not reward.valid
    assert reward.verifiers == {"a": 0.5}


def test_a_failed_verifier_of_weight_zero_is_only_not_reported() -> None:
    reward = combined([Part("a", 2, 0.5), Part("b", 0, None, "plugin_failed")])
    assert (reward.value, reward.cause, reward.verifiers) == (1.0, None, {"a": 0.5})


def test_a_sum_that_is_no_finite_number_is_no_reward() -> None:
    reward = combined([Part("a", 1e308, 10.0), Part("b", 1, 1.0)])
    assert (reward.value, reward.cause) == (None, "off_scale")


def test_criteria_of_two_rubrics_do_not_mix() -> None:
    one, other = judged(SURE, SPLIT), judged(SPLIT, SPLIT)
    parts = [
        Part("first", 1, 1.0, score=one, rubric=HELD, measure="normalized"),
        Part("second", 1, 0.5, score=other, rubric=HELD, measure="normalized"),
    ]
    reward = combined(parts)
    assert reward.criteria == {
        "Right": 5.0,
        "Short": 2.5,
        "second#Right": 2.5,
        "second#Short": 2.5,
    }
    assert isinstance(one, Score)
    assert reward.total == one.total
    assert set(reward.origins.values()) == {"asked"}


def test_uncertainty_is_the_spread_of_the_judges_own_probabilities() -> None:
    def spread(*masses: tuple[float, ...]) -> float | None:
        part = Part("r", 1, 1.0, score=judged(*masses), rubric=HELD, measure="total")
        return combined([part]).uncertainty

    assert spread(SURE, SURE) == 0
    # weights 3 and 1 of 4, a spread of 2.5 each
    assert spread(SPLIT, SURE) == pytest.approx(2.5 * 3 / 4)
    assert spread(SPLIT, SPLIT) == pytest.approx(2.5 * math.hypot(3, 1) / 4)


def test_what_was_answered_is_shown_beside_a_reward_without_a_number() -> None:
    score = judged(SURE, None)
    assert isinstance(score, Unscored)
    part = Part("r", 1, None, score.cause, score.detail, score, HELD)
    reward = combined([part])
    assert (reward.value, reward.total, reward.normalized) == (None, None, None)
    assert (reward.cause, reward.criteria) == ("timeout", {"Right": 5.0})
