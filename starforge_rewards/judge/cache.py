"""The verdict cache: answers by content, one flight per key. A failure is never stored.

A key covers the judge's identity, evidence, instruction, choices and repeat, so that an edited
criterion misses and an edited weight asks nothing.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import ValidationError

from starforge_rewards.judge.protocol import Judge
from starforge_rewards.question import Answer, Question, Reply, Tokens

_log = logging.getLogger(__name__)

ASKED_TOGETHER = 64
"""Questions whose answers are stored together: what a kill can lose of a batch is no more."""


class VerdictStore(Protocol):
    """Where answers are kept, as one who finds them sees them: origin `cached`."""

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

    The file is only a cache: a damaged one is put aside and a new one begun, and where it cannot be
    opened, read or written, the run goes on with a warning.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._db = self._sound()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        wanted, found = list(keys), dict[bytes, Answer]()
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            marks = ",".join("?" * len(some))
            sql = f"SELECT key, answer FROM verdicts_1 WHERE key IN ({marks})"  # noqa: S608
            try:
                rows = self._db.execute(sql, some).fetchall()
            except sqlite3.DatabaseError as error:  # damaged since it was opened, or locked
                self._do_without(error)
                break
            for key, text in rows:
                with suppress(ValidationError):  # of a later version: asked again
                    found[key] = Answer.model_validate_json(text)
        return found

    def keep(self, answers: Mapping[bytes, Answer]) -> None:
        rows = [
            (key, answer.model_dump_json(exclude={"tokens"})) for key, answer in answers.items()
        ]
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT OR REPLACE INTO verdicts_1 (key, answer) VALUES (?, ?)", rows
            )
            self._make_room()
            self._db.execute("COMMIT")
        except sqlite3.DatabaseError as error:  # disk full, locked or damaged: the run goes on
            self._do_without(error)

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

    def _do_without(self, error: sqlite3.DatabaseError) -> None:
        if isinstance(error, sqlite3.OperationalError):  # no room, locked: no sign of damage
            _log.warning("%s is not used for some answers: %s", self._path, error)
            with suppress(sqlite3.DatabaseError):
                self._db.rollback()
        else:
            self._db.close()
            self._put_aside(error)
            self._db = self._sound()

    def _sound(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return _opened(self._path)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                self._put_aside(error)
                return _opened(self._path)
        except (OSError, sqlite3.DatabaseError) as error:
            _log.warning("%s cannot be opened: nothing outlives this run: %s", self._path, error)
            return _opened(":memory:")

    def _put_aside(self, error: sqlite3.DatabaseError) -> None:
        _log.warning("%s is damaged (%s): put aside, a new cache begins", self._path, error)
        with suppress(FileNotFoundError):  # another process did it
            self._path.replace(self._path.with_suffix(".damaged"))
        for suffix in ("-wal", "-shm"):  # SQLite would play its log into the new file
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _opened(path: Path | str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")  # survives a killed process
        db.execute(
            "CREATE TABLE IF NOT EXISTS verdicts_1"  # the number is the form of `answer`
            " (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, answer TEXT NOT NULL)"
        )
    except BaseException:
        db.close()
        raise
    return db


class CachingJudge:
    """A judge that remembers; the same question asked by two callers at once is asked once.

    Of an asker that fails or is cancelled those who waited learn nothing: one of them asks instead.
    """

    def __init__(self, judge: Judge, store: VerdictStore) -> None:
        self.identity = judge.identity
        self._judge, self._store = judge, store
        self._prefix = bytes.fromhex(judge.identity.digest)
        self._flights: dict[bytes, asyncio.Future[Reply | None]] = {}
        """One for each question that is being asked; None: its asker was interrupted."""

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply per question, in order; what is found or shared has origin `cached`."""
        keys = [self._prefix + question.key for question in questions]
        missing = dict(zip(keys, questions, strict=True))
        replies: dict[bytes, Reply] = {}
        asked: set[bytes] = set()
        while missing:  # more than once only where another asker was interrupted
            found = self._store.find(missing)
            missing = {key: question for key, question in missing.items() if key not in found}
            shared = {key: self._flights[key] for key in missing if key in self._flights}
            mine = {key: question for key, question in missing.items() if key not in shared}
            asked |= mine.keys()
            replies |= found
            replies |= await self._ask(mine)  # before waiting, so that no two wait for each other
            for key, flight in shared.items():
                if (reply := await asyncio.shield(flight)) is not None:
                    replies[key] = _cached(reply)
            missing = {key: asking for key, asking in missing.items() if key not in replies}
        ordered: list[Reply] = []
        for key in keys:  # of equal questions in one batch, one was asked
            ordered.append(replies[key])
            if key in asked:
                asked.discard(key)
                replies[key] = _cached(replies[key])
        return ordered

    async def _ask(self, mine: Mapping[bytes, Question]) -> dict[bytes, Reply]:
        loop = asyncio.get_running_loop()
        flights: dict[bytes, asyncio.Future[Reply | None]] = {k: loop.create_future() for k in mine}
        self._flights |= flights
        replies: dict[bytes, Reply] = {}
        try:
            async with asyncio.TaskGroup() as group:
                asks = [group.create_task(self._ask_some(some)) for some in _together(mine)]
        finally:  # also for a task that was cancelled before it began
            for key, flight in flights.items():
                if not flight.done():
                    del self._flights[key]
                    flight.set_result(None)
        for ask in asks:
            replies |= ask.result()
        return replies

    async def _ask_some(self, some: Mapping[bytes, Question]) -> dict[bytes, Reply]:
        answered = await self._judge.answer(list(some.values()))
        replies = dict(zip(some, answered, strict=True))
        self._store.keep({k: _cached(r) for k, r in replies.items() if isinstance(r, Answer)})
        for key, reply in replies.items():
            self._flights.pop(key).set_result(reply)
        return replies


R = TypeVar("R", Answer, Reply)


def _cached(reply: R) -> R:
    """The reply as one who did not ask for it sees it: it cost no tokens."""
    update: dict[str, object] = {"tokens": Tokens()}
    if isinstance(reply, Answer):
        update["origin"] = "cached"
    return reply.model_copy(update=update)


def _together(questions: Mapping[bytes, Question]) -> list[dict[bytes, Question]]:
    """Questions in groups of about `ASKED_TOGETHER`, no rollout's evidence split over two."""
    groups: list[dict[bytes, Question]] = []
    last: bytes | None = None
    for key, question in questions.items():
        evidence = question.evidence.digest
        if not groups or (len(groups[-1]) >= ASKED_TOGETHER and evidence != last):
            groups.append({})
        groups[-1][key] = question
        last = evidence
    return groups
