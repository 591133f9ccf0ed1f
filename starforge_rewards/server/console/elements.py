"""Plain elements of a page: text is always text, and what is shown to be read needs no script.

Whatever a user or a model wrote goes through `words`, which can show no markup.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from starforge_rewards.server.console.session import HOME

_VISIBILITY = {"public": ("public", "Public"), "private": ("lock", "Private")}


def words(tag: str, text: str, classes: str = "") -> TextElement:
    """An element that holds a text."""
    return TextElement(tag=tag, text=text).classes(classes)


def block(classes: str = "", tag: str = "div") -> ui.element:
    """An element that holds others."""
    return ui.element(tag).classes(classes)


def link(text: str, path: str, classes: str = "") -> TextElement:
    """To a page of the console; `path` begins with a slash."""
    element = words("a", text, classes)
    element.props["href"] = HOME + path
    return element


def action(text: str, path: str, icon: str, main: bool = False) -> None:
    """A link that looks like a button."""
    with block(f"sf-action {'sf-main-action' if main else ''}", "a") as element:
        element.props["href"] = HOME + path
        symbol(icon)
        words("span", text)


def symbol(name: str) -> None:
    """An icon beside the word that says the same."""
    ui.icon(name).props("aria-hidden=true")


def visibility(value: object) -> None:
    """By word and icon."""
    icon, word = _VISIBILITY.get(str(value), ("help", str(value)))
    tag(word, icon, "sf-tag-public" if value == "public" else "")


def tag(text: str, icon: str = "", classes: str = "") -> None:
    """A short fact in a frame."""
    with block(f"sf-tag {classes}", "span"):
        if icon:
            symbol(icon)
        words("span", text)


def moment(at: datetime) -> TextElement:
    """A time of day, in UTC."""
    at = at.astimezone(UTC)
    element = words("time", f"{at:%Y-%m-%d %H:%M} UTC", "sf-nowrap")
    element.props["datetime"] = at.isoformat(timespec="seconds")
    return element


def facts(pairs: Mapping[str, str]) -> None:
    """Names and values, in two columns."""
    with block("sf-facts", "dl"):
        for name, value in pairs.items():
            words("dt", name)
            words("dd", value)


@contextmanager
def table(caption: str, *columns: str, classes: str = "") -> Iterator[ui.element]:
    """A table whose rows become blocks on a narrow screen; `caption` is for who hears it.

    Yields its body, to which rows may be added later.
    """
    with block(f"sf-table {classes}", "table"):
        words("caption", caption, "sf-heard")
        with block(tag="thead"), block(tag="tr"):
            for column in columns:
                words("th", column).props("scope=col")
        with block(tag="tbody") as body:
            yield body


def row() -> ui.element:
    """A row of a table."""
    return block(tag="tr")


def cell(column: str, text: str = "", classes: str = "") -> TextElement:
    """A cell; `column` names it where the rows are blocks."""
    element = words("td", text, classes)
    element.props["data-label"] = column
    return element
