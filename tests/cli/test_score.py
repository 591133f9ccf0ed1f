import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pyarrow.parquet
import pytest

from starforge_rewards.cli import main
from tests.cli.score_job import RUBRIC, calls, job, results, start, write


class Ended(NamedTuple):
    code: object
    out: str
    err: str


Score = Callable[..., Ended]


@pytest.fixture
def score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Score:
    """`starforge score` in this process, in a folder of its own."""
    monkeypatch.chdir(job(tmp_path, "5", "0"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "folder_judge", raising=False)
    monkeypatch.setenv("CALLS", "calls")
    monkeypatch.setenv("COLUMNS", "80")

    def run(
        *more: str,
        rollouts: str = "rollouts.jsonl",
        rubric: str = "rubric.yaml",
        judge: str = "judge.yaml",
    ) -> Ended:
        usual = ["--judge", judge, "--out", "out.jsonl", *(["--rubric", rubric] if rubric else [])]
        monkeypatch.setattr(sys, "argv", ["starforge", "score", rollouts, *usual, *more])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return Ended(ended.value.code, *capsys.readouterr())

    return run


# --- what a run says ---


def test_a_scored_file_ends_with_0_and_a_table(score: Score, tmp_path: Path) -> None:
    ended = score()
    assert ended.code == 0
    words = [line.split() for line in ended.out.splitlines()]
    assert ["rollouts", "2"] in words
    assert ["questions", "asked", "4"] in words
    assert ended.out.endswith("Results: out.jsonl\n")
    assert [(row["id"], row["total"]) for row in results(tmp_path)] == [("row-1", 5), ("row-2", 0)]


def test_as_json_the_summary_is_one_line_for_machines(score: Score, tmp_path: Path) -> None:
    job(tmp_path, "5", "late", "4", "4")
    ended = score("--json")
    (line,) = ended.out.splitlines()
    said = json.loads(line)
    assert said.pop("seconds") >= 0
    assert said == {
        "rows": 4,
        "scored": 3,
        "unscored": {"timeout": 1},
        "resumed": 0,
        "asked": 4,
        "cached": 2,
        "failed": {"timeout": 2},
        "prompt_tokens": 0,
        "computed_tokens": 0,
        "generated_tokens": 0,
        "out": "out.jsonl",
        "score": pytest.approx(13 / 3),
        "normalized": pytest.approx(13 / 15),
        "run": None,
    }


def test_a_rollout_without_a_score_ends_with_1_and_stands_in_its_place(
    score: Score, tmp_path: Path
) -> None:
    job(tmp_path, "5", "late", "4")
    ended = score()
    assert ended.code == 1
    assert "unscored: timeout" in ended.out
    assert [row["total"] for row in results(tmp_path)] == [5, None, 4]
    assert results(tmp_path)[1]["cause"] == "timeout"


@pytest.mark.parametrize("said", ["6", "five", "5.0", "-1"])
def test_a_judge_that_answers_outside_the_labels_leaves_the_row_unscored(
    score: Score, tmp_path: Path, said: str
) -> None:
    job(tmp_path, "5", f"{said} said", "4")
    assert score().code == 1
    assert [row["outcome"] for row in results(tmp_path)] == ["scored", "unscored", "scored"]
    row = results(tmp_path)[1]
    assert (row["cause"], row["total"], row["missing"]) == ("off_scale", None, ["Correct", "Brief"])
    assert row["detail"] == f"Correct: {said!r} is not one of the choices"


def test_rows_may_have_rubrics_of_their_own(score: Score, tmp_path: Path) -> None:
    inline = {"criteria": [{"name": "Own", "weight": 1}], "scale_min": 0, "scale_max": 3}
    usual = {"prompt": "p", "response": "3"}
    shipped = "starforge/support-answer"
    write(tmp_path / "rollouts.jsonl", {**usual, "rubric": inline}, {**usual, "rubric": shipped})
    assert score(rubric="").code == 0
    first, second = results(tmp_path)
    assert (first["total"], first["rubric"], first["normalized"]) == (3, None, 1)
    assert (second["total"], second["rubric"]) == (3, shipped)


def test_parquet_gives_the_same_results_as_jsonl(score: Score, tmp_path: Path) -> None:
    job(tmp_path, "5", "3 of 5", "late")
    assert score().code == 1
    lines = results(tmp_path)
    columns = {"prompt": ["p"] * 3, "response": ["5", "3 of 5", "late"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "rollouts.parquet")
    assert score(rollouts="rollouts.parquet").code == 1
    assert results(tmp_path) == lines


def test_ten_thousand_identical_rollouts_ask_one_question_for_each_criterion(
    score: Score, tmp_path: Path
) -> None:
    job(tmp_path, *["4"] * 10_000)
    assert score().code == 0
    assert calls(tmp_path) == ["4 Correct", "4 Brief"]
    rows = results(tmp_path)
    assert [row["id"] for row in rows] == [f"row-{n}" for n in range(1, 10_001)]
    assert {row["total"] for row in rows} == {4}


def test_results_go_into_folders_that_are_made(score: Score, tmp_path: Path) -> None:
    ended = score("--out", "new/:smile: [bold]/out.jsonl")
    assert ended.code == 0
    assert ended.out.endswith("Results: new/:smile: [bold]/out.jsonl\n")
    assert len(results(tmp_path / "new" / ":smile: [bold]")) == 2


# --- bad input ---

ROW = {"prompt": "p", "response": "5"}
BAD_ROWS: list[tuple[object, str]] = [
    ("{", "rollouts.jsonl:2: not JSON"),
    ('{"prompt": "p", "response": NaN}', "rollouts.jsonl:2: not JSON: NaN"),
    ({"prompt": "p"}, "rollouts.jsonl:2: response: Field required"),
    ({**ROW, "respones": "r"}, "rollouts.jsonl:2: respones: unknown key"),
    ({**ROW, "id": "row-1"}, "rollouts.jsonl:2: id: 'row-1' is already"),
    ({**ROW, "rubric": {"criteria": []}}, "rollouts.jsonl:2: rubric.criteria: "),
    ({**ROW, "rubric": "a/none"}, "rollouts.jsonl:2: rubric: no rubric a/none"),
    ({**ROW, "rubric": "none"}, "rollouts.jsonl:2: rubric: 'none' is a bare name"),
    ("\udcff", "rollouts.jsonl:2: not UTF-8"),
]


def refused(ended: Ended, said: str, folder: Path) -> None:
    """One line that begins with the place; nothing is asked and nothing is left behind."""
    assert ended.code == 2
    (line,) = ended.err.splitlines()
    assert line.startswith(f"error: {said}")
    assert ended.out == ""
    assert calls(folder) == []
    assert not [name for name in os.listdir(folder) if "out.jsonl" in name]


@pytest.mark.parametrize(("bad", "said"), BAD_ROWS)
def test_a_row_that_cannot_be_used_is_named_before_any_question(
    score: Score, tmp_path: Path, bad: object, said: str
) -> None:
    line = bad if isinstance(bad, str) else json.dumps(bad)
    text = f"{json.dumps(ROW)}\n{line}\n{json.dumps(ROW)}\n"
    (tmp_path / "rollouts.jsonl").write_text(text, errors="surrogateescape")
    refused(score(), said, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weight: 3", "weight: .nan", "rubric.yaml:5: criteria[0].weight: "),
        ("weight: 3", "weight: -.inf", "rubric.yaml:5: criteria[0].weight: "),
        ("weight: 3", "weigth: 3", "rubric.yaml:4: criteria[0].weight: Field required"),
        ("Brief", "Correct", "rubric.yaml:6: criteria[1].name: 'Correct' is there twice"),
        (RUBRIC[RUBRIC.index("criteria") :], "criteria: []", "rubric.yaml:3: criteria: "),
        ("scale_min: 0", "scale_min: 9", "rubric.yaml:1: scale_min: must be below"),
        ("scale_max: 5", "levels: 99", "rubric.yaml:2: levels: "),
        (RUBRIC, "criteria: [", "rubric.yaml:1: not YAML"),
        (RUBRIC, "", "rubric.yaml: "),
    ],
)
def test_a_rubric_that_cannot_be_used_is_named_with_line_and_field(
    score: Score, tmp_path: Path, old: str, new: str, said: str
) -> None:
    (tmp_path / "rubric.yaml").write_text(RUBRIC.replace(old, new))
    refused(score(), said, tmp_path)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"rubric": "none.yaml"}, "none.yaml: no such file"),
        ({"rubric": "a/none"}, "no rubric a/none in "),
        ({"rubric": ""}, "rollouts.jsonl:1: rubric: the row has no rubric of its own"),
        ({"rollouts": "none.jsonl"}, "none.jsonl: no such file"),
        ({"rollouts": "."}, ".: cannot be read: Is a directory"),
        ({"judge": "none.yaml"}, "none.yaml: no such file"),
        ({"rollouts": "rubric.yaml"}, "rubric.yaml:1: not JSON"),
    ],
)
def test_what_is_not_there_is_named(
    score: Score, tmp_path: Path, named: dict[str, str], said: str
) -> None:
    refused(score(**named), said, tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "kind: vllm\nmodel: /no/such/model\n",
            "judge.yaml: model: unknown model '/no/such/model'",
        ),
        ("kind: vllm\nmodel: .\n", "judge.yaml: model: "),
        ("kind: scripted\nfunction: none:judge\n", "judge.yaml: function: cannot import none"),
        ("kind: scripted\nfunction: json\n", "judge.yaml: function: 'json' is not of the form"),
        ("kind: oracle\n", "judge.yaml:1: kind: "),
        ("kind: scripted\nfunction: a:b\nmin_mass: 2\n", "judge.yaml:3: min_mass: "),
    ],
)
def test_a_judge_that_cannot_be_opened_is_named(
    score: Score, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "judge.yaml").write_text(text)
    refused(score(), said, tmp_path)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_no_scored_file(score: Score, tmp_path: Path, content: str) -> None:
    (tmp_path / "rollouts.jsonl").write_text(content)
    refused(score(), "rollouts.jsonl: holds no rollouts", tmp_path)


