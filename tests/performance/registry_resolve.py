"""`resolve` over HTTP beside a bare FastAPI route with the same SELECTs and the same bytes.

Both serve under uvicorn, each in a process of its own, asked in turns over one kept connection.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import httpx

from starforge_rewards.registry.database import Database
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.registry.tokens import Tokens
from tests import postgresql
from tests.performance.ratio import Ratio, alternate, at_most, seconds
from tests.performance.registry_put import REF, USER, rubric


class Size(NamedTuple):
    pairs: int
    calls: int


FULL = Size(61, 50)
QUICK = Size(9, 20)


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        urls = {"SQLite": f"sqlite:///{Path(folder) / 'registry.sqlite'}"}
        if postgresql.program("initdb") is not None:
            urls["PostgreSQL"] = stack.enter_context(postgresql.server()).new_database()
        for kind, url in urls.items():
            with both(url) as (ours, bare):
                yield Ratio(
                    what=f"time of resolve over HTTP / a bare route, {kind}",
                    size=f"{size.calls} calls",
                    pairs=alternate(_work(ours, size), _work(bare, size), size.pairs),
                    target=at_most(1.5),
                )


Ask = Callable[[], bytes]


@contextmanager
def both(url: str) -> Iterator[tuple[Ask, Ask]]:
    """Our server and the bare one, which answer the same."""
    database = Database.open(url)
    registry_of(database, USER).rubrics.put(REF, rubric(0))
    token = Tokens(database).create(USER.owner).token
    database.close()
    with ExitStack() as stack:
        clients = [stack.enter_context(_server(kind, url, token)) for kind in ("ours", "bare")]
        ours, bare = (_ask(client) for client in clients)
        for _ in range(50):  # each thread of either has its connection
            if ours() != bare():
                raise RuntimeError("the two do not answer the same")
        yield ours, bare


def _ask(client: httpx.Client) -> Ask:
    def ask() -> bytes:
        response = client.get("/api/rubrics/resolve", params={"ref": str(REF)})
        return response.raise_for_status().content

    return ask


def _work(ask: Ask, size: Size) -> Callable[[], float]:
    return lambda: seconds(lambda: [ask() for _ in range(size.calls)])


@contextmanager
def _server(kind: str, url: str, token: str) -> Iterator[httpx.Client]:
    command = [sys.executable, "-m", "tests.performance.resolve_apps", kind, url]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        port = process.stdout.readline().strip() if process.stdout else ""
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60
        ) as client:
            yield client
    finally:
        process.terminate()
        process.communicate()
