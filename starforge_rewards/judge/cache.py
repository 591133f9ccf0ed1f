"""The verdict cache: answers by content, one flight per key. A failure is never stored.

A key covers the judge's identity, evidence, instruction, choices and repeat, so that an edited
criterion misses and an edited weight asks nothing.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import Answer, NoAnswer, Question, Reply, Tokens

_log = logging.getLogger(__name__)

ASKED_TOGETHER = 64
"""Questions whose answers are stored together: what a kill can lose of a batch is no more."""


class VerdictStore(Protocol):
    """Where answers are kept."""

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Answer]: ...
    def keep(self, answers: Mapping[bytes, Answer]) -> None: ...


class MemoryStore:
    """Answers of this process alone; the oldest leave first."""

    def __init__(self, most: int = 100_000) -> None:
        self._answers: dict[bytes, Answer] = {}
        self._most = most

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        return {key: self._answers[key] for key in keys if key in self._answers}

    def keep(self, answers: Mapping[bytes, Answer]) -> None:
        self._answers.update(answers)
        while len(self._answers) > self._most:
            del self._answers[next(iter(self._answers))]


class SqliteStore:
    """Answers in one SQLite file that processes share; the oldest leave first.

    The file is only a cache: a damaged one is put aside and a new one begun.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = self._opened()
        except sqlite3.DatabaseError as error:
            _log.warning("%s is damaged (%s): put aside, a new cache begins", path, error)
            path.replace(path.with_suffix(".damaged"))
            self._db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")  # survives a killed process
        db.execute(
            "CREATE TABLE IF NOT EXISTS verdicts_1"  # the number is the form of `answer`
            " (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, answer TEXT NOT NULL)"
        )
        return db

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        wanted, found = list(keys), dict[bytes, Answer]()
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            marks = ",".join("?" * len(some))
            sql = f"SELECT key, answer FROM verdicts_1 WHERE key IN ({marks})"  # noqa: S608
            for key, text in self._db.execute(sql, some):
                try:
                    found[key] = Answer.model_validate_json(text)
                except ValidationError:  # of a later version: asked again
                    continue
        return found

    def keep(self, answers: Mapping[bytes, Answer]) -> None:
        skipped = {"origin", "tokens"}  # of the asking, not of the answer
        rows = [(key, answer.model_dump_json(exclude=skipped)) for key, answer in answers.items()]
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT OR REPLACE INTO verdicts_1 (key, answer) VALUES (?, ?)", rows
            )
            self._make_room()
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:  # disk full or locked: the run does not need it
            _log.warning("answers not cached: %s", error)
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _make_room(self) -> None:
        def pragma(name: str) -> int:
            return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

        used = (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
        if used > self._max_bytes:
            self._db.execute(
                "DELETE FROM verdicts_1 WHERE id IN (SELECT id FROM verdicts_1 ORDER BY id LIMIT"
                " (SELECT 1 + COUNT(*) / 10 FROM verdicts_1))"
            )

    def close(self) -> None:
        self._db.close()


class CachingJudge:
    """A judge that remembers; the same question asked by two callers at once is asked once."""

    def __init__(self, judge: Judge, store: VerdictStore) -> None:
        self.identity = judge.identity
        self._judge, self._store = judge, store
        self._prefix = bytes.fromhex(judge.identity.digest)
        self._flights: dict[bytes, asyncio.Future[Reply]] = {}

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply per question, in order; what is found or shared has origin `cached`."""
        keys = [self._prefix + question.key for question in questions]
        by_key = dict(zip(keys, questions, strict=True))
        replies: dict[bytes, Reply] = {}
        for key, answer in self._store.find(by_key).items():
            replies[key] = _cached(answer)
        shared = {k: self._flights[k] for k in by_key if k not in replies and k in self._flights}
        mine = [key for key in by_key if key not in replies and key not in shared]
        loop = asyncio.get_running_loop()
        self._flights |= {key: loop.create_future() for key in mine}
        async with asyncio.TaskGroup() as group:
            asks = [
                group.create_task(self._ask({key: by_key[key] for key in some}))
                for some in _together(mine, by_key)
            ]
        for ask in asks:
            replies |= ask.result()
        for key, flight in shared.items():
            replies[key] = _cached(await asyncio.shield(flight))
        asked = set(mine)
        ordered: list[Reply] = []
        for key in keys:  # of equal questions in one batch, one was asked
            ordered.append(replies[key])
            if key in asked:
                asked.discard(key)
                replies[key] = _cached(replies[key])
        return ordered

    async def _ask(self, some: Mapping[bytes, Question]) -> dict[bytes, Reply]:
        flights = {key: self._flights[key] for key in some}
        try:
            answered = await self._judge.answer(list(some.values()))
            replies = dict(zip(some, answered, strict=True))
            self._store.keep({k: r for k, r in replies.items() if isinstance(r, Answer)})
            for key, reply in replies.items():
                flights[key].set_result(reply)
        finally:
            for key, flight in flights.items():
                del self._flights[key]
                if not flight.done():  # the asker failed or was cancelled; others hear of it
                    flight.set_result(NoAnswer.because("unreachable", "the asker was interrupted"))
        return replies


def _cached(reply: Reply) -> Reply:
    """The reply as one who did not ask for it sees it: it cost no tokens."""
    if isinstance(reply, Answer):
        return reply.model_copy(update={"origin": "cached", "tokens": Tokens()})
    return reply.model_copy(update={"tokens": Tokens()})


def _together(keys: Sequence[bytes], by_key: Mapping[bytes, Question]) -> list[list[bytes]]:
    """Keys in groups of about `ASKED_TOGETHER`, no rollout's evidence split over two."""
    groups: list[list[bytes]] = []
    last: bytes | None = None
    for key in keys:
        evidence = by_key[key].evidence.digest
        if not groups or (len(groups[-1]) >= ASKED_TOGETHER and evidence != last):
            groups.append([])
        groups[-1].append(key)
        last = evidence
    return groups
