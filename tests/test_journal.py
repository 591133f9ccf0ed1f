import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge_rewards.errors import InputError
from starforge_rewards.journal import Journal

JOB = {"rollouts": "a", "judge": "b"}
ROOT = Path(__file__).parents[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl.journal"


def python(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, args)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def test_rows_come_back_by_index_whatever_their_order(path: Path) -> None:
    with Journal(path, JOB) as journal:
        for index in (3, 0, 10, 2):
            journal.add({index: f'{{"n": {index}}}'})
        assert [index for index, _ in journal.rows()] == [0, 2, 3, 10]
    with Journal(path, JOB) as journal:
        assert journal.done == {0, 2, 3, 10}
        assert dict(journal.rows())[10] == '{"n": 10}'


def test_a_second_row_of_an_index_replaces_the_first(path: Path) -> None:
    with Journal(path, JOB) as journal:
        journal.add({0: '{"n": 1}'})
        journal.add({1: '{"n": 2}'})
        journal.add({0: '{"n": 3}'})
    with Journal(path, JOB) as journal:
        journal.finish(path.with_name("out.jsonl"))
    assert path.with_name("out.jsonl").read_text() == '{"n": 3}\n{"n": 2}\n'


def test_finishing_leaves_the_results_and_nothing_else(path: Path) -> None:
    out = path.with_name("out.jsonl")
    out.write_text("old")
    with Journal(path, JOB) as journal:
        journal.add({1: '{"text": "Zwölf\u2028\\n"}'})
        journal.add({0: "{}"})
        assert out.read_text() == "old"
        journal.finish(out)
    assert out.read_bytes().decode() == '{}\n{"text": "Zwölf\u2028\\n"}\n'
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_new_results_are_for_the_eyes_that_the_old_ones_were_for(path: Path, mode: int) -> None:
    out = path.with_name("out.jsonl")
    out.touch()
    out.chmod(mode)
    with Journal(path, JOB) as journal:
        journal.finish(out)
    assert out.stat().st_mode & 0o777 == mode


def test_first_results_have_the_mode_of_any_new_file(path: Path) -> None:
    path.with_name("any").touch()
    with Journal(path, JOB) as journal:
        journal.finish(path.with_name("out.jsonl"))
    modes = {path.with_name(name).stat().st_mode for name in ("any", "out.jsonl")}
    assert len(modes) == 1


def test_finishing_overwrites_no_file_of_the_users(path: Path) -> None:
    own = path.with_name(".out.jsonl.whole")
    own.write_text("mine")
    with Journal(path, JOB) as journal:
        journal.finish(path.with_name("out.jsonl"))
    assert own.read_text() == "mine"


def test_a_link_goes_on_to_name_the_results(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    link = tmp_path / "out.jsonl"
    link.symlink_to(tmp_path / "big" / "out.jsonl")
    with Journal(tmp_path / "out.jsonl.journal", JOB) as journal:
        journal.add({0: "{}"})
        journal.finish(link)
    assert link.is_symlink()
    assert (tmp_path / "big" / "out.jsonl").read_text() == "{}\n"


def test_the_folders_above_it_are_made(tmp_path: Path) -> None:
    with Journal(tmp_path / "a" / "b" / "j", JOB) as journal:
        assert journal.done == frozenset()


ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.text().map(lambda text: json.dumps({"text": text}))), max_size=8
)


@settings(deadline=None, max_examples=100)
@given(rows=ROWS, cut=st.integers(0, 400))
def test_a_journal_cut_short_anywhere_keeps_the_rows_that_were_whole(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str]], cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "journal"
    ends: list[tuple[int, int, str]] = []
    with Journal(path, JOB) as journal:
        for index, row in rows:
            journal.add({index: row})
            ends.append((path.stat().st_size, index, row))
    with path.open("r+b") as file:
        file.truncate(min(cut, path.stat().st_size))
    size = path.stat().st_size
    expected = {index: row for end, index, row in ends if end <= size}
    with Journal(path, JOB) as journal:
        assert dict(journal.rows()) == expected
        journal.add({99: "{}"})  # begins a line of its own
    with Journal(path, JOB) as journal:
        assert dict(journal.rows()) == expected | {99: "{}"}


