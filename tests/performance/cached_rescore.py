"""Scoring a file again whose verdicts are all in the SQLite cache, beside the files alone.

The files alone: the rollouts read and checked, the results read and checked, and both written.
A judge that is asked anything fails the measurement, so no engine can have been started.
"""

import asyncio
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from starforge_rewards.batch import assign, score_file
from starforge_rewards.judge.cache import CachingJudge, SqliteStore
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.question import Question, Reply, Tokens, weighed
from starforge_rewards.registry.folder import FolderRegistry, RowRubrics
from starforge_rewards.results import Result
from starforge_rewards.rollouts import read_rollouts
from tests.performance import workload
from tests.performance.ratio import Ratio, alternate, at_most, seconds


class Size(NamedTuple):
    rollouts: int
    criteria: int
    pairs: int


FULL = Size(20_000, 3, 5)
QUICK = Size(2_000, 3, 3)


class Refusing:
    """A judge that must not be asked."""

    def __init__(self, identity: JudgeIdentity) -> None:
        self.identity = identity

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        raise RuntimeError(f"{len(questions)} questions were not found in the cache")


class Files(NamedTuple):
    rollouts: Path
    results: Path
    verdicts: Path
    copies: Path
    """Where the files alone are written."""


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder:
        names = ("rollouts.jsonl", "results.jsonl", "verdicts.sqlite", "copy.jsonl")
        files = Files(*(Path(folder) / name for name in names))
        with files.rollouts.open("w", encoding="utf-8") as file:
            for rollout in workload.rollouts(size.rollouts, seed=0):
                file.write(rollout.model_dump_json() + "\n")
        chance = random.Random(0)  # noqa: S311 - no secret
        filler = ScriptedJudge(lambda question: _answer(question, chance))
        rescore(files, size.criteria, filler)
        refusing = Refusing(filler.identity)

        def ours() -> float:
            return seconds(lambda: rescore(files, size.criteria, refusing))

        def alone() -> float:
            return seconds(lambda: _files_alone(files))

        yield Ratio(
            what="time of scoring a file from the cache / its files alone",
            size=f"{size.rollouts} x {size.criteria}",
            pairs=alternate(ours, alone, size.pairs),
            target=at_most(6),
        )


def rescore(files: Files, criteria: int, judge: Judge) -> None:
    """All that scoring a file does, with the cache before `judge`."""
    own = RowRubrics(FolderRegistry())
    rows = read_rollouts(files.rollouts)
    tasks = assign(rows, workload.rubric(criteria), own, files.rollouts)
    store = SqliteStore(files.verdicts, max_bytes=10**9)
    try:
        outcome = asyncio.run(score_file(tasks, CachingJudge(judge, store), files.results)).outcome
    finally:
        store.close()
    if outcome.scored != len(rows):
        raise RuntimeError(f"not all were scored: {outcome}")


def _files_alone(files: Files) -> None:
    with files.copies.open("w", encoding="utf-8") as copy:
        for row in read_rollouts(files.rollouts):
            copy.write(row.rollout.model_dump_json() + "\n")
    with files.results.open("rb") as results, files.copies.open("w", encoding="utf-8") as copy:
        for line in results:
            copy.write(Result.model_validate_json(line).model_dump_json() + "\n")


def _answer(question: Question, chance: random.Random) -> Reply:
    masses = tuple(chance.random() / len(question.choices) for _ in question.choices)
    return weighed(question, masses, min_mass=0, tokens=Tokens(prompt=300, generated=1))
