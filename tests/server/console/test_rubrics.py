import pytest
from playwright.sync_api import Locator, expect

from starforge_rewards.rubrics.ref import Ref
from tests.server.console.people import Person

pytestmark = pytest.mark.browser


def lines(person: Person) -> Locator:
    return person.page.locator("tbody tr")


def test_a_search_narrows_the_listing_and_stays_in_the_address(alice: Person) -> None:
    alice.write("refunds", description="About quixotic refunds.")
    alice.write("manners", description="About quixotic manners.")
    alice.go("/rubrics")
    alice.page.get_by_label("Search").fill("quixotic ref")
    expect(lines(alice)).to_have_count(1)
    expect(lines(alice)).to_contain_text("refunds")
    expect(alice.page).to_have_url(f"{alice.console.url}/rubrics?search=quixotic%20ref")
    alice.page.reload()
    expect(lines(alice)).to_have_count(1)
    expect(alice.page.get_by_label("Search")).to_have_value("quixotic ref")
    alice.page.get_by_label("Search").fill("nothing like it")
    expect(alice.page.get_by_text("No rubric matches.")).to_be_visible()


def test_who_reads_it_is_said_by_word_and_icon_and_mine_and_archived_filter(
    alice: Person, bob: Person
) -> None:
    bob.write("shared", visibility="public", description="zanzibar")
    alice.write("kept", description="zanzibar")
    alice.write("old", description="zanzibar")
    alice.registry.rubrics.archive(Ref(owner=alice.owner, name="old"), True)
    alice.go("/rubrics?search=zanzibar")
    expect(lines(alice)).to_have_count(2)
    mine = lines(alice).filter(has_text="kept")
    expect(mine.locator(".sf-tag")).to_contain_text("Private")
    expect(mine.locator(".sf-tag i")).to_have_text("lock")
    expect(lines(alice).filter(has_text="shared").locator(".sf-tag")).to_contain_text("Public")
    alice.page.get_by_role("checkbox", name="Only mine").click()
    expect(lines(alice)).to_have_count(1)
    expect(lines(alice)).to_contain_text("kept")
    alice.page.get_by_role("checkbox", name="Archived").click()
    expect(lines(alice)).to_contain_text("old")
    expect(lines(alice)).to_have_count(1)


def test_a_long_listing_is_turned_forward_and_back(alice: Person) -> None:
    for number in range(51):
        alice.write(f"r-{number:03}")
    alice.go("/rubrics?mine=true")
    expect(lines(alice)).to_have_count(50)
    alice.button("Next").click()
    expect(lines(alice)).to_have_count(1)
    expect(lines(alice)).to_contain_text("r-050")
    expect(alice.button("Next")).to_be_disabled()
    alice.button("Previous").click()
    expect(lines(alice)).to_have_count(50)


def test_a_private_rubric_of_another_is_the_same_page_as_an_absent_one(
    alice: Person, bob: Person
) -> None:
    alice.write("secret")
    alice.write("open", visibility="public")
    pages = []
    for name in ("secret", "absent"):
        for below in ("", "/edit", "/revisions", "/usage"):
            assert bob.go(f"/rubrics/{alice.owner}/{name}{below}") == 404
            said = bob.page.locator("#main").inner_text()
            pages.append(said.replace(name, "x") + bob.page.title())
    assert len(set(pages)) == 1
    assert bob.go(f"/rubrics/{alice.owner}/open") == 200
    expect(bob.page.get_by_role("heading", level=1)).to_have_text(f"{alice.owner}/open")


def test_a_search_that_cannot_be_is_said(alice: Person) -> None:
    alice.go("/rubrics")
    alice.page.get_by_label("Search").fill(" ".join(f"w{n}" for n in range(17)))
    expect(alice.alert()).to_contain_text("at most 16 words")


@pytest.mark.parametrize("query", ["mine=perhaps", "search=%00"])
def test_an_address_that_cannot_be_read_is_a_page_that_says_so(alice: Person, query: str) -> None:
    assert alice.go(f"/rubrics?{query}") == 422
    expect(alice.alert()).to_be_visible()


def test_an_address_of_no_page_is_a_page_that_says_so(alice: Person) -> None:
    assert alice.go("/nowhere") == 404
    expect(alice.alert()).to_have_text("There is no such page.")
