import asyncio
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from starforge_rewards.batch import Scored, assign, score_file
from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import Common
from starforge_rewards.judge.scripted import Scripted, ScriptedJudge
from starforge_rewards.question import NoAnswer, Question, Reply
from starforge_rewards.registry.folder import FolderRegistry, RowRubrics
from starforge_rewards.results import Result, Task, refuse_foreign, result_of
from starforge_rewards.rollouts import Row
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.rubrics.weighted import Criterion, Rubric, Unscored

FILE = Path("rollouts.jsonl")
LATE = NoAnswer.because("timeout", "too slow")


def rubric(*names: str, ref: str | None = None) -> ResolvedRubric:
    criteria = tuple(Criterion(name=name, weight=1) for name in names or ("Correct", "Brief"))
    held = Rubric(scale_min=0, scale_max=5, criteria=criteria)
    return ResolvedRubric.pin(held, Ref.parse(ref) if ref else None)


def tasks(count: int, held: ResolvedRubric | None = None) -> list[Task]:
    held = held or rubric()
    return [
        Task(Row(n, f"row-{n}", Rollout(prompt="p", response=str(n))), held)
        for n in range(1, count + 1)
    ]


def number(question: Question) -> int:
    return int(str(question.evidence.parts[1].content))


def results(out: Path) -> list[Result]:
    return [Result.model_validate_json(line) for line in out.read_text().splitlines()]


def run(
    some: Sequence[Task],
    judge: ScriptedJudge | Scripted,
    out: Path,
    advanced: list[int] | None = None,
) -> Scored:
    asked = judge if isinstance(judge, ScriptedJudge) else ScriptedJudge(judge)
    advance = (advanced if advanced is not None else []).append
    return asyncio.run(score_file(some, asked, out, advance))


def test_results_stand_in_input_order_whatever_finishes_first(tmp_path: Path) -> None:
    shuffled = random.Random(0)  # noqa: S311 - not for secrets

    async def judge(question: Question) -> str:
        for _ in range(shuffled.randrange(20)):
            await asyncio.sleep(0)
        return str(number(question) % 6)

    advanced: list[int] = []
    done = run(tasks(500), judge, tmp_path / "out.jsonl", advanced)
    assert (done.outcome.rows, done.outcome.scored, done.outcome.unscored) == (500, 500, {})
    assert done.resumed == 0
    rows = results(tmp_path / "out.jsonl")
    assert [row.id for row in rows] == [f"row-{n}" for n in range(1, 501)]
    assert [row.total for row in rows] == [n % 6 for n in range(1, 501)]
    assert sum(advanced) == 500
    assert len(advanced) > 40


def test_every_row_of_results_has_every_key(tmp_path: Path) -> None:
    def judge(question: Question) -> str | Reply:
        return LATE if number(question) == 2 and question.instruction == "Brief" else "4"

    outcome = run(tasks(3), judge, tmp_path / "out.jsonl").outcome
    assert (outcome.rows, outcome.scored, outcome.unscored) == (3, 2, {"timeout": 1})
    assert (outcome.score, outcome.normalized) == (4, 0.8)  # of the scored ones alone
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [set(json.loads(line)) for line in lines] == [set(Result.model_fields)] * 3
    scored, unscored, _ = results(tmp_path / "out.jsonl")
    assert (scored.outcome, scored.total, scored.cause) == ("scored", 4, None)
    assert (unscored.outcome, unscored.total, unscored.cause) == ("unscored", None, "timeout")
    assert unscored.missing == ("Brief",)
    assert unscored.detail == "Brief: too slow"
    assert unscored.criteria["Correct"].value == 4


def test_a_row_says_whose_score_it_is(tmp_path: Path) -> None:
    judge = ScriptedJudge(lambda _: "5")
    held = rubric(ref="alice/support@2")
    run([*tasks(1, held), *tasks(1)], judge, tmp_path / "out.jsonl")
    first, second = results(tmp_path / "out.jsonl")
    assert (first.rubric, first.unversioned) == ("alice/support@2", False)
    assert (second.rubric, second.unversioned) == (None, True)
    assert {first.rubric_digest, second.rubric_digest} == {held.digest}
    assert first.judge == judge.identity.digest


