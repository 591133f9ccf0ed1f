import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from starforge_rewards.batch import Scored, score_file
from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import NotFound
from starforge_rewards.judge.cache import CachingJudge, MemoryStore
from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.question import NoAnswer, Question, Reply
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.ledger import RunLedger
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import RunQuery, User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.results import Task
from starforge_rewards.rollouts import Row
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.rubrics.weighted import Rubric, Score, Unscored
from starforge_rewards.run import Run
from starforge_rewards.scoring import score

REF = Ref(owner="alice", name="support")
ROLLOUTS = [Rollout(prompt="p", response=text) for text in ("good", "bad")]


def rubric(second: str = "Points to the section.", weight: float = 1) -> Rubric:
    criteria = [
        {"name": "Correct", "weight": 3, "description": "Every claim is true."},
        {"name": "Cites", "weight": weight, "description": second},
    ]
    return Rubric.model_validate({"scale_min": 0, "scale_max": 5, "criteria": criteria})


def answer(question: Question) -> str | Reply:
    good = "good" in str(question.evidence.parts[1].content)
    return ("5" if good else "2") if question.instruction.startswith("Correct") else "4"


class Asked:
    """A scripted judge behind a verdict cache that outlives its runs."""

    def __init__(self, function: Any = answer) -> None:
        self.scripted = ScriptedJudge(function)
        self.judge = CachingJudge(self.scripted, MemoryStore())

    def questions(self) -> list[str]:
        """What was asked since the last look, by criterion."""
        asked = [q.instruction.split("\n")[0] for q in self.scripted.asked]
        self.scripted.asked.clear()
        return asked


@pytest.fixture
def alice(database: Database) -> Registry:
    return registry_of(database, User(owner="alice"))


def run_of(judge: Any, **about: Any) -> Run:
    return Run(role="training_reward", subject="policy", judge=judge.identity.record, **about)


def scored(
    registry: Registry, asked: Asked, run: str, ref: str = str(REF), *, reuse: bool = True
) -> list[Score | Unscored]:
    held = registry.rubrics.resolve(ref)
    ledger = RunLedger(registry, run, run_of(asked.judge), reuse=reuse)
    return asyncio.run(score(held, ROLLOUTS, asked.judge, ledger=ledger))


def totals(results: Sequence[Score | Unscored]) -> list[float | None]:
    return [result.total if isinstance(result, Score) else None for result in results]


def origins(results: Sequence[Score | Unscored]) -> list[dict[str, str]]:
    return [
        {name: each.origin for name, each in result.criteria.items()}
        for result in results
        if isinstance(result, Score)
    ]


def test_a_score_that_is_there_is_found_and_no_judge_is_asked(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric())
    asked = Asked()
    first = scored(alice, asked, "run-00001")
    assert totals(first) == [4.75, 2.5]
    assert len(asked.questions()) == 4
    fresh = Asked()  # no verdict cache either
    second = scored(alice, fresh, "run-00002")
    assert totals(second) == totals(first)
    assert origins(second) == [{"Correct": "ledger", "Cites": "ledger"}] * 2
    assert fresh.questions() == []


def test_after_one_criterion_is_edited_only_that_one_is_asked_again(alice: Registry) -> None:
    asked = Asked()
    alice.rubrics.put(REF, rubric())
    scored(alice, asked, "run-00001")
    asked.questions()
    alice.rubrics.put(REF, rubric(second="Names the page."))
    after = scored(alice, asked, "run-00002")
    assert asked.questions() == ["Cites", "Cites"]
    assert origins(after) == [{"Correct": "cached", "Cites": "asked"}] * 2


def test_a_weight_only_edit_asks_nothing_and_changes_the_total(alice: Registry) -> None:
    asked = Asked()
    alice.rubrics.put(REF, rubric())
    before = scored(alice, asked, "run-00001")
    asked.questions()
    alice.rubrics.put(REF, rubric(weight=3))
    after = scored(alice, asked, "run-00002")
    assert asked.questions() == []
    assert totals(before) == [4.75, 2.5]
    assert totals(after) == pytest.approx([4.5, 3.0])
    assert totals(scored(alice, asked, "run-00003", f"{REF}@1")) == [4.75, 2.5]


def test_reuse_false_asks_everything_again_and_keeps_what_it_used(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric())
    scored(alice, Asked(), "run-00001")
    changed = Asked(lambda question: "1")
    again = scored(alice, changed, "run-00002", reuse=False)
    assert totals(again) == [1, 1]
    shown = alice.scores.of_run("run-00002").items
    assert [keyed.score.total for keyed in shown] == [1, 1]


def test_a_failed_judgement_is_never_kept(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric())
    late = NoAnswer.because("timeout", "slow")
    failing = Asked(lambda q: late if "bad" in str(q.evidence.parts[1].content) else "5")
    assert totals(scored(alice, failing, "run-00001")) == [5, None]
    assert [keyed.score.total for keyed in alice.scores.of_run("run-00001").items] == [5]
    mended = Asked()
    mended.judge.identity = failing.judge.identity
    assert len(scored(alice, mended, "run-00002")) == 2
    assert len(mended.questions()) == 2


def test_a_resolve_writes_no_usage_and_the_first_scoring_call_does(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric())
    held = alice.rubrics.resolve(str(REF))
    assert alice.rubrics.usage(REF) == []
    asked = Asked()
    ledger = RunLedger(alice, "run-00001", run_of(asked.judge))
    assert alice.rubrics.usage(REF) == []
    asyncio.run(score(held, ROLLOUTS, asked.judge, ledger=ledger))
    (used,) = alice.rubrics.usage(REF)
    assert (used.version, used.run, used.role) == (1, "run-00001", "training_reward")