@pytest.mark.parametrize(
    "damaged",
    [
        b"1\t" + b"\0" * 50,
        b"\0" * 9,
        b"1",
        b"1\t5",
        b'1\t{"a": "\xff"}',
        b"1\t{} {}",
        b"9" * 5000 + b"\t{}",
    ],
)
def test_a_damaged_row_counts_as_not_done_and_those_after_it_stay(
    path: Path, damaged: bytes
) -> None:
    with Journal(path, JOB) as journal:
        journal.add({0: "{}"})
    with path.open("ab") as file:
        file.write(damaged + b'\n2\t{"n": 2}\n')
    with Journal(path, JOB) as journal:
        assert dict(journal.rows()) == {0: "{}", 2: '{"n": 2}'}
        journal.add({1: '{"n": 1}'})
    with Journal(path, JOB) as journal:
        assert dict(journal.rows()) == {0: "{}", 1: '{"n": 1}', 2: '{"n": 2}'}


def test_the_journal_of_another_job_is_refused_and_says_what_differs(path: Path) -> None:
    with Journal(path, JOB) as journal:
        journal.add({0: "{}"})
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"another job \(judge\).*delete it"):
        Journal(path, {**JOB, "judge": "c"})
    assert path.read_bytes() == before
    with Journal(path, JOB) as journal:
        assert journal.done == {0}


@pytest.mark.parametrize(
    "content",
    [b"notes\n", b"notes without an end", b'{"id": "1"}', b"\0" * 99, b"\n", b"x" * 10**6],
)
def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match="it is no journal"):
        Journal(path, JOB)
    assert path.read_bytes() == content


def test_a_second_writer_is_refused_until_the_first_is_gone(path: Path) -> None:
    with Journal(path, JOB) as journal:
        journal.add({0: "{}"})
        with pytest.raises(InputError, match="another process is writing"):
            Journal(path, JOB)
    with Journal(path, JOB) as journal:
        assert journal.done == {0}


def test_a_refused_journal_stays_free_for_its_own_job(path: Path) -> None:
    Journal(path, JOB).close()
    with pytest.raises(InputError, match="another job"):
        Journal(path, {"judge": "c"})
    Journal(path, JOB).close()


KILLED = """
import os, signal, sys
from pathlib import Path
from starforge_rewards.journal import Journal
journal = Journal(Path(sys.argv[1]), {"rollouts": "a", "judge": "b"})
for index in range(50):
    journal.add({index: "{}"})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_loses_nothing_that_was_added(path: Path) -> None:
    assert python(KILLED, path).returncode == -signal.SIGKILL
    with Journal(path, JOB) as journal:
        assert journal.done == set(range(50))


RACE = """
import sys
from pathlib import Path
from starforge_rewards.errors import InputError
from starforge_rewards.journal import Journal
path, finished = Path(sys.argv[1]), 0
while finished < 100:
    try:
        with Journal(path, {"judge": "b"}) as journal:
            assert not journal.done, "took up what was done"
            journal.add({0: "{}"})
            journal.finish(path.with_name("out.jsonl"))
            finished += 1
    except InputError as error:
        assert "another process" in str(error), error
"""


def test_processes_that_finish_and_begin_at_once_never_share_a_journal(path: Path) -> None:
    command = [sys.executable, "-c", RACE, str(path)]
    running = [
        subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[1] for process in running] == ["", "", ""]


NO_ROOM = """
import resource, sys
from pathlib import Path
from starforge_rewards.errors import InputError
from starforge_rewards.journal import Journal
path = Path(sys.argv[1])
journal = Journal(path, {"rollouts": "a", "judge": "b"})
journal.add({0: "{}"})
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    journal.add({1: '{"a": "' + "x" * 1000 + '"}'})
except InputError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.add({2: "{}"})
"""


def test_where_there_is_no_room_the_error_names_the_file_and_what_was_there_stays(
    path: Path,
) -> None:
    done = python(NO_ROOM, path)
    assert done.stderr == ""
    assert done.stdout == f"{path}: cannot be written: File too large\n"
    with Journal(path, JOB) as journal:
        assert journal.done == {0, 2}


def test_results_that_cannot_be_written_leave_the_journal(tmp_path: Path, path: Path) -> None:
    (tmp_path / "out.jsonl").mkdir()
    with Journal(path, JOB) as journal:
        journal.add({0: "{}"})
        with pytest.raises(InputError, match=r"out\.jsonl: cannot be written"):
            journal.finish(tmp_path / "out.jsonl")
    with Journal(path, JOB) as journal:
        assert journal.done == {0}
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".whole")]


def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "journal", tmp_path):
        with pytest.raises(InputError, match="cannot be written"):
            Journal(place, JOB)
