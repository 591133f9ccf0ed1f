import itertools
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.server.console.people import Console, Person, tab_of
from tests.server.console.test_run import record

pytestmark = pytest.mark.browser

LONG = "Antidisestablishmentarianism" * 12
PAGES = [
    "/rubrics?mine=true",
    "/rubrics/new",
    "{path}",
    "{path}/edit",
    "{path}/revisions",
    "{path}/usage",
    "/runs",
    "/runs/{run}",
    "/rubrics/nobody/nothing",
]
_numbers = itertools.count(1)


@pytest.fixture(params=[1280, 390])
def carol(request: pytest.FixtureRequest, browser: Browser, console: Console) -> Iterator[Person]:
    """At each width, with a rubric and a run that are full of long words."""
    width: int = request.param
    with tab_of(browser, console, f"carol-{next(_numbers)}-{'x' * 60}", width=width) as person:
        person.write()
        criterion = {"name": LONG, "weight": 1e-300, "description": LONG, "anchors": {"0": LONG}}
        whole = {"name": "Right", "weight": 1}
        person.write(description=LONG, criteria=[criterion, whole])
        record(person, f"{person.owner}/answer-quality@2", subject=LONG)
        yield person


def addresses(person: Person) -> list[str]:
    return [one.format(path=person.path(), run=f"run-of-{person.owner}") for one in PAGES]


def test_no_page_scrolls_sideways_at_either_width(carol: Person) -> None:
    too_wide = []
    for path in addresses(carol):
        carol.go(path)
        if carol.page.evaluate("document.scrollingElement.scrollWidth > innerWidth"):
            too_wide.append(path)
    assert too_wide == []


def test_every_control_has_a_name_and_the_headings_are_in_order(carol: Person) -> None:
    for path in addresses(carol):
        carol.go(path)
        nameless = carol.page.evaluate(
            """() => [...document.querySelectorAll('input, textarea, select, button, a[href]')]
            .filter(e => e.checkVisibility() && !(e.ariaLabel || e.innerText?.trim()
              || e.closest('[aria-label]') || [...(e.labels || [])].some(l => l.innerText.trim())))
            .map(e => e.outerHTML)"""
        )
        assert nameless == [], path
        levels = carol.page.locator("h1, h2, h3, h4").evaluate_all(
            "all => all.filter(e => e.checkVisibility()).map(e => +e.tagName[1])"
        )
        assert levels[0] == 1, path
        assert levels.count(1) == 1, path
        assert all(b - a <= 1 for a, b in itertools.pairwise(levels)), path
        assert carol.page.evaluate("document.documentElement.lang") == "en-US"
        assert " · Starforge Rewards" in carol.page.title()
        ids = carol.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids)), path


def test_the_navigation_says_where_one_is_and_opens_on_a_narrow_screen(carol: Person) -> None:
    carol.go("/rubrics")
    menu = carol.button("Menu")
    if carol.page.viewport_size == {"width": 390, "height": 860}:
        menu.click()
    else:
        expect(menu).not_to_be_visible()
    navigation = carol.page.get_by_role("navigation", name="Main")
    expect(navigation.get_by_role("link", name="Rubrics")).to_have_attribute("aria-current", "page")
    navigation.get_by_role("link", name="Runs").click()
    expect(carol.page.get_by_role("heading", level=1)).to_have_text("Runs")


def test_what_has_the_focus_is_seen(carol: Person) -> None:
    carol.go(carol.path())
    for _ in range(8):
        carol.page.keyboard.press("Tab")
        shown = carol.page.locator(":focus").evaluate(
            "e => { const s = getComputedStyle(e);"
            " return s.outlineStyle === 'solid' || s.boxShadow !== 'none' }"
        )
        assert shown
