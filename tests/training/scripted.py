"""Functions as judges and plugins: what the response says decides what they answer."""

import asyncio
import os
import threading
from pathlib import Path

from starforge_rewards.conversation import Rollout
from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.question import NoAnswer, Question, Reply
from starforge_rewards.training.dataset import TaskRow

CAUSES = ("unparseable", "refused", "overlong", "truncated", "off_scale", "timeout", "unreachable")
ASKED: list[Question] = []
"""Every question in this process."""
GATE = threading.Event()
"""What `gated` waits for."""


def config(function: str = "judge", *, reuse: bool = False) -> ScriptedConfig:
    return ScriptedConfig(
        kind="scripted", function=f"tests.training.scripted:{function}", reuse=reuse
    )


def judge(question: Question) -> str | Reply:
    """`fail CAUSE`, a criterion's name and a cause, or the label to give; else the lowest."""
    ASKED.append(question)
    said = next(part.content for part in question.evidence.parts if part.name == "response")
    text = said if isinstance(said, str) else said[-1].content
    words = text.split()
    if words[:1] == ["fail"]:
        return NoAnswer.because(words[1], "told to")  # type: ignore[arg-type]
    if len(words) == 2 and words[0] == question.instruction.split("\n")[0]:
        return NoAnswer.because(words[1], "told to")  # type: ignore[arg-type]
    if (note := os.environ.get("SF_TEST_NOTE")) and Path(note).exists():
        return NoAnswer.because("unreachable", "told to by the file")
    return next((c.label for c in question.choices if c.label in words), question.choices[0].label)


async def gated(question: Question) -> str | Reply:
    """As `judge`, once the gate is open."""
    await asyncio.to_thread(GATE.wait)
    return judge(question)


def once_down(question: Question) -> str | Reply:
    """Does not answer a question the first time."""
    if any(question.key == asked.key for asked in ASKED):
        return judge(question)
    ASKED.append(question)
    return NoAnswer.because("timeout", "the first time")


def words(rollout: Rollout, row: TaskRow) -> object:
    """A plugin: what the response says that it returns or raises."""
    said = str(rollout.response)
    if said.startswith("raise"):
        raise ValueError("told to")
    if said.startswith("exit"):
        raise SystemExit(1)
    odd = {"nan": float("nan"), "text": "1", "none": None, "true": True, "huge": 10**400}
    return odd.get(said.split()[0] if said.split() else "", 0.5)


async def later(rollout: Rollout, row: TaskRow) -> float:
    return float(row.split == "train") + float(row.id == "other")


class Callable:
    async def __call__(self, rollout: Rollout, row: TaskRow) -> float:
        return 0.25


wrapped = Callable()
