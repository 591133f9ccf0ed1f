import statistics

from hypothesis import given
from hypothesis import strategies as st

from starforge_rewards.training import imputing
from starforge_rewards.training.environment import OnFailure
from starforge_rewards.training.imputing import PromptScores, impute
from starforge_rewards.training.reward import Reward

FAILED = Reward(value=None, cause="timeout")


def given_(*values: float | None) -> list[Reward]:
    return [FAILED if value is None else Reward(value=value) for value in values]


def test_without_a_failure_nothing_changes() -> None:
    rewards = given_(1, 2)
    assert impute(rewards, ["p", "p"], "stop", PromptScores()) == rewards


def test_nothing_stands_in_unless_it_is_declared() -> None:
    assert impute(given_(1, 2, None), ["p"] * 3, "stop", PromptScores()) is None


def test_the_median_of_the_group_stands_in_marked() -> None:
    filled = impute(given_(1, 2, 9, None), ["p"] * 4, "group_median", PromptScores())
    assert filled is not None
    assert (filled[3].value, filled[3].imputed, filled[3].valid) == (2, True, False)
    assert filled[3].cause == "timeout"
    assert all(not reward.imputed for reward in filled[:3])


def test_one_score_or_another_prompts_scores_are_not_enough() -> None:
    known = PromptScores()
    assert impute(given_(1, None), ["p", "p"], "group_median", known) is None
    assert impute(given_(1, 2, None), ["q", "q", "p"], "group_median", known) is None
    assert impute(given_(None), ["p"], "prompt_median", known) is None


def test_scores_of_earlier_calls_stand_in_by_prompt() -> None:
    known = PromptScores()
    known.add(["p", "p", "q"], given_(1, 3, 100))
    filled = impute(given_(None), ["p"], "prompt_median", known)
    assert filled is not None
    assert (filled[0].value, filled[0].imputed) == (2, True)
    known.add(["q"], filled)
    assert known.of("q") == (100,), "a stand-in is no score"


def test_the_oldest_prompts_and_scores_leave(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(imputing, "_MOST_PROMPTS", 2)
    known = PromptScores()
    known.add(["a", "b", "a", "c"], given_(1, 2, 3, 4))
    assert (known.of("a"), known.of("b"), known.of("c")) == ((1, 3), (), (4,))
    known.add(["a"] * 100, given_(*range(100)))
    assert known.of("a") == tuple(range(36, 100))


POLICIES = st.sampled_from(["stop", "group_median", "prompt_median"])
ROWS = st.lists(st.tuples(st.sampled_from("pq"), st.none() | st.floats(0, 1)), max_size=8)


@given(ROWS, ROWS, POLICIES)
def test_every_number_is_a_score_or_a_marked_median_of_at_least_two(
    before: list[tuple[str, float | None]],
    rows: list[tuple[str, float | None]],
    policy: OnFailure,
) -> None:
    known = PromptScores()
    known.add([prompt for prompt, _ in before], given_(*(value for _, value in before)))
    rewards, prompts = given_(*(value for _, value in rows)), [prompt for prompt, _ in rows]
    source = rows if policy == "group_median" else before if policy == "prompt_median" else []
    filled = impute(rewards, prompts, policy, known)
    scores = {p: [v for q, v in source if q == p and v is not None] for p in "pq"}
    possible = all(value is not None or len(scores[prompt]) > 1 for prompt, value in rows)
    assert (filled is not None) == possible
    for (prompt, value), reward in zip(rows, filled or [], strict=filled is not None):
        assert reward.imputed == (value is None)
        expected = statistics.median(scores[prompt]) if value is None else value
        assert reward.value == expected
