"""How a PostgreSQL server is connected to, so that one that is gone or frozen keeps nobody waiting.

A server that is alive ends what takes too long by itself; the client's own limit is for one that
neither answers nor closes its connections.
"""

import select
from typing import Any

import psycopg
import sqlalchemy
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from sqlalchemy import Engine, event, exc

from starforge_rewards.errors import InputError

_CONNECT = 5
"""Seconds for a server to accept a connection, and to end a statement that took too long."""


def engine(url: sqlalchemy.URL, wait: float) -> Engine:
    """Connections to the server at a URL, none of them made yet.

    Args:
        url: of any driver.
        wait: seconds that a statement may take, that it may wait for a lock, and that a caller
            waits for a free connection.

    Raises:
        InputError: an option in the URL is none of PostgreSQL's.
    """
    try:
        make_conninfo("", **{name: str(value) for name, value in url.query.items()})
    except psycopg.ProgrammingError as error:
        raise InputError(str(error).strip(), field="SF_DATABASE_URL") from None
    longest = f"{int(wait * 1000)}ms"
    limits: dict[str, Any] = {
        "connect_timeout": _CONNECT,
        "options": f"-c statement_timeout={longest} -c lock_timeout={longest}",
    }
    one = sqlalchemy.create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args=limits,
        pool_size=16,
        max_overflow=16,
        pool_timeout=wait,
    )
    event.listen(one, "checkout", _check_open)

    class Bounded(_Bounded):
        longest = wait + _CONNECT

    event.listen(one, "do_connect", lambda _d, _r, args, given: Bounded.connect(*args, **given))
    return one


def _check_open(connection: psycopg.Connection[Any], _record: object, _proxy: object) -> None:
    """After the server was away the first call must not fail; to ask the server would cost more."""
    idle = select.poll()
    idle.register(connection.pgconn.socket, select.POLLIN)
    if idle.poll(0):  # nobody asked anything: it is the end
        raise exc.DisconnectionError


class _Bounded(psycopg.Connection[Any]):
    longest: float

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.longest if timeout is None else timeout)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()  # what it may answer later belongs to nobody
            raise
