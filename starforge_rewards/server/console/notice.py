"""Where a page says what came of an action, so that it is seen and heard."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from nicegui import ui

from starforge_rewards.errors import DatabaseAway, StarforgeError, Unauthorized
from starforge_rewards.server.console.elements import block, symbol, words

_log = logging.getLogger(__name__)


def told(error: StarforgeError) -> str:
    """What a user is told of an error; a database's own words are for whoever runs it."""
    if isinstance(error, DatabaseAway):
        _log.error("%s", error)
        return "The database cannot be used now: try again in a moment."
    return str(error)


class Notice:
    """One message at a time."""

    def __init__(self) -> None:
        self._box = block("sf-notices")

    def clear(self) -> None:
        self._box.clear()

    def done(self, said: str) -> None:
        self._show(said, "check_circle", "sf-right", "status")

    def wrong(self, said: str) -> ui.element:
        """A problem; what is put inside the element is shown below it."""
        return self._show(said, "error", "sf-wrong", "alert")

    @contextmanager
    def telling(self) -> Iterator[None]:
        """What fails inside the block is said; whoever is logged out meanwhile goes to log in."""
        self.clear()
        try:
            yield
        except Unauthorized:
            ui.navigate.to("/login")
        except StarforgeError as error:
            self.wrong(told(error))

    def _show(self, said: str, icon: str, classes: str, role: str) -> ui.element:
        self._box.clear()
        with self._box, block(f"sf-notice {classes}").props(f"role={role}"):
            symbol(icon)
            with block("sf-said") as inside:
                words("p", said)
        return inside
