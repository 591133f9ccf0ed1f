"""What tests share: the embedded model, prepared once and kept for the next run."""

from pathlib import Path

import pytest

from starforge_rewards.engine import embedded
from starforge_rewards.settings import Settings


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """The model's folder, in the cache of this machine (`SF_CACHE_DIR`)."""
    return embedded.prepare(Settings.read().cache_dir)
