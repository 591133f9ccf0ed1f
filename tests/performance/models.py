"""The judges that are measured: the shipped embedded one, and one of two layers for mechanics."""

import os
from pathlib import Path

from starforge_rewards.engine import embedded as smollm2
from starforge_rewards.judge.config import VllmJudge, load_judge
from starforge_rewards.settings import Settings
from tests import tiny_model


def embedded() -> VllmJudge:
    """As it ships, without the verdict cache."""
    config = load_judge("embedded")
    if not isinstance(config, VllmJudge):
        raise TypeError("the shipped judge `embedded` is of another kind")
    return _measured(config)


def two_layers(folder: Path) -> VllmJudge:
    """A model that costs next to nothing, written into `folder`; engine options as embedded."""
    tiny_model.write(folder, smollm2.prepare(Settings.read().cache_dir))
    return embedded().model_copy(update={"model": str(folder)})


def _measured(config: VllmJudge) -> VllmJudge:
    """Every answer counts, none is remembered, and the number of threads is said."""
    threads = config.pool.model_copy(update={"threads": os.cpu_count() or 1})
    return config.model_copy(update={"reuse": False, "min_mass": 0.0, "pool": threads})
