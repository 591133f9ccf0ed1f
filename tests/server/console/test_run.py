import pytest
from playwright.sync_api import expect

from starforge_rewards.registry.records import ScoreKey
from starforge_rewards.run import JudgeRecord, Outcome, ResultRow, Run
from tests.registry.samples import score
from tests.server.asking import BODY
from tests.server.console.people import CRITERIA, Person

pytestmark = pytest.mark.browser

JUDGE = JudgeRecord.of({"model": "our-judge", "read": "logprobs"})


def record(person: Person, cited: str, run_id: str | None = None, **about: object) -> str:
    """A run that cites a version; its id."""
    run_id = run_id or f"run-of-{person.owner}"
    said = {"role": "training_reward", "judge": JUDGE, "citations": [cited], "status": "running"}
    person.registry.runs.put(run_id, Run.model_validate(said | about))
    return run_id


def five_versions(alice: Person) -> str:
    """Version 2's reference."""
    alice.write(description="Text of version 1.")
    second = str(alice.write(description="Text of version 2."))
    for number in (3, 4, 5):
        alice.write(description=f"Text of version {number}.")
    return second


def test_a_run_shows_the_whole_text_that_it_cited_after_the_rubric_went_on(alice: Person) -> None:
    run_id = record(alice, five_versions(alice), role="benchmark_score", runner="safety")
    alice.go(f"/runs/{run_id}")
    cited = alice.page.get_by_role("article")
    expect(cited.get_by_role("heading")).to_have_text(f"{alice.owner}/answer-quality@2")
    expect(cited).to_contain_text("Text of version 2.")
    expect(cited).not_to_contain_text("Text of version 5.")
    for criterion in CRITERIA:
        expect(cited).to_contain_text(criterion["description"])
    expect(alice.page.get_by_text("benchmark score · safety")).to_be_visible()
    alice.go(f"{alice.path()}/usage")
    row = alice.page.locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row.get_by_role("cell").first).to_have_text("@2")
    expect(row).to_contain_text("benchmark score")
    expect(row).to_contain_text("safety")
    row.get_by_role("link").click()
    expect(alice.page).to_have_title(f"Run {run_id} · Starforge Rewards")


def test_rows_scores_and_causes_are_shown(alice: Person) -> None:
    plain = [{"name": "Correct", "weight": 1}]
    ref = str(alice.write(scale_min=0, scale_max=1, criteria=plain))
    outcome = Outcome(rows=2, scored=1, unscored={"timeout": 1}, score=0.5, normalized=0.5)
    run_id = record(alice, ref, status="finished", outcome=outcome, subject="<b>model</b>")
    evidence = "b" * 64
    rows = [
        ResultRow(key="first", outcome="scored", total=0.5, rubric=ref, evidence=evidence),
        ResultRow(key="second", position=1, outcome="unscored", cause="timeout", detail="<i>slow"),
    ]
    alice.registry.runs.add_results(run_id, rows)
    alice.registry.scores.add(run_id, {ScoreKey(rubric=ref, evidence=evidence): score(0.5)})
    alice.go(f"/runs/{run_id}")
    main = alice.page.locator("#main")
    expect(main).to_contain_text("<b>model</b>")
    expect(main).to_contain_text("our-judge")
    table = alice.page.get_by_role("table", name="Rows of this run")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table.get_by_role("row").nth(1)).to_contain_text("0.5")
    expect(table.get_by_role("row").nth(2)).to_contain_text("timeout <i>slow")
    used = alice.page.get_by_role("table", name="Scores that this run used")
    expect(used.get_by_role("row").nth(1)).to_contain_text("Correct 0.5")
    causes = alice.page.get_by_role("table", name="Rows without a score")
    expect(causes.get_by_role("row").nth(1)).to_have_text("timeout1")


def test_more_rows_come_when_they_are_asked_for(alice: Person) -> None:
    run_id = record(alice, str(alice.write()))
    rows = [
        ResultRow(key=f"row-{n}", position=n, outcome="scored", total=float(n)) for n in range(60)
    ]
    alice.registry.runs.add_results(run_id, rows)
    alice.go(f"/runs/{run_id}")
    table = alice.page.get_by_role("table", name="Rows of this run")
    expect(table.locator("tbody tr")).to_have_count(50)
    more = alice.page.get_by_role("button", name="Show more").locator("visible=true")
    more.click()
    expect(table.locator("tbody tr")).to_have_count(60)
    expect(more).to_have_count(0)


def test_a_citation_that_is_not_readable_any_more_says_so(alice: Person, bob: Person) -> None:
    ref = str(alice.write(visibility="public"))
    run_id = record(bob, ref)
    alice.write(visibility="private", description="Hidden by now.")
    bob.go(f"/runs/{run_id}")
    expect(bob.page.get_by_role("article")).to_contain_text("not readable to you any more")
    expect(bob.page.get_by_role("article")).to_contain_text(ref)
    expect(bob.page.locator("#main")).not_to_contain_text(str(BODY["description"]))


def test_runs_are_filtered_by_role_status_and_rubric(alice: Person) -> None:
    one, other = str(alice.write("one")), str(alice.write("other"))
    record(alice, one, f"first-{alice.owner}")
    record(alice, other, f"second-{alice.owner}", role="gate", status="failed")
    alice.go("/runs")
    lines = alice.page.locator("tbody tr")
    expect(lines).to_have_count(2)
    alice.page.get_by_label("Cites rubric").fill(f"{alice.owner}/one")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text(f"first-{alice.owner}")
    alice.go("/runs?role=gate&status=failed")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text(f"second-{alice.owner}")
    alice.page.get_by_label("Cites rubric").fill("bare")
    expect(alice.alert()).to_contain_text("is a bare name")


@pytest.mark.parametrize("run_id", ["absent-00000000", "x", "%00%00%00%00%00%00%00%00"])
def test_another_s_run_is_the_same_page_as_an_absent_one(
    run_id: str, alice: Person, bob: Person
) -> None:
    theirs = record(alice, str(alice.write()))
    assert bob.go(f"/runs/{theirs}") == 404
    assert bob.go(f"/runs/{run_id}") == 404
    expect(bob.page.get_by_role("heading", level=1)).to_have_text("Not found")
