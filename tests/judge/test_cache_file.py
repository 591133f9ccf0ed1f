"""The verdict cache's file: shared, bounded, and never what a run fails by."""

import asyncio
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from starforge_rewards.judge.cache import CachingJudge, SqliteStore
from starforge_rewards.question import Answer, Tokens
from tests.judge.cache_asks import LATE, YES, Counting, question

ROOT = Path(__file__).parents[2]
FULL = Answer(
    label="yes", value=0.7, probabilities=(0.3, 0.7), mass=0.9, reason="so", tokens=Tokens(prompt=1)
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "verdicts.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path, 10**8)
    yield opened
    opened.close()


def python(script: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


def test_an_answer_comes_back_whole_without_its_asking(store: SqliteStore) -> None:
    store.keep({b"1": FULL, b"2": YES})
    assert store.find([b"1", b"3"]) == {b"1": FULL.model_copy(update={"tokens": Tokens()})}


def test_more_keys_than_one_statement_takes_are_found(store: SqliteStore) -> None:
    keys = [str(n).encode() for n in range(1700)]
    store.keep(dict.fromkeys(keys, YES))
    assert store.find([*keys, b"none"]).keys() == set(keys)


def test_what_one_run_asked_the_next_finds(path: Path) -> None:
    for expected in ("asked", "cached"):
        store = SqliteStore(path, 10**8)
        counting = Counting(lambda q: LATE if q.repeat else YES)
        judge = CachingJudge(counting, store)
        replies = asyncio.run(judge.answer([question(), question(repeat=1)]))
        assert isinstance(replies[0], Answer)
        assert replies[0].origin == expected
        assert replies[1] == LATE
        assert len(counting.asked) == (2 if expected == "asked" else 1)
        store.close()


SHARES = """
import sys
from pathlib import Path
from starforge_rewards.judge.cache import SqliteStore
from tests.judge.cache_asks import YES
store = SqliteStore(Path(sys.argv[1]), 10**8)
for n in range(100):
    store.keep({f"{sys.argv[2]} {n}".encode(): YES})
store.close()
"""


def test_processes_share_one_file_and_lose_nothing(path: Path) -> None:
    running = [python(SHARES, path, name) for name in ("one", "two", "three")]
    assert [process.communicate(timeout=60)[1] for process in running] == ["", "", ""]
    store = SqliteStore(path, 10**8)
    keys = {f"{name} {n}".encode() for name in ("one", "two", "three") for n in range(100)}
    assert store.find(keys).keys() == keys
    store.close()


def test_the_file_is_bounded_and_the_oldest_answers_leave_first(path: Path) -> None:
    store = SqliteStore(path, 300_000)
    answer = YES.model_copy(update={"reason": "x" * 200})
    for n in range(300):
        store.keep({f"{n} {k}".encode(): answer for k in range(20)})
        kept = sum(file.stat().st_size for file in path.parent.glob("verdicts.sqlite"))
        assert kept < 400_000
    assert store.find([b"0 0", b"299 19"]).keys() == {b"299 19"}
    assert len(store.find(f"{n} {k}".encode() for n in range(300) for k in range(20))) > 500
    store.close()


def test_an_answer_of_another_form_is_asked_again(path: Path, store: SqliteStore) -> None:
    store.keep({b"1": YES, b"2": YES})
    other = sqlite3.connect(path)
    other.execute("UPDATE verdicts_1 SET answer = json_insert(answer, '$.new', 1) WHERE id = 1")
    other.commit()
    other.close()
    assert store.find([b"1", b"2"]).keys() == {b"2"}


# --- what must not stop a run ---


@pytest.mark.parametrize("content", [b"not a database, but long enough to be one " * 99, b"SQLite"])
def test_a_damaged_file_is_put_aside_and_a_new_one_begun(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    path.with_name("verdicts.sqlite-wal").write_bytes(b"of the old one")
    store = SqliteStore(path, 10**8)
    store.keep({b"1": YES})
    store.close()
    assert path.with_suffix(".damaged").read_bytes() == content
    assert "put aside" in caplog.text
    again = SqliteStore(path, 10**8)
    assert again.find([b"1"]).keys() == {b"1"}
    again.close()


def test_a_file_that_is_damaged_while_it_is_used_is_put_aside(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(path, 10**8)
    store.keep({f"{n}".encode(): FULL for n in range(2000)})
    store.close()
    with path.open("r+b") as file:  # the header and the table's root stay as they are
        file.seek(4096 * 2)
        file.write(b"\xff" * (path.stat().st_size - 4096 * 2))
    store = SqliteStore(path, 10**8)
    assert store.find([b"1"]) == {}
    store.keep({b"1": YES})
    assert store.find([b"1"]).keys() == {b"1"}
    assert "is damaged" in caplog.text
    store.close()


NO_ROOM = """
import resource, sys
from pathlib import Path
from starforge_rewards.judge.cache import SqliteStore
from tests.judge.cache_asks import YES
store = SqliteStore(Path(sys.argv[1]), 10**8)
store.keep({b"early": YES})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
big = YES.model_copy(update={"reason": "x" * 3_000})
for n in range(100):
    store.keep({f"{n}".encode(): big})
print(*store.find([b"early", b"99"]))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.keep({b"later": YES})
print(*store.find([b"early", b"later"]))
store.close()
"""


def test_where_there_is_no_room_the_run_goes_on_with_a_warning(path: Path) -> None:
    process = python(NO_ROOM, path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[0] == "b'early'"
    assert set(out.splitlines()[1].split()) == {"b'early'", "b'later'"}
    assert "is not used for some answers" in err


def test_a_file_that_cannot_be_opened_is_left_alone_and_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "verdicts.sqlite"
    folder.mkdir()
    for path in (folder, tmp_path / "file" / "verdicts.sqlite"):
        (tmp_path / "file").touch()
        store = SqliteStore(path, 10**8)
        store.keep({b"1": YES})
        assert store.find([b"1"]).keys() == {b"1"}
        store.close()
    assert caplog.text.count("cannot be opened") == 2
    assert all(record.levelno == logging.WARNING for record in caplog.records)
    assert folder.is_dir()


def test_a_locked_file_is_no_damaged_one(path: Path, store: SqliteStore) -> None:
    store.keep({b"1": YES})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    second = SqliteStore(path, 10**8)
    assert second.find([b"1"]).keys() == {b"1"}
    other.execute("ROLLBACK")
    other.close()
    second.close()
    assert not path.with_suffix(".damaged").exists()
