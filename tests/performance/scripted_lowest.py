"""A judge that costs nothing: the lowest level, always."""

from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.question import Question

JUDGE = ScriptedConfig(
    kind="scripted", function="tests.performance.scripted_lowest:judge", reuse=False
)


def judge(question: Question) -> str:
    return question.choices[0].label
