import pytest
from playwright.sync_api import expect

from tests.server.console.people import CRITERIA, Person

pytestmark = pytest.mark.browser


def three_versions(alice: Person) -> None:
    alice.write()
    alice.write(description="Scoring refunds.")
    first, *others = CRITERIA
    edited = {**first, "weight": 4.0, "description": "Every claim about the product is false."}
    alice.write(criteria=[edited, *others], description="Scoring refunds.")


def test_every_version_is_there_with_its_whole_text_newest_first(alice: Person) -> None:
    three_versions(alice)
    alice.go(f"{alice.path()}/revisions")
    headings = alice.page.get_by_role("heading", level=2)
    expect(headings).to_have_text(["Compare", "Version 3", "Version 2", "Version 1"])
    oldest = alice.page.get_by_role("region", name="Version 1")
    for criterion in CRITERIA:
        expect(oldest).to_contain_text(criterion["description"])


def test_two_versions_are_compared_by_sign_and_line_and_it_is_said_what_is_asked_again(
    alice: Person,
) -> None:
    three_versions(alice)
    alice.go(f"{alice.path()}/revisions?before=1&after=3")
    compared = alice.page.get_by_role("region", name="Compare")
    gone, came = compared.locator("del"), compared.locator("ins")
    expect(gone).to_have_text(["customer-support answers", "3", "true and current"])
    expect(came).to_have_text(["refunds", "4", "false"])
    signs = (
        [each.evaluate("e => getComputedStyle(e, '::before').content") for each in gone.all()],
        [each.evaluate("e => getComputedStyle(e, '::before').content") for each in came.all()],
    )
    assert signs == (['"−"'] * 3, ['"+"'] * 3)  # noqa: RUF001
    line = "e => getComputedStyle(e).textDecorationLine"
    assert gone.first.evaluate(line) == "line-through"
    assert came.first.evaluate(line) == "underline"
    expect(compared).to_contain_text("Asked again: Factually correct")


def test_other_versions_are_chosen_on_the_page(alice: Person) -> None:
    three_versions(alice)
    alice.go(f"{alice.path()}/revisions")
    compared = alice.page.get_by_role("region", name="Compare")
    expect(compared).to_contain_text("criteria[Factually correct].weight")
    compared.get_by_label("Before").click()
    alice.page.get_by_role("option", name="3", exact=True).click()
    expect(compared).to_contain_text("No difference.")
    expect(alice.page).to_have_url(f"{alice.console.url}{alice.path()}/revisions?before=3&after=3")
