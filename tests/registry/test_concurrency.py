"""Many writers of one rubric at once, and writers that die in the middle."""

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from sqlalchemy import func, select

from starforge_rewards.errors import Conflict
from starforge_rewards.registry import schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import RubricQuery, Written
from starforge_rewards.rubrics.ref import Ref
from tests.registry.samples import JUDGE, key, put, registry, rubric, run, score

X = Ref.parse("alice/x")
WRITER = """\
import sys
from starforge_rewards.registry.database import Database
from tests.registry.samples import put, registry

url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
alice = registry(Database.open(url), "alice")
for number in range(count):
    description = f"{name} {number}"
    ref = put(alice, "alice/x", description=description)
    print(ref.version, description, flush=True)
"""


def writer(url: str, name: str, count: int) -> subprocess.Popen[str]:
    """A process that writes versions, and prints each when it is acknowledged."""
    command = [sys.executable, "-c", WRITER, url, name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def acknowledged(lines: Sequence[str]) -> dict[int, str]:
    """Descriptions by version; a last line that was cut short says nothing."""
    whole = [line for line in lines if line.endswith("\n")]
    return {int(line.split(" ", 1)[0]): line.split(" ", 1)[1].strip() for line in whole}


def assert_whole(database: Database, expected: dict[int, str]) -> None:
    """Counter, revisions and listing agree, and each acknowledged text is there."""
    alice = registry(database, "alice")
    texts = {
        each.version: each.rubric["description"] for each in reversed(alice.rubrics.revisions(X))
    }
    assert list(texts) == list(range(1, len(texts) + 1))
    assert {version: texts[version] for version in expected} == expected
    current = alice.rubrics.show(X)
    assert (current.version, current.rubric["description"]) == (len(texts), texts[len(texts)])
    (line,) = alice.rubrics.list(RubricQuery(search=texts[len(texts)])).items
    assert (line.version, line.description) == (len(texts), texts[len(texts)])


def test_200_edits_by_threads_are_200_versions_each_with_its_text(database: Database) -> None:
    alice = registry(database, "alice")
    start = threading.Barrier(20)

    def edit(writer: int) -> list[tuple[int, str]]:
        start.wait()
        written = []
        for number in range(10):
            description = f"{writer} {number}"
            written.append(
                (put(alice, "alice/x", description=description).version or 0, description)
            )
        return written

    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(edit, range(20)))
    expected = {version: text for written in done for version, text in written}
    assert len(expected) == 200
    for written in done:
        assert all(first < second for (first, _), (second, _) in pairwise(written))
    assert_whole(database, expected)
    assert len(alice.rubrics.revisions(X)) == 200


def test_200_edits_by_processes_are_200_versions_each_with_its_text(database_url: str) -> None:
    Database.open(database_url).close()
    writers = [writer(database_url, f"w{number}", 50) for number in range(4)]
    outputs = [one.communicate()[0].splitlines(keepends=True) for one in writers]
    assert [one.returncode for one in writers] == [0, 0, 0, 0]
    expected = acknowledged([line for lines in outputs for line in lines])
    assert sorted(expected) == list(range(1, 201))
    database = Database.open(database_url)
    assert_whole(database, expected)
    database.close()


def test_of_many_first_writes_one_creates(database: Database) -> None:
    alice = registry(database, "alice")
    start = threading.Barrier(8)

    def create(number: int) -> Written:
        start.wait()
        return alice.rubrics.put(X, rubric(description=f"by {number}"))

    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(create, range(8)))
    assert sorted(one.version for one in written) == list(range(1, 9))
    assert [one.version for one in written if one.created] == [1]
    assert_whole(database, {one.version: str(one.rubric["description"]) for one in written})


def test_of_many_equal_writes_one_changes_something(database: Database) -> None:
    alice = registry(database, "alice")
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda _: alice.rubrics.put(X, rubric()), range(16)))
    assert [one.version for one in written] == [1] * 16
    assert sum(one.changed for one in written) == 1


def test_of_many_writes_that_expect_one_version_one_lands(database: Database) -> None:
    alice = registry(database, "alice")
    put(alice, "alice/x")

    def edit(number: int) -> bool:
        try:
            alice.rubrics.put(X, rubric(description=f"by {number}"), expected_version=1)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(edit, range(16))) == 1
    assert alice.rubrics.show(X).version == 2


def test_one_write_sent_many_times_at_once_lands_once(database: Database) -> None:
    alice = registry(database, "alice")

    def send(_: int) -> Written:
        return alice.rubrics.put(X, rubric(description="One."), write_key="k")

    with ThreadPoolExecutor(8) as pool:
        assert {one.version for one in pool.map(send, range(16))} == {1}


def test_two_runs_that_keep_the_same_scores_in_opposite_order_both_end(database: Database) -> None:
    alice = registry(database, "alice")
    ref = put(alice, "alice/x")
    numbers = range(300)
    batches = [
        {key(ref, number): score(number / 1000 + way / 10) for number in numbers[:: 1 - 2 * way]}
        for way in (0, 1)
    ]

    def record(number: int) -> None:
        run_id = f"run-{number:08}"
        alice.runs.put(run_id, run(ref))
        alice.scores.add(run_id, batches[number % 2])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(record, range(12)))
    served = alice.scores.find(JUDGE.digest, list(batches[0]))
    first = {one: its.total for one, its in served.items()}
    assert first in [{one: its.total for one, its in batch.items()} for batch in batches]
    for number in range(12):
        shown = alice.scores.of_run(f"run-{number:08}", limit=1000).items
        totals = {one.key: one.score.total for one in shown}
        assert totals == {one: its.total for one, its in batches[number % 2].items()}


def test_one_run_put_by_many_at_once_is_one_run(database: Database) -> None:
    alice = registry(database, "alice")
    refs = [put(alice, f"alice/r{number}") for number in range(8)]

    def record(number: int) -> None:
        alice.runs.put("run-00000001", run(refs[number], refs[-1]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(record, range(8)))
    assert len(alice.runs.show("run-00000001").citations) == 8


@pytest.mark.parametrize("after", [1, 7, 25])
def test_a_writer_killed_in_the_middle_loses_nothing_acknowledged(
    database_url: str, after: int
) -> None:
    Database.open(database_url).close()
    killed, other = writer(database_url, "killed", 10_000), writer(database_url, "other", 40)
    lines: list[str] = []
    assert killed.stdout is not None
    while len(lines) < after:
        lines.append(killed.stdout.readline())
    killed.send_signal(signal.SIGKILL)
    lines += killed.communicate()[0].splitlines(keepends=True)
    lines += other.communicate()[0].splitlines(keepends=True)
    assert (killed.returncode, other.returncode) == (-signal.SIGKILL, 0)
    expected = acknowledged(lines)
    assert len(expected) >= after + 40
    database = Database.open(database_url)
    assert_whole(database, expected)
    counted = select(func.count(), func.max(schema.revisions.c.version))
    with database.read() as connection:
        count, newest = connection.execute(counted.select_from(schema.revisions)).one()
    assert count == newest == registry(database, "alice").rubrics.show(X).version
    assert count <= len(expected) + 1  # one may have landed without its word of it
    assert put(registry(database, "alice"), "alice/x", description="After.").version == count + 1
    database.close()
