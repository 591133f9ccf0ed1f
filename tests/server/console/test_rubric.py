from typing import Any

import pytest
from playwright.sync_api import expect

from tests.server.console.people import Person

pytestmark = pytest.mark.browser

HOSTILE: dict[str, Any] = {
    "description": "<img src=x onerror='window.pwned=1'> {{7*7}} ${7*7}",
    "criteria": [
        {
            "name": "<script>window.pwned=1</script>",
            "weight": 1,
            "description": "{{constructor.constructor('window.pwned=1')()}} </script>`${pwned=1}`",
            "anchors": {"0": "<svg/onload=pwned=1>"},
        }
    ],
}


def test_the_page_shows_the_text_and_an_older_version_by_its_number(alice: Person) -> None:
    alice.write(description="The first text.")
    alice.write(description="The second text.")
    alice.go(alice.path())
    expect(alice.page.get_by_text("Version 2")).to_be_visible()
    expect(alice.page.get_by_text("The second text.")).to_be_visible()
    row = alice.page.get_by_role("row").nth(1)
    expect(row.get_by_role("cell")).to_have_text(
        ["Factually correct", "3", "50%", "Every claim about the product is true and current."]
    )
    alice.go(f"{alice.path()}@1")
    expect(alice.page.get_by_text("The first text.")).to_be_visible()
    assert alice.go(f"{alice.path()}@3") == 404


def test_its_owner_hides_it_from_listings_and_shows_it_again(alice: Person) -> None:
    alice.write()
    alice.go(alice.path())
    alice.button("Archive: hide from listings").click()
    expect(alice.page.get_by_text("Archived: not listed")).to_be_visible()
    assert alice.current().archived
    alice.button("Show in listings again").click()
    expect(alice.button("Archive: hide from listings")).to_be_visible()
    assert not alice.current().archived


@pytest.mark.parametrize("below", ["", "/edit", "/revisions?before=1&after=2", "/usage"])
def test_what_others_wrote_is_shown_as_text_and_never_runs(alice: Person, below: str) -> None:
    alice.write()
    alice.write(**HOSTILE)
    alice.go(alice.path() + below)
    if below == "/edit":
        expect(alice.field("Description")).to_have_value(HOSTILE["description"])
    elif below != "/usage":
        expect(alice.page.get_by_text("{{7*7}} ${7*7}").first).to_be_visible()
        expect(alice.page.get_by_text("<script>window.pwned=1</script>").first).to_be_visible()
    alice.go("/rubrics?mine=true")
    expect(alice.page.locator("td", has_text="<img src=x onerror=")).to_be_visible()
    assert alice.page.evaluate("window.pwned") is None
    assert alice.page.locator("#main img, #main td svg, #main td script").count() == 0
