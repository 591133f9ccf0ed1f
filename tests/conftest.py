"""What tests share: models, prepared once and kept for the next run, and a quiet environment."""

import os
from pathlib import Path

import pytest

from starforge_rewards.engine import embedded
from starforge_rewards.settings import Settings
from tests import tiny_model

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
