"""What stands around every page: header, navigation, the way past both, and the page's own area."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from nicegui import ui

from starforge_rewards.server.console.elements import block, link, symbol, words
from starforge_rewards.server.console.session import HOME, Visit
from starforge_rewards.server.console.theme import PALETTE


class Place(NamedTuple):
    """An entry of the navigation."""

    path: str
    title: str
    icon: str


PLACES: Final = (
    Place("/rubrics", "Rubrics", "checklist"),
    Place("/runs", "Runs", "history"),
)
"""The navigation, in order."""
_STYLESHEET = f'<link rel="stylesheet" href="{HOME}/console.css">'


@contextmanager
def frame(visit: Visit | None, title: str, place: str = "") -> Iterator[None]:
    """The page's own area, in its frame.

    Args:
        visit: None where nobody is known to be logged in.
        title: of the browser's tab.
        place: path of the entry of the navigation that the page belongs to.
    """
    ui.add_head_html(_STYLESHEET)
    ui.colors(primary=PALETTE["accent"], negative=PALETTE["wrong"], positive=PALETTE["right"])
    ui.page_title(f"{title} · Starforge Rewards")
    with ui.header(elevated=False).classes("sf-bar"):
        skip = words("a", "Skip to the content", "sf-skip")
        skip.props["href"] = "#main"
        menu = ui.button(icon="menu", color=None).props("flat dense aria-label=Menu")
        menu.classes("sf-menu")
        with link("", "/rubrics", "sf-brand"):
            words("span", "Starforge")
            words("b", "Rewards")
        block("sf-fill")
        if visit is not None:
            _who(visit)
    # Quasar opens it where there is room; NiceGUI's own way asks each page, and logs who left.
    with ui.left_drawer(value=False, bordered=True).classes("sf-drawer") as drawer:
        drawer.props("show-if-above width=184")
        _navigation(place)
    menu.on_click(drawer.toggle)
    with block("sf-page") as area:
        area.props("id=main tabindex=-1")
        yield


def _who(visit: Visit) -> None:
    with block("sf-who", "span"):
        symbol("person")
        words("span", visit.user.owner)
        if visit.user.admin:
            words("span", "administrator", "sf-role")
    with block(tag="form").props(f"method=post action={HOME}/logout"):
        words("button", "Log out", "sf-out").props("type=submit")


def _navigation(place: str) -> None:
    with block(tag="nav").props('aria-label="Main"'), block("sf-places", "ul"):
        for one in PLACES:
            with block(tag="li"), block(tag="a") as element:
                element.props["href"] = HOME + one.path
                if one.path == place:
                    element.props["aria-current"] = "page"
                symbol(one.icon)
                words("span", one.title)
