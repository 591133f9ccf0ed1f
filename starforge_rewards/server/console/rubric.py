"""One rubric: its text, who may read it, and the way to its revisions and its usage."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends
from nicegui import ui

from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry.records import Current
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.server.console.elements import (
    action,
    block,
    link,
    moment,
    tag,
    visibility,
    words,
)
from starforge_rewards.server.console.frame import frame
from starforge_rewards.server.console.notice import Notice
from starforge_rewards.server.console.session import Visit, Visits
from starforge_rewards.server.console.standard import show_text

_TABS = (("Text", ""), ("Revisions", "/revisions"), ("Usage", "/usage"))


def named(owner: str, name: str) -> Ref:
    """The rubric that a page's address names; a version may stand behind the name.

    Raises:
        NotFound: no rubric can have such a name.
    """
    try:
        return Ref.parse(f"{owner}/{name}")
    except InputError:
        raise NotFound(f"no rubric {owner}/{name} that you can read") from None


def _current(visit: Visits, ref: Annotated[Ref, Depends(named)]) -> Current:
    return visit.registry.rubrics.show(ref)


Shown = Annotated[Current, Depends(_current)]
"""The version that a page's address names, where who opens it may read it."""


def show(visit: Visits, current: Shown) -> None:
    """The page."""
    with rubric_frame(visit, current, "Text") as notice:
        with block("sf-meta"):
            tag(f"Version {current.version}", "tag")
            visibility(current.rubric.get("visibility"))
            if current.archived:
                tag("Archived: not listed", "inventory_2")
            with block(tag="span"):
                words("span", f"by {current.author}, ")
                moment(current.created_at)
            words("code", f"sha256 {current.digest[:12]}").props["title"] = current.digest
        show_text(current.rubric, str(current.ref))
        if current.owner == visit.user.owner:
            _Archive(visit, current, notice)


@contextmanager
def rubric_frame(visit: Visit, current: Current, tab: str) -> Iterator[Notice]:
    """The frame of every page of one rubric, with the ways between them."""
    path = f"/rubrics/{current.owner}/{current.name}"
    with frame(visit, f"{tab} · {current.owner}/{current.name}", "/rubrics"):
        with block("sf-head"):
            with words("h1", "", "sf-ref"):
                words("span", f"{current.owner}/", "sf-owner")
                words("span", current.name)
            if current.owner == visit.user.owner:
                action("Edit", f"{path}/edit", "edit", main=True)
        with block("sf-tabs", "nav").props('aria-label="Rubric"'):
            for title, below in _TABS:
                element = link(title, path + below)
                if title == tab:
                    element.props["aria-current"] = "page"
        yield Notice()


class _Archive:
    def __init__(self, visit: Visit, current: Current, notice: Notice) -> None:
        self._visit, self._notice = visit, notice
        self._ref = current.ref.model_copy(update={"version": None})
        with block("sf-aside"):
            said = "Show in listings again" if current.archived else "Archive: hide from listings"
            ui.button(said, icon="inventory_2", on_click=self._change).props("flat dense no-caps")
        self._archived = not current.archived

    async def _change(self) -> None:
        with self._notice.telling():
            ref, archived = self._ref, self._archived
            await self._visit.ask(lambda registry: registry.rubrics.archive(ref, archived))
            ui.navigate.to(f"/rubrics/{ref.owner}/{ref.name}")
