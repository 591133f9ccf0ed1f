"""What tests share: models, prepared once and kept for the next run, and a quiet environment."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from starforge_rewards.engine import embedded
from starforge_rewards.engine.tokenizer import ChatTokenizer
from starforge_rewards.registry.database import Database
from starforge_rewards.settings import Settings
from tests import llama3_tokenizer as llama3
from tests import postgresql, tiny_model

# A process keeps the mode of its first cluster; the README's test runs with Ray's own default.
os.environ["RAY_AUTH_MODE"] = "disabled"


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """The model's folder, in the cache of this machine (`SF_CACHE_DIR`)."""
    return embedded.prepare(Settings.read().cache_dir)


@pytest.fixture(scope="session")
def two_layers(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer random model with the embedded model's tokenizer."""
    return tiny_model.write(tmp_path_factory.mktemp("two-layers"), embedded_model)


@pytest.fixture(scope="module", params=["smollm2", "llama3"])
def folder(
    request: pytest.FixtureRequest, embedded_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A model folder with a tokenizer: the embedded model's, and one of quite another kind."""
    if request.param == "smollm2":
        return embedded_model
    return llama3.write(tmp_path_factory.mktemp("llama3"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> ChatTokenizer:
    """The tokenizer of `folder`, as our judge reads it."""
    return ChatTokenizer(str(folder))


@pytest.fixture(scope="module")
def decode(folder: Path) -> Callable[[list[int]], str]:
    """Ids to text with control tokens, as any other reader of the file has it."""
    raw = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda ids: str(raw.decode(ids, skip_special_tokens=False))


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgresql.Server]:
    """A PostgreSQL server of this session."""
    if postgresql.program("initdb") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with postgresql.server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'registry.sqlite'}"
    server: postgresql.Server = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """That database, open and migrated."""
    one = Database.open(database_url)
    yield one
    one.close()
