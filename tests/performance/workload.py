"""Rollouts and rubrics to measure with: the same for the same seed, and none like another's.

Words are short and common, so that a word is about one token.
"""

import random

from starforge_rewards.conversation import Rollout
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Criterion, Rubric

_COMMON = (
    "the a of to and in is it that for on with as was at by be this have from or one had not but "
    "what all were when we there can an your which their said if do will each about how up out "
    "them then she many some so these would other into has more her two like him see time could "
    "no make than first been its who now people my made over did down only way find use may water "
    "long little very after words called just where most know"
)
_WORDS = _COMMON.split()
_PROMPT_WORDS, _RESPONSE_WORDS = 60, 110
"""With their tags some 200 tokens of evidence."""


def rollouts(count: int, *, seed: int, group: int = 4) -> list[Rollout]:
    """`count` distinct rollouts, `group` responses to each prompt, one after another."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    made = []
    for number in range(count):
        if number % group == 0:
            prompt = _text(chance, _PROMPT_WORDS)
        name = f"{seed}-{number}"
        made.append(Rollout(id=name, prompt=prompt, response=_text(chance, _RESPONSE_WORDS)))
    return made


def rubric(criteria: int) -> ResolvedRubric:
    """A rubric on 0 to 5; its criteria differ from their first word."""
    return ResolvedRubric.pin(
        Rubric(
            scale_min=0.0,
            scale_max=5.0,
            criteria=tuple(
                Criterion(
                    name=f"{_WORDS[number].capitalize()} {number}",
                    weight=float(1 + number % 3),
                    description=f"Decide whether the response keeps to rule {number} of the task "
                    "and states nothing that the task does not support.",
                )
                for number in range(criteria)
            ),
        )
    )


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))
