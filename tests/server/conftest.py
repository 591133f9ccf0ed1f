"""Servers on new databases."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from starforge_rewards.registry.database import Database
from tests.server.asking import Server, serving


@pytest.fixture
def server(database: Database) -> Iterator[Server]:
    """One for each test, on a database of each kind."""
    with serving(database) as one:
        yield one


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server on SQLite for a whole file: for what is refused before any database sees it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('plain') / 'registry.sqlite'}"
    with closing(Database.open(url)) as database, serving(database) as one:
        yield one
