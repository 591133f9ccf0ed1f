"""Who asks: the bearer token of a request, and the registry as its owner sees it.

The header is read on the event loop; the token is checked in the thread that does the work, so that
a request changes threads once. Nobody without a valid token learns anything else, not even that a
parameter is wrong.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from fastapi import Security
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.models import HTTPBearer
from fastapi.routing import APIRoute
from fastapi.security.base import SecurityBase
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from starforge_rewards.errors import Unauthorized
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.server.state import state_of


@dataclass(frozen=True)
class Asker:
    """A token that is still to be checked."""

    database: Database
    token: str = field(repr=False)

    def user(self) -> User:
        """Whose token it is; one query.

        Raises:
            Unauthorized: nobody's.
        """
        return Tokens(self.database).check(self.token)

    def registry(self) -> Registry:
        """What the token opens.

        Raises:
            Unauthorized: nothing.
        """
        return registry_of(self.database, self.user())


class Bearer(SecurityBase):
    """Reads `Authorization: Bearer <token>`."""

    def __init__(self) -> None:
        self.model = HTTPBearer(description="What `starforge token create OWNER` prints.")
        self.scheme_name = "token"

    async def __call__(self, request: Request) -> Asker:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthorized("no token: send it as `Authorization: Bearer <token>`")
        return Asker(state_of(request).database, token.strip())


bearer = Bearer()
Asks = Annotated[Asker, Security(bearer)]


class TokenFirst(APIRoute):
    """A route whose parameters are only complained of to somebody with a valid token."""

    reads: ClassVar[Bearer] = bearer
    """Where the token stands in a request."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def after_token(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError:
                await run_in_threadpool((await self.reads(request)).user)
                raise

        return after_token