@pytest.mark.parametrize("own", ["rollouts.jsonl", "rubric.yaml", "judge.yaml", "."])
def test_no_input_is_overwritten(score: Score, tmp_path: Path, own: str) -> None:
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert score("--out", own).code == 2
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_made_is_said_in_one_line(score: Score) -> None:
    ended = score("--out", "rubric.yaml/out.jsonl")
    assert ended.code == 2
    assert "rubric.yaml/out.jsonl.journal: cannot be written: " in ended.err
    assert "Traceback" not in ended.err


def test_a_function_that_returns_no_label_is_a_mistake_in_the_judges_file(
    score: Score, tmp_path: Path
) -> None:
    (tmp_path / "folder_judge.py").write_text("def judge(question):\n    return 5\n")
    ended = score()
    assert ended.code == 2
    errors = [line for line in ended.err.splitlines() if line.startswith("error:")]
    assert errors == ["error: folder_judge:judge returned int, not a label or a Reply"]


def test_a_link_to_itself_is_no_place_for_results(score: Score, tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    ended = score("--out", "loop.jsonl")
    assert ended.code == 2
    assert ended.err.startswith("error: loop.jsonl: cannot be read: Too many levels")


# --- where nobody takes the summary ---


@pytest.mark.parametrize(("last", "code"), [("4", 0), ("late", 1)])
@pytest.mark.parametrize("more", [[], ["--json"]])
@pytest.mark.parametrize("broken", ["full", "pipe"])
def test_a_summary_that_cannot_be_printed_changes_no_exit_code(
    tmp_path: Path, broken: str, more: list[str], last: str, code: int
) -> None:
    job(tmp_path, "5", last)
    if broken == "full":
        stdout = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, stdout = os.pipe()
        os.close(reader)
    process = start(tmp_path, *more, stdout=stdout)
    os.close(stdout)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert ("cannot print the results: No space left on device" in err) == (broken == "full")
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert len(results(tmp_path)) == 2


# --- kills ---


def test_after_a_kill_only_what_is_missing_is_asked_and_rows_stand_once_in_order(
    tmp_path: Path,
) -> None:
    texts = [f"{n % 6} number {n}" for n in range(400)]
    job(tmp_path, *texts)
    first = start(tmp_path, KILL_AT="500")
    first.communicate(timeout=60)
    assert first.returncode == -signal.SIGKILL
    assert not (tmp_path / "out.jsonl").exists()
    kept = len((tmp_path / "out.jsonl.journal").read_text().splitlines()) - 1
    assert 150 < kept <= 250
    before = len(calls(tmp_path))
    second = start(tmp_path, "--json")
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert len(calls(tmp_path)) - before == 2 * (400 - kept)
    assert json.loads(out)["resumed"] == kept
    assert [row["id"] for row in results(tmp_path)] == [f"row-{n}" for n in range(1, 401)]
    assert [row["total"] for row in results(tmp_path)] == [n % 6 for n in range(400)]
    assert not (tmp_path / "out.jsonl.journal").exists()


def test_an_interrupted_run_says_that_it_can_go_on(tmp_path: Path) -> None:
    job(tmp_path, *[f"5 number {n}" for n in range(5000)])
    process = start(tmp_path)
    while len(calls(tmp_path)) < 20:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err


def test_a_second_process_on_the_same_results_is_refused(tmp_path: Path) -> None:
    job(tmp_path, *[f"5 number {n}" for n in range(5000)])
    first = start(tmp_path)
    while len(calls(tmp_path)) < 20:
        assert first.poll() is None
    second = start(tmp_path, CALLS="others")
    _, err = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "out.jsonl.journal: another process is writing these results" in err
    assert not (tmp_path / "others").exists()
    first.kill()
    first.communicate(timeout=60)


def test_another_judge_does_not_go_on_with_what_was_killed(tmp_path: Path) -> None:
    job(tmp_path, *[f"5 number {n}" for n in range(100)])
    start(tmp_path, KILL_AT="150").communicate(timeout=60)
    with (tmp_path / "judge.yaml").open("a") as file:
        file.write("min_mass: 0.4\n")
    second = start(tmp_path)
    _, err = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "another job (judge)" in err
