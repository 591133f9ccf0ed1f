"""Who uses the console: the session in a browser's cookie, checked anew for every action.

The cookie holds a session's secret and no token. Whoever revokes a token ends its sessions with the
next thing that they ask.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.server.state import State, state_of

HOME = "/console"
COOKIE = "sf_session"
Found = TypeVar("Found")


@dataclass(frozen=True)
class Visit:
    """One page that is open in a browser."""

    state: State
    user: User
    """Who opened it, for what the page shows; what it may do is asked of the session again."""
    secret: str = field(repr=False)

    @property
    def registry(self) -> Registry:
        """For what is read while the page is made, in the request that has just been checked."""
        return registry_of(self.state.database, self.user)

    async def ask(self, work: Callable[[Registry], Found]) -> Found:
        """What `work` makes of the registry, off the event loop.

        Raises:
            Unauthorized: the session is over, or its token is revoked.
        """
        return await run_in_threadpool(lambda: work(registry_of(self.state.database, self._now())))

    async def still(self) -> User:
        """Who it is, for what asks no registry.

        Raises:
            Unauthorized: as for `ask`.
        """
        return await run_in_threadpool(self._now)

    def _now(self) -> User:
        return Tokens(self.state.database).session_user(self.secret)


def visit(request: Request) -> Visit:
    """Who a page is opened for.

    Raises:
        Unauthorized: nobody who is logged in.
    """
    state = state_of(request)
    secret = request.cookies.get(COOKIE, "")
    return Visit(state, Tokens(state.database).session_user(secret), secret)


Visits = Annotated[Visit, Depends(visit)]
"""FastAPI calls `visit` in a thread, and the page with what it returns."""