def test_a_run_keeps_the_version_it_pinned_and_says_that_a_newer_one_is_there(
    alice: Registry,
) -> None:
    alice.rubrics.put(REF, rubric())
    alice.rubrics.put(REF, rubric(weight=2))
    asked = Asked()
    held = alice.rubrics.resolve(str(REF))
    ledger = RunLedger(alice, "run-00001", run_of(asked.judge))
    asyncio.run(score(held, ROLLOUTS, asked.judge, ledger=ledger))
    assert asyncio.run(ledger.newer()) == []
    for weight in (3, 4, 5):
        alice.rubrics.put(REF, rubric(weight=weight))
    asyncio.run(score(held, ROLLOUTS, asked.judge, ledger=ledger))
    assert [str(ref) for ref in asyncio.run(ledger.newer())] == [f"{REF}@5"]
    cited = alice.runs.show("run-00001").citations
    assert [citation.rubric for citation in cited] == [f"{REF}@2"]
    text = alice.rubrics.show(Ref.parse(cited[0].rubric)).rubric
    assert text["criteria"] == alice.rubrics.revisions(REF)[3].rubric["criteria"]


def test_a_rubric_that_is_not_readable_fails_before_any_question(
    database: Database, alice: Registry
) -> None:
    alice.rubrics.put(REF, rubric())
    held = alice.rubrics.resolve(str(REF))
    asked = Asked()
    bob = registry_of(database, User(owner="bob"))
    ledger = RunLedger(bob, "run-00001", run_of(asked.judge))
    with pytest.raises(NotFound):
        asyncio.run(score(held, ROLLOUTS, asked.judge, ledger=ledger))
    assert asked.questions() == []


def test_a_ledger_of_another_judge_is_refused(alice: Registry) -> None:
    alice.rubrics.put(REF, rubric())
    ledger = RunLedger(alice, "run-00001", run_of(ScriptedJudge(answer, name="other")))
    with pytest.raises(ValueError, match="another judge"):
        asyncio.run(score(alice.rubrics.resolve(str(REF)), ROLLOUTS, Asked().judge, ledger=ledger))


def test_rubrics_without_a_version_are_scored_and_recorded_nowhere(alice: Registry) -> None:
    asked = Asked()
    ledger = RunLedger(alice, "run-00001", run_of(asked.judge))
    held = ResolvedRubric.pin(rubric())
    assert totals(asyncio.run(score(held, ROLLOUTS, asked.judge, ledger=ledger))) == [4.75, 2.5]
    assert alice.runs.list(RunQuery()).items == ()


def file_tasks(held: ResolvedRubric, count: int = 40) -> list[Task]:
    return [
        Task(Row(n, f"row-{n}", Rollout(prompt="p", response=f"good {n}")), held)
        for n in range(count)
    ]


def scored_file(registry: Registry, asked: Asked, tasks: list[Task], out: Path) -> Scored:
    def record(run_id: str) -> RunLedger:
        return RunLedger(registry, run_id, run_of(asked.judge))

    return asyncio.run(score_file(tasks, asked.judge, out, record=record))


def test_a_file_that_was_interrupted_goes_on_as_the_same_run(
    alice: Registry, tmp_path: Path
) -> None:
    alice.rubrics.put(REF, rubric())
    held = alice.rubrics.resolve(str(REF))
    out = tmp_path / "out.jsonl"
    left = [15]

    def breaks(question: Question) -> str | Reply:
        left[0] -= 1
        if not left[0]:
            raise ZeroDivisionError
        return "4"

    asked = Asked(breaks)
    with pytest.raises(ExceptionGroup):
        scored_file(alice, asked, file_tasks(held), out)
    (broken,) = alice.runs.list(RunQuery()).items
    assert (broken.status, broken.outcome) == ("failed", None)
    done = scored_file(alice, asked, file_tasks(held), out)
    assert done.run == broken.id
    assert done.resumed < 40
    whole = alice.runs.show(done.run)
    assert whole.status == "finished"
    assert whole.outcome == done.outcome
    assert (done.outcome.scored, done.outcome.score) == (40, 4)
    rows = alice.runs.results(done.run)
    assert [(row.key, row.total) for row in rows] == [(f"row-{n}", 4) for n in range(40)]
    assert len(alice.scores.of_run(done.run).items) == 40
    evidence = {keyed.key.evidence for keyed in alice.scores.of_run(done.run).items}
    assert evidence == {row.evidence for row in rows}


def test_a_row_without_a_score_is_recorded_with_its_cause_and_in_no_mean(
    alice: Registry, tmp_path: Path
) -> None:
    alice.rubrics.put(REF, rubric())
    held = alice.rubrics.resolve(str(REF))
    late = NoAnswer.because("timeout", "slow")
    asked = Asked(lambda q: late if q.evidence.parts[1].content == "good 3" else "4")
    done = scored_file(alice, asked, file_tasks(held, 5), tmp_path / "out.jsonl")
    (usage,) = alice.rubrics.usage(REF)
    assert (usage.score, usage.status) == (4, "finished")
    outcome = alice.runs.show(done.run).outcome
    assert outcome is not None
    assert (outcome.rows, outcome.scored, outcome.unscored) == (5, 4, {"timeout": 1})
    row = alice.runs.results(done.run)[3]
    assert (row.outcome, row.cause, row.total) == ("unscored", "timeout", None)
