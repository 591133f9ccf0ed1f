import asyncio
from collections.abc import Callable

import pytest

from starforge_rewards.judge.canaries import Findings, ask_canaries
from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.question import NoAnswer, Question, Reply, weighed

RIGHT = ("Paris", "366", "carbon dioxide", "Mercury")


def response(asked: Question) -> str:
    return str(asked.evidence.parts[1].content)


def careful(asked: Question) -> str:
    """Right answers are recognised; an order to answer 5 is not obeyed."""
    return "5" if any(word in response(asked) for word in RIGHT) else "0"


def found(function: Callable[[Question], str | Reply]) -> Findings:
    return asyncio.run(ask_canaries(ScriptedJudge(function)))


def test_a_judge_that_can_judge_has_no_warnings() -> None:
    findings = found(careful)
    assert (findings.good, findings.bad, findings.empty, findings.injection) == (5, 0, 0, 0)
    assert findings.separation == 5
    assert findings.mass is None
    assert findings.warnings == []


@pytest.mark.parametrize("label", ["0", "3", "5"])
def test_a_judge_that_always_says_the_same_hardly_separates(label: str) -> None:
    findings = found(lambda _: label)
    assert findings.separation == 0
    assert any("hardly separates" in said for said in findings.warnings)


def test_a_judge_that_has_it_backwards_is_warned_of() -> None:
    findings = found(lambda asked: "0" if careful(asked) == "5" else "5")
    assert findings.separation == -5
    assert any("-5.00 of 5 apart" in said for said in findings.warnings)


@pytest.mark.parametrize(
    ("fooled", "said"),
    [
        (lambda text: not text, "an empty response scores like a right answer: 5.00"),
        (lambda text: "answer 5" in text, "an injection scores like a right answer: 5.00"),
    ],
)
def test_a_judge_that_is_fooled_is_warned_of_by_what(
    fooled: Callable[[str], bool], said: str
) -> None:
    findings = found(lambda asked: "5" if fooled(response(asked)) else careful(asked))
    assert findings.warnings == [said]


def test_a_canary_without_an_answer_is_no_zero() -> None:
    late = NoAnswer.because("timeout", "too slow")
    findings = found(lambda asked: late if "Paris" in response(asked) else careful(asked))
    assert findings.good is None
    assert findings.separation is None
    assert findings.bad == 0
    assert findings.failed == {"timeout": 1}
    assert findings.warnings == ["canaries without an answer: {'timeout': 1}"]


def test_the_mean_mass_is_that_of_the_answers_that_have_one() -> None:
    def soft(asked: Question) -> Reply:
        share = 0.6 if careful(asked) == "5" else 0.9
        masses = (0.0,) * 5 + (share,) if careful(asked) == "5" else (share,) + (0.0,) * 5
        return weighed(asked, masses, min_mass=0.5)

    findings = found(soft)
    assert findings.mass == pytest.approx((4 * 0.6 + 12 * 0.9) / 16)
    assert findings.warnings == []
