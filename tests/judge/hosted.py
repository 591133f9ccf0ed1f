"""Objects that tests host in replica actors: scripted judges without an engine."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.question import Choice, Question, Reply, chosen

IDENTITY = JudgeIdentity(
    model="hosted",
    weights="none",
    engine="test",
    read="logprobs",
    layout="test",
    template="test",
    min_mass=0,
    empty_response="scale_min",
    overlong="fail",
)


class Replica:
    """Answers each batch after a pause, and notes in a file what it answered and who it is."""

    def __init__(self, notes: Path, pause: float = 0.0) -> None:
        self._notes, self._pause = notes, pause

    async def answer(self, questions: Sequence[Question], priority: int) -> list[Reply]:
        await asyncio.sleep(self._pause)
        with self._notes.open("a") as file:
            file.writelines(f"{os.getpid()} {question.source}\n" for question in questions)
        return [chosen(question, question.choices[-1].label) for question in questions]

    async def labels(self, choices: tuple[Choice, ...]) -> str:
        return ", ".join(choice.label for choice in choices)


def replica(notes: Path, pause: float = 0.0) -> Replica:
    return Replica(notes, pause)


async def until(holds: object, seconds: float = 60.0) -> None:
    """Wait until `holds()` is true, and fail after so many seconds."""
    assert callable(holds)
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "waited in vain"
        await asyncio.sleep(0.05)