def test_empty_responses_are_decided_by_the_judges_rule(tmp_path: Path) -> None:
    task = Task(Row(1, "a", Rollout(prompt="p", response="")), rubric())
    run([task], lambda _: "5", tmp_path / "one.jsonl")
    (row,) = results(tmp_path / "one.jsonl")
    assert (row.total, row.decided) == (0, "empty_response")
    rules = Common(empty_response="unscored")
    outcome = run([task], ScriptedJudge(lambda _: "5", rules=rules), tmp_path / "two.jsonl").outcome
    assert outcome.unscored == {"empty_response": 1}


# --- resumption ---


class Breaks:
    """Answers so many questions, a few at a time, and then raises."""

    def __init__(self, after: int) -> None:
        self.after, self.answered = after, 0
        self._places = asyncio.Semaphore(8)

    async def judge(self, question: Question) -> str:
        async with self._places:
            await asyncio.sleep(0)
            if self.answered >= self.after:
                raise OSError("the engine died")
            self.answered += 1
            return str(number(question) % 6)


def test_what_an_interrupted_run_had_scored_is_not_asked_again(tmp_path: Path) -> None:
    out, some = tmp_path / "out.jsonl", tasks(300)
    with pytest.raises(ExceptionGroup):
        run(some, Breaks(after=350).judge, out)
    assert not out.exists()
    lines = (tmp_path / "out.jsonl.journal").read_text().splitlines()[1:]
    assert 100 < len(lines) < 176
    again = ScriptedJudge(lambda question: str(number(question) % 6))
    advanced: list[int] = []
    done = run(some, again, out, advanced)
    assert (done.outcome.rows, done.outcome.scored, done.resumed) == (300, 300, len(lines))
    assert advanced[0] == len(lines)
    assert sum(advanced) == 300
    assert len(again.asked) == 2 * (300 - len(lines))
    assert [row.total for row in results(out)] == [n % 6 for n in range(1, 301)]
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_unscored_rows_of_an_interrupted_run_are_asked_again(tmp_path: Path) -> None:
    out, some = tmp_path / "out.jsonl", tasks(40)

    def judge(question: Question) -> str | Reply:
        if number(question) == 40:
            raise OSError("the engine died")
        return LATE if number(question) % 2 else "3"

    with pytest.raises(ExceptionGroup):
        run(some, judge, out)
    again = ScriptedJudge(lambda _: "3")
    done = run(some, again, out)
    assert {number(question) for question in again.asked} == {*range(1, 40, 2), 40}
    assert (done.outcome.scored, done.resumed) == (40, 19)
    assert [row.id for row in results(out)] == [f"row-{n}" for n in range(1, 41)]


def interrupted(out: Path, some: Sequence[Task]) -> None:
    with pytest.raises(ExceptionGroup):
        run(some, Breaks(after=10).judge, out)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (tasks(41), "rollouts, rubrics"),
        (tasks(40, rubric("Correct", "Kind")), "rubrics"),
        (tasks(40, rubric(ref="alice/support")), "rubrics"),
    ],
)
def test_another_job_does_not_go_on_with_these_results(
    tmp_path: Path, change: Sequence[Task], said: str
) -> None:
    out = tmp_path / "out.jsonl"
    interrupted(out, tasks(40))
    with pytest.raises(InputError, match=rf"unfinished results of another job \({said}\)"):
        run(change, lambda _: "5", out)
    with pytest.raises(InputError, match=r"another job \(judge\)"):
        run(tasks(40), ScriptedJudge(lambda _: "5", name="other"), out)
    assert run(tasks(40), lambda _: "5", out).outcome.rows == 40


