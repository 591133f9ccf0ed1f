"""verifiers 0.3.1, the legacy part, scores states with our rubric; run in its own environment.

`main` takes an environment folder that stops at a failure, one with `group_median`, a judge file
and the file to write.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import verifiers as vf  # type: ignore[import-not-found]

from starforge_rewards.training.rubric_reward import RewardsFailing
from starforge_rewards.training.verifiers_legacy import LegacyRubric


def states(*said: str) -> list[Any]:
    """As an environment of verifiers leaves them after a rollout."""
    return [
        vf.State(
            prompt=[{"role": "user", "content": "q"}],
            completion=[{"role": "assistant", "content": text}],
            answer="the answer",
            info={"context": "the page"},
            task="desk",
            trajectory=[{"advantage": None, "reward": None}],
        )
        for text in said
    ]


async def scored(rubric: LegacyRubric, *said: str) -> dict[str, Any]:
    group = states(*said)
    try:
        if len(group) > 1:
            await rubric.score_group(group)
        else:
            await rubric.score_rollout(group[0])
    except RewardsFailing as error:
        return {"stopped": str(error), "rewards": [state.get("reward") for state in group]}
    return {
        "rewards": [state["reward"] for state in group],
        "metrics": [state["metrics"] for state in group],
        "advantages": [state.get("advantage") for state in group],
    }


async def every(stops: str, median: str, judge: str) -> dict[str, Any]:
    strict, lenient = LegacyRubric(stops, judge, weight=2.0), LegacyRubric(median, judge)
    return {
        "one": await scored(strict, "3"),
        "group": await scored(strict, "1", "5"),
        "failed one": await scored(strict, "fail timeout"),
        "failed in a group": await scored(strict, "1", "fail timeout", "5"),
        "median": await scored(lenient, "1", "fail timeout", "5"),
        "all failed": await scored(lenient, "fail timeout", "fail refused"),
    }


def main(stops: str, median: str, judge: str, out: str) -> None:
    Path(out).write_text(json.dumps(asyncio.run(every(stops, median, judge))))
