import pytest
from playwright.sync_api import Browser, expect

from tests.server.console.people import Console, Person, tab_of
from tests.server.console.test_run import record

pytestmark = pytest.mark.browser


def test_its_owner_sees_all_runs_and_another_reader_theirs(alice: Person, bob: Person) -> None:
    ref = str(alice.write(visibility="public"))
    ours, theirs = record(alice, ref), record(bob, ref, role="gate")
    alice.go(f"{alice.path()}/usage")
    expect(alice.page.locator("tbody tr")).to_have_count(2)
    bob.go(f"{alice.path()}/usage")
    expect(bob.page.locator("tbody tr")).to_have_count(1)
    expect(bob.page.locator("tbody tr")).to_contain_text(theirs)
    expect(bob.page.locator("#main")).not_to_contain_text(ours)
    expect(bob.page.get_by_text("Its owner sees all runs; you see yours.")).to_be_visible()


def test_an_administrator_reads_all_and_writes_nothing_of_others(
    browser: Browser, console: Console, alice: Person
) -> None:
    run_id = record(alice, str(alice.write()))
    with tab_of(browser, console, f"root-of-{alice.owner}", admin=True) as root:
        assert root.go(f"{alice.path()}/usage") == 200
        expect(root.page.get_by_text("administrator", exact=True)).to_be_visible()
        expect(root.page.locator("tbody tr")).to_contain_text(run_id)
        assert root.go(f"/runs/{run_id}") == 200
        expect(root.page.get_by_role("article")).to_contain_text("Factually correct")
        assert root.go(f"{alice.path()}/edit") == 403


def test_a_rubric_that_nobody_cited_says_so(alice: Person) -> None:
    alice.write()
    alice.go(f"{alice.path()}/usage")
    expect(alice.page.get_by_text("No run has cited this rubric.")).to_be_visible()
