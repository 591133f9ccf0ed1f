"""For trainers that have no way to say "no score": what stands in for a failure, if anything may.

Nothing does, unless a person declared it (`on_failure`). A stand-in is marked (`Reward.imputed`),
and is in no ledger, cache or report.
"""

import statistics
from collections import OrderedDict, deque
from collections.abc import Sequence

from starforge_rewards.training.environment import OnFailure
from starforge_rewards.training.reward import Reward

_FEWEST = 2
"""Scores of which a median may stand in for another."""
_MOST_PROMPTS = 100_000
_MOST_SCORES = 64


class PromptScores:
    """The latest scores that this process gave each prompt; the oldest prompts leave first."""

    def __init__(self) -> None:
        self._scores: OrderedDict[str, deque[float]] = OrderedDict()

    def add(self, prompts: Sequence[str], rewards: Sequence[Reward]) -> None:
        """Remember the rewards that a verifier gave; `prompts` names each one's prompt."""
        for prompt, reward in zip(prompts, rewards, strict=True):
            if reward.valid and reward.value is not None:
                held = self._scores.setdefault(prompt, deque(maxlen=_MOST_SCORES))
                held.append(reward.value)
                self._scores.move_to_end(prompt)
        while len(self._scores) > _MOST_PROMPTS:
            self._scores.popitem(last=False)

    def of(self, prompt: str) -> Sequence[float]:
        return tuple(self._scores.get(prompt, ()))  # others go on adding


def impute(
    rewards: Sequence[Reward], prompts: Sequence[str], policy: OnFailure, known: PromptScores
) -> list[Reward] | None:
    """Rewards with a stand-in for each failure; None where there is none for some of them.

    Args:
        rewards: of one call.
        prompts: each one's prompt.
        policy: `group_median` takes the scores of the same prompt in this call, `prompt_median`
            those that this process gave it at any time; at least two are needed.
        known: the latter.
    """
    here = PromptScores()
    here.add(prompts, rewards)
    filled = []
    for reward, prompt in zip(rewards, prompts, strict=True):
        if reward.value is None:
            scores = {
                "stop": (),
                "group_median": here.of(prompt),
                "prompt_median": known.of(prompt),
            }
            if len(found := scores[policy]) < _FEWEST:
                return None
            median = statistics.median(found)
            reward = reward.model_copy(update={"value": median, "imputed": True})
        filled.append(reward)
    return filled
