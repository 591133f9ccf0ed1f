import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from starforge_rewards.conversation import Content, Message
from starforge_rewards.question import (
    Answer,
    Choice,
    Evidence,
    NoAnswer,
    Part,
    Question,
    Reply,
    Tokens,
    chosen,
    weighed,
)

LEVELS = tuple(Choice(label=str(n), value=float(n)) for n in range(6))
WORDS = (Choice(label="ok"), Choice(label="veto"))


def evidence(prompt: Content = "Why?", response: Content = "Because.") -> Evidence:
    parts = (Part(name="task_prompt", content=prompt), Part(name="response", content=response))
    return Evidence(parts=parts)


def question(**changed: object) -> Question:
    fields: dict[str, object] = {
        "source": "alice/a@1#Correct",
        "evidence": evidence(),
        "instruction": "Correct",
        "choices": LEVELS,
    }
    return Question.model_validate(fields | changed)


def answered(reply: Reply) -> Answer:
    assert isinstance(reply, Answer)
    return reply


@pytest.mark.parametrize("choices", [(), LEVELS[:1], (LEVELS[0], LEVELS[0])])
def test_a_question_without_two_distinct_choices_is_refused(choices: tuple[Choice, ...]) -> None:
    with pytest.raises(ValidationError, match=r"alice/a@1#Correct: .* two distinct choices"):
        question(choices=choices)


def test_who_asks_does_not_change_what_is_asked() -> None:
    assert question(source="bob/b#Other").key == question().key


@pytest.mark.parametrize(
    "changed",
    [
        {"evidence": evidence(response="Because of rain.")},
        {"evidence": evidence(prompt=(Message(role="user", content="Why?"),))},
        {"evidence": Evidence(parts=evidence().parts[::-1])},
        {"evidence": Evidence(parts=evidence().parts[:1])},
        {"instruction": "Correct."},
        {"choices": LEVELS[:5]},
        {"choices": LEVELS[::-1]},
        {"choices": (*LEVELS[:5], Choice(label="5", value=6.0))},
        {"choices": (*LEVELS[:5], Choice(label="5", value=5.0, meaning="fully met"))},
        {"repeat": 1},
    ],
)
def test_whatever_else_changes_is_another_question(changed: dict[str, object]) -> None:
    assert question(**changed).key != question().key


def test_a_copy_does_not_keep_the_key_of_what_it_was_copied_from() -> None:
    first = question()
    assert first.key == question().key  # it is cached now
    assert first.model_copy(update={"repeat": 1}).key == question(repeat=1).key != first.key
    assert first.model_copy().key == first.key


def test_a_key_is_the_same_in_every_process_and_release() -> None:
    # Another value would make every verdict that users have stored unreachable.
    assert question().key.hex().startswith("efbeb80a752ba36a")


def test_rollouts_of_one_prompt_take_one_route() -> None:
    assert evidence(response="a").route == evidence(response="b").route
    assert evidence(response="a").digest != evidence(response="b").digest
    assert evidence(prompt="a").route != evidence(prompt="b").route


def test_evidence_has_one_digest_for_each_content() -> None:
    text = Evidence(parts=(Part(name="a", content="x"), Part(name="b", content="y")))
    other = Evidence(parts=(Part(name="a", content='x"},{"name":"b","content":"y'),))
    assert text.digest != other.digest


def test_tokens_add_up() -> None:
    total = Tokens(prompt=5, cached=2, generated=1) + Tokens(prompt=7, cached=3, generated=10)
    assert total == Tokens(prompt=12, cached=5, generated=11)


def test_the_detail_of_a_failure_is_cut_and_its_cost_kept() -> None:
    reply = NoAnswer.because("refused", "x" * 500, Tokens(prompt=3))
    assert (reply.cause, len(reply.detail), reply.tokens.prompt) == ("refused", 200, 3)
    assert NoAnswer.because("timeout", TimeoutError("slow")).detail == "slow"


def test_a_cause_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValidationError):
        NoAnswer.model_validate({"cause": "bored"})


def test_a_chosen_label_has_the_value_of_its_choice() -> None:
    reply = answered(chosen(question(), "4", reason="r", tokens=Tokens(prompt=1)))
    assert (reply.label, reply.value, reply.reason, reply.tokens.prompt) == ("4", 4.0, "r", 1)
    assert (reply.probabilities, reply.mass, reply.origin) == (None, None, "asked")
    assert answered(chosen(question(choices=WORDS), "veto")).value is None


@pytest.mark.parametrize("label", ["6", "", "4.0", " 4", "04", "٤"])
def test_a_label_that_is_not_one_of_the_choices_is_off_scale_and_not_the_nearest(
    label: str,
) -> None:
    reply = chosen(question(), label, tokens=Tokens(generated=2))
    assert isinstance(reply, NoAnswer)
    assert (reply.cause, reply.tokens.generated) == ("off_scale", 2)
    assert repr(label) in reply.detail


def test_weighed_probabilities_give_their_expectation() -> None:
    reply = answered(weighed(question(), (0.0, 0.0, 0.0, 0.0, 0.2, 0.6), min_mass=0.5))
    assert reply.label == "5"
    assert reply.value == pytest.approx(4.75)
    assert reply.probabilities == pytest.approx((0, 0, 0, 0, 0.25, 0.75))
    assert reply.mass == pytest.approx(0.8)


def test_choices_without_values_are_weighed_without_a_value() -> None:
    reply = answered(weighed(question(choices=WORDS), (0.3, 0.6), min_mass=0.5))
    assert (reply.label, reply.value) == ("veto", None)
    half = (Choice(label="a", value=1.0), Choice(label="b"))
    assert answered(weighed(question(choices=half), (0.9, 0.1), min_mass=0.5)).value is None


def test_the_first_of_equally_probable_choices_is_the_label() -> None:
    assert answered(weighed(question(choices=WORDS), (0.4, 0.4), min_mass=0.5)).label == "ok"


@pytest.mark.parametrize(
    ("masses", "min_mass"),
    [
        ((0.2, 0.29), 0.5),
        ((0.0, 0.0), 0.0),
        ((math.nan, 0.9), 0.5),
        ((0.9, 0.9), 0.5),
        ((math.inf, 0.0), 0.5),
    ],
)
def test_labels_without_enough_probability_are_off_scale_and_never_renormalised(
    masses: tuple[float, float], min_mass: float
) -> None:
    reply = weighed(question(choices=WORDS), masses, min_mass=min_mass, tokens=Tokens(prompt=9))
    assert isinstance(reply, NoAnswer)
    assert (reply.cause, reply.tokens.prompt) == ("off_scale", 9)


def test_the_least_mass_itself_is_enough_and_rounding_over_one_is_forgiven() -> None:
    assert answered(weighed(question(choices=WORDS), (0.25, 0.25), min_mass=0.5)).mass == 0.5
    assert answered(weighed(question(choices=WORDS), (0.6, 0.4005), min_mass=0.5)).mass == 1.0


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_weighed_probabilities_sum_to_one_and_their_value_is_on_the_scale(
    raw: list[float],
) -> None:
    total = sum(raw)
    assume(total > 0)
    masses = tuple(mass / max(total, 1.0) for mass in raw)
    reply = answered(weighed(question(), masses, min_mass=0.0))
    assert reply.probabilities is not None
    assert reply.value is not None
    assert math.isclose(sum(reply.probabilities), 1.0, rel_tol=1e-9)
    assert -1e-9 <= reply.value <= 5 + 1e-9
    assert reply.probabilities[int(reply.label)] == max(reply.probabilities)
