"""Pages of a listing that is read by cursor: forward, and back to what was seen."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from starforge_rewards.server.console.elements import block, words

Turn = Callable[[str | None], Awaitable[None]]


class Pager:
    """Two buttons, and which lines are shown."""

    def __init__(self, turn: Turn) -> None:
        """At the first page; `turn` shows the one that a cursor begins."""
        self._turn = turn
        self._seen: list[str | None] = [None]
        self._next: str | None = None
        with block("sf-pager", "nav") as bar:
            bar.props('aria-label="Pages"')
            self._back = ui.button("Previous", icon="chevron_left", on_click=self._previous)
            self._back.props("flat dense no-caps")
            self._where = words("span", "", "sf-where")
            self._on = ui.button("Next", icon="chevron_right", on_click=self._following)
            self._on.props("flat dense no-caps")
        self._bar = bar

    def restart(self) -> None:
        self._seen = [None]

    def reached(self, count: int, following: str | None) -> None:
        """A page is shown; `following` is the cursor of the next one."""
        self._next = following
        self._where.text = f"Page {len(self._seen)} · {count} shown"
        self._back.set_enabled(len(self._seen) > 1)
        self._on.set_enabled(following is not None)
        self._bar.set_visibility(len(self._seen) > 1 or following is not None)

    async def _previous(self) -> None:
        if len(self._seen) > 1:
            self._seen.pop()
            await self._turn(self._seen[-1])

    async def _following(self) -> None:
        if self._next is not None:
            self._seen.append(self._next)
            await self._turn(self._next)
