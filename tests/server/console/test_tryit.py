import pytest
from playwright.sync_api import Locator, expect

from tests.server.console.people import Person

pytestmark = pytest.mark.browser


@pytest.fixture
def panel(alice: Person) -> Locator:
    """Of an editor with the specification's rubric."""
    alice.write()
    alice.go(f"{alice.path()}/edit")
    return alice.page.get_by_role("region", name="Try")


def ask(panel: Locator, answer: str) -> None:
    panel.get_by_label("Prompt").fill("How?")
    panel.get_by_label("Answer").fill(answer)
    panel.get_by_role("button", name="Score").click()


def test_an_answer_is_scored_with_the_text_as_it_stands(alice: Person, panel: Locator) -> None:
    ask(panel, "So.")
    expect(panel).to_contain_text("unversioned, not recorded")
    total = panel.locator(".sf-total")
    expect(total).to_have_text("3.8333on 0 to 5normalized 0.7667")
    rows = panel.get_by_role("row")
    expect(rows).to_have_count(4)
    expect(rows.nth(1)).to_contain_text("Factually correct")
    expect(rows.nth(1).get_by_role("cell").last).to_have_text("5")
    alice.field("Weight").first.fill("0")
    panel.get_by_role("button", name="Score").click()
    expect(total).to_contain_text("2.6667")
    assert alice.current().version == 1
    assert alice.registry.rubrics.usage(alice.current().ref) == []


def test_a_failed_judgement_is_its_cause_and_no_number(alice: Person, panel: Locator) -> None:
    ask(panel, "late")
    said = panel.get_by_role("alert").locator("p")
    expect(said).to_have_text(["No score: timeout", "Factually correct: too slow"])
    expect(panel.locator(".sf-total")).to_have_count(0)


def test_a_judge_that_breaks_is_said(alice: Person, panel: Locator) -> None:
    ask(panel, "broken")
    expect(panel.get_by_role("alert")).to_contain_text("the judge failed")
    expect(panel.locator(".sf-total")).to_have_count(0)


def test_a_draft_that_cannot_be_read_is_not_scored(alice: Person, panel: Locator) -> None:
    alice.field("Weight").first.fill("x")
    ask(panel, "So.")
    expect(panel.get_by_role("alert")).to_contain_text("correct them first")


def test_an_empty_answer_is_decided_by_rule_and_says_so(alice: Person, panel: Locator) -> None:
    ask(panel, " ")
    expect(panel).to_contain_text("the least of the scale, by rule")
