"""A function as the server's judge: what the response says decides what it answers."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path

from starforge_rewards.question import NoAnswer, Question, Reply

LABELS = {"Factually correct": "5", "Answers the question asked": "4", "Cites the handbook": "0"}
"""Answers by criterion; of any other, the highest label."""


def judge(question: Question) -> str | Reply | Awaitable[str]:
    parts = {part.name: part.content for part in question.evidence.parts}
    match parts["response"]:
        case "late":
            return NoAnswer.because("timeout", "too slow")
        case "broken":
            return None  # type: ignore[return-value]  # what a judge must never do
        case "odd":
            return NoAnswer.because("unparseable", "\u2028 \x00")
        case str() as told if told.startswith("when "):
            return asyncio.to_thread(Path(told.removeprefix("when ")).read_text)
        case _:
            criterion = question.instruction.partition("\n")[0]
            return LABELS.get(criterion, question.choices[-1].label)
