"""Which runs cited which version of a rubric, as what, and what came of it."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends
from nicegui import ui

from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.run import Usage
from starforge_rewards.server.console.elements import cell, link, moment, row, table, words
from starforge_rewards.server.console.figures import number
from starforge_rewards.server.console.rubric import Shown, named, rubric_frame
from starforge_rewards.server.console.session import Visits

_COLUMNS = ("Version", "Run", "Role", "Runner", "Status", "Score", "Normalized", "By", "When")
_TOGETHER = 100


def _usage(visit: Visits, ref: Annotated[Ref, Depends(named)]) -> Sequence[Usage]:
    return visit.registry.rubrics.usage(ref)


def show(visit: Visits, current: Shown, usage: Annotated[Sequence[Usage], Depends(_usage)]) -> None:
    """The page."""
    with rubric_frame(visit, current, "Usage"):
        if current.owner != visit.user.owner and not visit.user.admin:
            words("p", "Its owner sees all runs; you see yours.", "sf-hint")
        if not usage:
            words("p", "No run has cited this rubric.", "sf-none")
            return
        _Lines(usage)


class _Lines:
    """So many at a time: a rubric may have been cited thousands of times."""

    def __init__(self, usage: Sequence[Usage]) -> None:
        self._left = list(usage)
        with table("Runs that cited this rubric", *_COLUMNS, classes="sf-list") as self._body:
            pass
        self._more = ui.button("Show more", on_click=self._add).props("flat dense no-caps")
        self._add()

    def _add(self) -> None:
        shown, self._left = self._left[:_TOGETHER], self._left[_TOGETHER:]
        with self._body:
            for one in shown:
                _line(one)
        self._more.set_visibility(bool(self._left))


def _line(one: Usage) -> None:
    with row():
        with cell("Version"):
            words("b", f"@{one.version}")
        with cell("Run", classes="sf-first"):
            link(one.run, f"/runs/{one.run}")
        cell("Role", one.role.replace("_", " "))
        cell("Runner", one.runner or "–")  # noqa: RUF001
        cell("Status", one.status)
        cell("Score", number(one.score), "sf-number")
        cell("Normalized", number(one.normalized), "sf-number")
        cell("By", one.owner)
        with cell("When"):
            moment(one.created_at)
