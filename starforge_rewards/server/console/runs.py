"""The runs that recorded themselves: mine, or all to an administrator, newest first."""

from typing import Annotated, Any, get_args
from urllib.parse import quote

from fastapi import Depends
from nicegui import ui
from pydantic import ValidationError

from starforge_rewards.errors import InputError
from starforge_rewards.registry.records import RunListing
from starforge_rewards.run import Role, RunRecord, Status
from starforge_rewards.server.api.runs import RunsAsked
from starforge_rewards.server.console.elements import block, cell, link, moment, row, table, words
from starforge_rewards.server.console.figures import number
from starforge_rewards.server.console.frame import frame
from starforge_rewards.server.console.notice import Notice
from starforge_rewards.server.console.paging import Pager
from starforge_rewards.server.console.session import HOME, Visit, Visits

_COLUMNS = ("Run", "Role", "Subject", "Status", "Score", "Scored", "By", "Began")
_ANY = ""


def _asked(role: str = "", status: str = "", rubric: str = "") -> RunsAsked:
    said = {"role": role, "status": status, "rubric": rubric.strip()}
    given: dict[str, Any] = {key: value for key, value in said.items() if value}
    try:
        return RunsAsked(**given)
    except ValidationError as error:
        raise InputError.of(error) from None


Asked = Annotated[RunsAsked, Depends(_asked)]


def _first(visit: Visits, asked: Asked) -> RunListing:
    return visit.registry.runs.list(asked)


def show(visit: Visits, asked: Asked, first: Annotated[RunListing, Depends(_first)]) -> None:
    """The page; its address says which runs."""
    with frame(visit, "Runs", "/runs"):
        with block("sf-head"):
            words("h1", "Runs")
        _Runs(visit, asked, first)


class _Runs:
    def __init__(self, visit: Visit, asked: RunsAsked, first: RunListing) -> None:
        self._visit = visit
        with block("sf-tools").props('role=search aria-label="Runs"'):
            self._role = _choice("Role", get_args(Role), asked.role)
            self._status = _choice("Status", get_args(Status), asked.status)
            self._rubric = ui.input("Cites rubric", value=asked.rubric or "")
            self._rubric.props("outlined dense clearable debounce=400").classes("sf-search")
            self._rubric.props('hint="owner/name, or owner/name@version" hide-hint')
        self._notice = Notice()
        self._list = block().props("aria-live=polite")
        self._pager = Pager(self._turn)
        self._latest: object = None
        for control in (self._role, self._status, self._rubric):
            control.on_value_change(self._find)
        self._fill(first)

    def _said(self) -> dict[str, str]:
        return {
            "role": self._role.value or "",
            "status": self._status.value or "",
            "rubric": self._rubric.value or "",
        }

    async def _find(self) -> None:
        self._pager.restart()
        await self._turn(None)
        query = "&".join(f"{k}={quote(v, safe='')}" for k, v in self._said().items() if v)
        ui.navigate.history.replace(f"{HOME}/runs" + (f"?{query}" if query else ""))

    async def _turn(self, cursor: str | None) -> None:
        with self._notice.telling():
            asked = _asked(**self._said()).model_copy(update={"cursor": cursor})
            self._latest = asked
            found = await self._visit.ask(lambda registry: registry.runs.list(asked))
            if self._latest is asked:  # nothing else was chosen meanwhile
                self._fill(found)

    def _fill(self, found: RunListing) -> None:
        self._list.clear()
        with self._list:
            if found.items:
                with table("Runs", *_COLUMNS, classes="sf-list"):
                    for one in found.items:
                        _line(one)
            else:
                words("p", "No run matches.", "sf-none")
        self._pager.reached(len(found.items), found.next)


def _choice(label: str, options: tuple[str, ...], value: str | None) -> ui.select:
    shown = {_ANY: "Any"} | {each: each.replace("_", " ") for each in options}
    choice = ui.select(shown, label=label, value=value or _ANY)
    choice.props("outlined dense options-dense").classes("sf-select")
    return choice


def _line(one: RunRecord) -> None:
    outcome = one.outcome
    with row():
        with cell("Run", classes="sf-first"):
            link(one.id, f"/runs/{one.id}")
        cell("Role", one.role.replace("_", " ") + (f" · {one.runner}" if one.runner else ""))
        cell("Subject", one.subject or "–", "sf-clip")  # noqa: RUF001
        cell("Status", one.status)
        cell("Score", number(outcome.score if outcome else None), "sf-number")
        scored = f"{outcome.scored} of {outcome.rows}" if outcome else number(None)
        cell("Scored", scored, "sf-number")
        cell("By", one.owner)
        with cell("Began"):
            moment(one.created_at)
