"""Which registry a process uses: a server (`SF_URL`), a database, or the shipped folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from starforge_rewards.errors import InputError
from starforge_rewards.registry.folder import FolderRegistry
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.remote import remote_registry
from starforge_rewards.rubrics.ref import check_segment
from starforge_rewards.settings import Settings, default_database

if TYPE_CHECKING:
    from starforge_rewards.registry.database import Database


@contextmanager
def open_registry(settings: Settings, as_owner: str | None = None) -> Iterator[Registry]:
    """The registry that the settings name, until the block ends.

    Args:
        settings: a server by `SF_URL`, else a database by `SF_DATABASE_URL`.
        as_owner: works on the database directly (default: the user's own file), as this owner.

    Raises:
        InputError: neither is named, both are, or a database without an owner.
        Unavailable: the database does not answer.
    """
    if settings.url is not None:
        if as_owner is not None:
            raise InputError("--as is for a database: unset SF_URL, or leave --as out")
        with remote_registry(settings.url, settings.token) as registry:
            yield registry
    elif as_owner is not None:
        check_segment("owner", as_owner, as_owner)
        with open_database(settings.database_url or default_database()) as database:
            from starforge_rewards.registry.sql import registry_of  # late, as there

            yield registry_of(database, User(owner=as_owner))
    elif settings.database_url is not None:
        raise InputError("say whose rubrics with --as OWNER: a database asks for no token")
    else:
        raise InputError(
            "no registry is named: set SF_URL and SF_TOKEN, or work on a database with --as OWNER"
        )


@contextmanager
def open_resolver(
    settings: Settings, as_owner: str | None = None
) -> Iterator[Registry | FolderRegistry]:
    """As `open_registry`; the folder of shipped rubrics where none is named.

    Raises:
        InputError: as there, but for a registry that is not named.
    """
    if settings.url is None and settings.database_url is None and as_owner is None:
        yield FolderRegistry()
        return
    with open_registry(settings, as_owner) as registry:
        yield registry


@contextmanager
def open_database(url: str | None) -> Iterator["Database"]:
    """The database at a URL, else by `SF_DATABASE_URL`, else the user's own file.

    Raises:
        InputError: no such database, or the packages that it needs are not installed.
        Unavailable: it does not answer.
    """
    try:  # late: a job that resolves over HTTP needs no database
        from starforge_rewards.registry.database import Database
    except ModuleNotFoundError as error:
        said = f"a database needs {error.name}: pip install 'starforge-rewards[server]'"
        raise InputError(said) from None
    database = Database.open(url or Settings.read().database_url or default_database())
    try:
        yield database
    finally:
        database.close()