def test_finished_results_stay_until_new_ones_are_whole(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run(tasks(40), lambda _: "5", out)
    before = out.read_bytes()
    interrupted(out, tasks(40))
    assert out.read_bytes() == before


# --- the file of results ---


@pytest.mark.parametrize(
    "content", [b"notes\n", b"{}\n", b'{"outcome": "scored"}', b"[1]\n", b"\xff\xfe\0", b"5"]
)
def test_a_file_that_holds_no_results_is_left_alone(tmp_path: Path, content: bytes) -> None:
    out = tmp_path / "out.jsonl"
    out.write_bytes(content)
    with pytest.raises(InputError, match=r"out\.jsonl: exists and holds no results"):
        run(tasks(1), lambda _: "5", out)
    assert out.read_bytes() == content


@pytest.mark.parametrize("added", [b"my notes\n", b"{}\n", b"\n", b"[" * 10**5 + b"\n"])
def test_results_that_somebody_added_to_are_left_alone(tmp_path: Path, added: bytes) -> None:
    out = tmp_path / "out.jsonl"
    run(tasks(2), lambda _: "5", out)
    with out.open("ab") as file:
        file.write(added)
    with pytest.raises(InputError, match="exists and holds no results"):
        refuse_foreign(out)


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").symlink_to("out.jsonl")
    with pytest.raises(InputError, match=r"out\.jsonl: cannot be read: Too many levels"):
        refuse_foreign(tmp_path / "out.jsonl")


def test_a_link_to_nothing_yet_may_name_results(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").symlink_to("later.jsonl")
    refuse_foreign(tmp_path / "out.jsonl")


def test_devices_and_folders_are_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for out in (Path(os.devnull), tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError, match="exists and holds no results"):
            refuse_foreign(out)


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        refuse_foreign(tmp_path / ("x" * 300))


def test_results_and_empty_files_may_be_replaced(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b" / "out.jsonl"
    refuse_foreign(out)
    run(tasks(1), lambda _: "5", out)
    run(tasks(1), lambda _: "0", out)
    assert results(out)[0].total == 0
    out.write_bytes(b"")
    refuse_foreign(out)


# --- a row's own rubric ---


def row(given: Any, line: int = 7) -> Row:
    return Row(line, "a", Rollout(prompt="p", response="r", rubric=given))


def test_a_rows_own_rubric_goes_before_the_runs(tmp_path: Path) -> None:
    inline = {"criteria": [{"name": "Own", "weight": 1}]}
    rows = [row(None), row(inline), row("starforge/support-answer")]
    held = assign(rows, rubric(), RowRubrics(FolderRegistry()), FILE)
    assert [len(task.rubric.rubric.criteria) for task in held] == [2, 1, 3]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, r"rubric: the row has no rubric of its own.*--rubric"),
        ("support", r"rubric: 'support' is a bare name"),
        ("alice/none", r"rubric: no rubric alice/none"),
        ({"criteria": []}, r"rubric\.criteria: "),
        ({"criteria": [{"name": "A", "weight": 1, "w": 1}]}, r"rubric\.criteria\[0\]\.w: unknown"),
    ],
)
def test_a_row_without_a_usable_rubric_names_file_line_and_field(given: Any, problem: str) -> None:
    with pytest.raises(InputError, match=rf"^rollouts\.jsonl:7: {problem}"):
        assign([row(given)], None, RowRubrics(FolderRegistry()), FILE)


def test_a_rubric_file_that_a_row_names_and_is_refused_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "bad.yaml").write_text("criteria:\n  - name: A\n    weight: x\n")
    own = RowRubrics(FolderRegistry(tmp_path))
    problem = r"^rollouts\.jsonl:7: rubric: .*bad\.yaml:3: criteria\[0\]\.weight: "
    with pytest.raises(InputError, match=problem):
        assign([row("alice/bad")], None, own, FILE)


def test_a_result_is_read_back_as_it_was_written() -> None:
    result = result_of(tasks(1)[0], Unscored(cause="timeout", missing=("Correct",)), "judge")
    assert Result.model_validate_json(result.model_dump_json()) == result
