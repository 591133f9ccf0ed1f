"""One versioned rubric as training reward, benchmark and safety evaluation."""

from importlib import import_module

__version__ = "0.2.0"

_PLUGINS = {
    "RubricJudge": "starforge_rewards.training.verifiers_v1",
    "RubricTaskset": "starforge_rewards.training.verifiers_environment",
}
__all__ = list(_PLUGINS)
"""What verifiers looks for in an installed package whose name is a plugin's `id`."""


def __getattr__(name: str) -> object:
    if name not in _PLUGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLUGINS[name]), name)
