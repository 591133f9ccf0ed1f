"""The rows of a run and the scores that it used, some at a time."""

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from starforge_rewards.registry.records import KeyedScore
from starforge_rewards.run import ResultRow
from starforge_rewards.server.console.elements import block, cell, row, table, words
from starforge_rewards.server.console.figures import number
from starforge_rewards.server.console.notice import Notice
from starforge_rewards.server.console.session import Visit

_TOGETHER = 50
_RESULTS = ("Row", "Key", "Rubric", "Total", "Normalized", "Without a score", "Evidence")
_SCORES = ("Rubric", "Evidence", "Total", "Normalized", "Criteria")


def show_results(visit: Visit, run_id: str, notice: Notice) -> None:
    """What each row got: a number, or why it has none."""
    last = -1

    async def read() -> bool:
        nonlocal last
        after = last
        rows: Sequence[ResultRow] = await visit.ask(
            lambda registry: registry.runs.results(run_id, after=after, limit=_TOGETHER)
        )
        with growing.body:
            for one in rows:
                _result(one)
        last = rows[-1].position if rows else last
        return len(rows) == _TOGETHER

    growing = _Growing("Rows of this run", _RESULTS, read, notice)


def show_scores(visit: Visit, run_id: str, notice: Notice) -> None:
    """Every score that the run used, found or new."""
    cursor: str | None = None

    async def read() -> bool:
        nonlocal cursor
        begin = cursor
        page = await visit.ask(
            lambda registry: registry.scores.of_run(run_id, cursor=begin, limit=_TOGETHER)
        )
        with growing.body:
            for one in page.items:
                _score(one)
        cursor = page.next
        return cursor is not None

    growing = _Growing("Scores that this run used", _SCORES, read, notice)


class _Growing:
    """A table that is read on: at once, and with every press of its button."""

    def __init__(
        self,
        caption: str,
        columns: tuple[str, ...],
        read: Callable[[], Awaitable[bool]],
        notice: Notice,
    ) -> None:
        self._read, self._notice = read, notice
        self._none = words("p", "None.", "sf-none")
        with block() as self._area, table(caption, *columns, classes="sf-list") as self.body:
            pass
        self._more = ui.button("Show more", on_click=self._add).props("flat dense no-caps")
        self._more.set_visibility(False)
        self._area.set_visibility(False)
        ui.timer(0, self._add, once=True)  # the page is there at once; its rows follow

    async def _add(self) -> None:
        with self._notice.telling():
            self._more.set_visibility(await self._read())
            some = bool(self.body.default_slot.children)
            self._area.set_visibility(some)
            self._none.set_visibility(not some)


def _result(one: ResultRow) -> None:
    with row():
        cell("Row", str(one.position), "sf-number")
        cell("Key", one.key, "sf-break")
        cell("Rubric", one.rubric or "unversioned", "sf-break")
        cell("Total", number(one.total), "sf-number")
        cell("Normalized", number(one.normalized), "sf-number")
        with cell("Without a score", classes="sf-break"):
            if one.cause is not None:
                words("b", one.cause)
                words("span", f" {one.detail}")
        with cell("Evidence"):
            if one.evidence is not None:
                words("code", one.evidence[:12])


def _score(one: KeyedScore) -> None:
    score = one.score
    with row():
        cell("Rubric", one.key.rubric, "sf-break")
        with cell("Evidence"):
            words("code", one.key.evidence[:12])
        cell("Total", number(score.total), "sf-number")
        cell("Normalized", number(score.normalized), "sf-number")
        with cell("Criteria", classes="sf-wide"):
            for name, each in score.criteria.items():
                reason = f": {each.reason}" if each.reason else ""
                words("div", f"{name} {number(each.value)}{reason}")
            for name, cause in score.unanswered.items():
                words("div", f"{name} has no answer: {cause}")
            if score.decided == "empty_response":
                words("div", "Empty response: the least of the scale, by rule")
