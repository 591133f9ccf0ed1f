import asyncio
from collections.abc import Callable, Sequence

import pytest

from starforge_rewards.conversation import Message, Rollout
from starforge_rewards.judge.identity import EmptyRule, JudgeIdentity
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import NoAnswer, Question, Reply, chosen
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.rubrics.weighted import Criterion, Rubric, Score, Unscored
from starforge_rewards.scoring import score


class Recorded:
    """A judge that is a function, and remembers what it was asked in each call."""

    def __init__(
        self, reply: Callable[[Question], Reply], empty_response: EmptyRule = "scale_min"
    ) -> None:
        self.calls: list[list[Question]] = []
        self.identity = JudgeIdentity(
            model="recorded",
            weights="unverified",
            engine="none",
            read="text",
            layout="none",
            template="none",
            min_mass=0.5,
            empty_response=empty_response,
            overlong="fail",
        )
        self._reply = reply

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        self.calls.append(list(questions))
        return [self._reply(question) for question in questions]


def resolved(*names: str, ref: str | None = "alice/support@2", high: float = 5) -> ResolvedRubric:
    criteria = tuple(Criterion(name=name, weight=3 - i) for i, name in enumerate(names))
    rubric = Rubric(scale_min=0, scale_max=high, criteria=criteria)
    return ResolvedRubric.pin(rubric, Ref.parse(ref) if ref else None)


SUPPORT = resolved("Correct", "Answers", "Cites")


def rollout(response: str) -> Rollout:
    return Rollout(prompt="Why?", response=response)


def digit(question: Question) -> Reply:
    """The level that the response names for the criterion, as in `Correct=5 Cites=0`."""
    response = str(question.evidence.parts[1].content)
    said = dict(word.split("=") for word in response.split())
    label = said[question.instruction]
    return NoAnswer(cause="refused", detail="no") if label == "?" else chosen(question, label)


def scores(
    rubric: ResolvedRubric | Sequence[ResolvedRubric], rollouts: Sequence[Rollout], judge: Judge
) -> list[Score | Unscored]:
    return asyncio.run(score(rubric, rollouts, judge))


def test_weights_3_2_1_and_scores_5_4_0_give_23_sixths() -> None:
    (result,) = scores(SUPPORT, [rollout("Correct=5 Answers=4 Cites=0")], Recorded(digit))
    assert isinstance(result, Score)
    assert result.total == pytest.approx(23 / 6)


def test_results_come_in_the_order_of_the_rollouts_from_one_call_of_the_judge() -> None:
    judge = Recorded(digit)
    rollouts = [rollout(f"Correct={n} Answers={n} Cites={n}") for n in (3, 0, 5, 1)]
    results = scores(SUPPORT, rollouts, judge)
    assert [r.total for r in results if isinstance(r, Score)] == pytest.approx([3, 0, 5, 1])
    (asked,) = judge.calls
    assert [q.source for q in asked[:4]] == [
        "alice/support@2#Correct",
        "alice/support@2#Answers",
        "alice/support@2#Cites",
        "alice/support@2#Correct",
    ]


def test_a_judge_failure_means_no_total_and_is_never_a_zero() -> None:
    rollouts = [rollout(f"Correct=5 Answers={n} Cites=0") for n in ("4", "?", "9", "4")]
    first, refused, off, last = scores(SUPPORT, rollouts, Recorded(digit))
    assert first == last
    assert isinstance(first, Score)
    assert isinstance(refused, Unscored)
    assert (refused.cause, refused.missing) == ("refused", ("Answers",))
    assert isinstance(off, Unscored)
    assert off.cause == "off_scale"
    assert set(off.answered) == {"Correct", "Cites"}


@pytest.mark.parametrize("response", ["", " \n", (), (Message(role="assistant", content=" "),)])
def test_an_empty_response_is_the_scales_minimum_without_asking(
    response: str | tuple[Message, ...],
) -> None:
    judge = Recorded(digit)
    (result,) = scores(SUPPORT, [Rollout(prompt="Why?", response=response)], judge)
    assert isinstance(result, Score)
    assert (result.total, result.decided, judge.calls) == (0, "empty_response", [])


def test_an_empty_response_is_unscored_where_the_judge_declares_it() -> None:
    judge = Recorded(digit, empty_response="unscored")
    full = "Correct=5 Answers=5 Cites=5"
    results = scores(SUPPORT, [rollout(""), rollout(full), rollout(" ")], judge)
    assert [type(result) for result in results] == [Unscored, Score, Unscored]
    assert isinstance(results[0], Unscored)
    assert results[0].cause == "empty_response"
    assert len(judge.calls[0]) == 3


def test_an_empty_response_between_others_takes_none_of_their_replies() -> None:
    texts = ["Correct=1 Answers=1 Cites=1", "", "Correct=5 Answers=5 Cites=5"]
    results = scores(SUPPORT, [rollout(text) for text in texts], Recorded(digit))
    assert [r.total for r in results if isinstance(r, Score)] == pytest.approx([1, 0, 5])


def test_each_rollout_may_have_a_rubric_of_its_own() -> None:
    inline = resolved("Short", ref=None, high=1)
    judge = Recorded(digit)
    rollouts = [rollout("Short=1"), rollout("Correct=2 Answers=2 Cites=2"), rollout("Short=0")]
    results = scores([inline, SUPPORT, inline], rollouts, judge)
    assert [r.total for r in results if isinstance(r, Score)] == pytest.approx([1, 2, 0])
    sources = [question.source for question in judge.calls[0]]
    assert sources[0] == sources[4] == f"inline {inline.digest[:12]}#Short"
    assert len(sources) == 5


def test_no_rollouts_ask_nothing() -> None:
    judge = Recorded(digit)
    assert scores(SUPPORT, [], judge) == []
    assert judge.calls == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_rubrics_than_rollouts_is_refused_before_the_judge_is_asked(
    count: int,
) -> None:
    judge = Recorded(digit)
    rollouts = [rollout("Correct=1 Answers=1 Cites=1")] * 2
    with pytest.raises(ValueError, match="zip"):
        scores([SUPPORT] * count, rollouts, judge)
    assert judge.calls == []


@pytest.mark.parametrize("change", [-1, 1, 3])
def test_a_judge_that_does_not_reply_to_each_question_gives_no_scores(change: int) -> None:
    class Miscounting(Recorded):
        async def answer(self, questions: Sequence[Question]) -> list[Reply]:
            replies = await super().answer(questions)
            return (replies * 2)[: len(replies) + change]

    rollouts = [rollout("Correct=1 Answers=1 Cites=1")] * 2
    with pytest.raises(ValueError, match="replies to 6 questions"):
        scores(SUPPORT, rollouts, Miscounting(digit))


def test_what_a_judge_raises_is_not_turned_into_a_score() -> None:
    def broken(question: Question) -> Reply:
        raise RuntimeError(question.source)

    with pytest.raises(RuntimeError, match="alice/support@2#Correct"):
        scores(SUPPORT, [rollout("x")], Recorded(broken))
