"""The listing of rubrics: mine and the public ones, searched while one types."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Depends
from nicegui import ui
from pydantic import ValidationError

from starforge_rewards.errors import InputError
from starforge_rewards.registry.records import Listed, Listing
from starforge_rewards.server.api.rubrics import RubricsAsked
from starforge_rewards.server.console.elements import (
    action,
    block,
    cell,
    link,
    moment,
    row,
    symbol,
    table,
    visibility,
    words,
)
from starforge_rewards.server.console.frame import frame
from starforge_rewards.server.console.notice import Notice
from starforge_rewards.server.console.paging import Pager
from starforge_rewards.server.console.session import HOME, Visit, Visits

_COLUMNS = ("Rubric", "Description", "Version", "Who reads it", "Changed")


def _asked(search: str = "", mine: bool = False, archived: bool = False) -> RubricsAsked:
    try:
        return RubricsAsked(search=search, mine=mine, archived=archived)
    except ValidationError as error:
        raise InputError.of(error) from None


Asked = Annotated[RubricsAsked, Depends(_asked)]


def _first(visit: Visits, asked: Asked) -> Listing:
    return visit.registry.rubrics.list(asked)


def show(visit: Visits, asked: Asked, first: Annotated[Listing, Depends(_first)]) -> None:
    """The page; its address says what is looked for."""
    with frame(visit, "Rubrics", "/rubrics"):
        with block("sf-head"):
            words("h1", "Rubrics")
            action("New rubric", "/rubrics/new", "add", main=True)
        _Rubrics(visit, asked, first)


class _Rubrics:
    def __init__(self, visit: Visit, asked: RubricsAsked, first: Listing) -> None:
        self._visit = visit
        with block("sf-tools").props('role=search aria-label="Rubrics"'):
            self._search = ui.input("Search", value=asked.search)
            self._search.props("outlined dense clearable debounce=250").classes("sf-search")
            self._mine = ui.checkbox("Only mine", value=asked.mine).props("dense size=sm")
            self._archived = ui.checkbox("Archived", value=asked.archived).props("dense size=sm")
        self._notice = Notice()
        self._list = block().props("aria-live=polite")
        self._pager = Pager(self._turn)
        self._latest: object = None
        for control in (self._search, self._mine, self._archived):
            control.on_value_change(self._find)
        self._fill(first)

    async def _find(self) -> None:
        self._pager.restart()
        await self._turn(None)
        said = {"search": self._search.value, "mine": self._mine.value}
        said["archived"] = self._archived.value
        query = "&".join(f"{key}={_quoted(value)}" for key, value in said.items() if value)
        ui.navigate.history.replace(f"{HOME}/rubrics" + (f"?{query}" if query else ""))

    async def _turn(self, cursor: str | None) -> None:
        with self._notice.telling():
            asked = _asked(
                self._search.value or "", bool(self._mine.value), bool(self._archived.value)
            ).model_copy(update={"cursor": cursor})
            self._latest = asked
            found = await self._visit.ask(lambda registry: registry.rubrics.list(asked))
            if self._latest is asked:  # nothing else was typed meanwhile
                self._fill(found)

    def _fill(self, found: Listing) -> None:
        self._list.clear()
        with self._list:
            if found.items:
                with table("Rubrics", *_COLUMNS, classes="sf-list"):
                    for listed in found.items:
                        _line(listed)
            else:
                words("p", "No rubric matches.", "sf-none")
        self._pager.reached(len(found.items), found.next)


def _line(listed: Listed) -> None:
    path = f"/rubrics/{listed.owner}/{listed.name}"
    with row():
        with cell("Rubric", classes="sf-first"), link("", path, "sf-ref"):
            words("span", f"{listed.owner}/", "sf-owner")
            words("b", listed.name)
        cell("Description", listed.description, "sf-clip")
        cell("Version", str(listed.version), "sf-number")
        with cell("Who reads it"):
            visibility(listed.visibility)
            if listed.archived:
                with block("sf-tag", "span"):
                    symbol("inventory_2")
                    words("span", "Archived")
        with cell("Changed"):
            moment(listed.updated_at)


def _quoted(value: object) -> str:
    return "true" if value is True else quote(str(value), safe="")
