"""A server in a process of its own, a browser, and people who use the console."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import which

import pytest
from playwright.sync_api import Browser, sync_playwright

from starforge_rewards.registry.database import Database
from tests.server.console.people import Console, Person, tab_of
from tests.server.live import live

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. Playwright's loop runs in this thread until a module ends: no longer, so
    that other modules can call `asyncio.run`.
    """
    program = which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program)
        yield started
        started.close()


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """`starforge serve` on a new SQLite file, with the scripted judge."""
    folder: Path = tmp_path_factory.mktemp("console")
    url = f"sqlite:///{folder / 'registry.sqlite'}"
    with live(folder, url) as server, closing(Database.open(url)) as database:
        yield Console(server, database)


@pytest.fixture
def alice(browser: Browser, console: Console) -> Iterator[Person]:
    """Somebody with a namespace that no other test uses, at 1280 pixels, logged in."""
    with tab_of(browser, console, f"alice-{next(_numbers)}") as person:
        yield person


@pytest.fixture
def bob(browser: Browser, console: Console) -> Iterator[Person]:
    """Somebody else."""
    with tab_of(browser, console, f"bob-{next(_numbers)}") as person:
        yield person
