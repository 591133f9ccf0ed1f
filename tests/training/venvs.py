"""Runs what a trainer's own code makes of an adapter, in the trainer's virtual environment.

`make trainers` builds `.venvs/<name>` from `configs/locks/trainers/<name>.txt`: the trainer without
its dependencies. What it needs of these that we have, it finds behind its own packages.
"""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_VENVS = Path(os.environ.get("SF_TRAINER_VENVS", _ROOT / ".venvs"))
_START = """
import sys, types
root, site, module = sys.argv[1:4]
package = types.ModuleType("tests")  # some trainers ship a package of this name
package.__path__ = [root + "/tests"]
sys.modules["tests"] = package
sys.path.insert(0, root)
sys.path.append(site)
import importlib
importlib.import_module(module).main(*sys.argv[4:])
"""


def run(name: str, module: str, *arguments: str) -> None:
    """`main(*arguments)` of a module of ours in a trainer's environment; skips where it is none."""
    python = _VENVS / name / "bin" / "python"
    if not python.is_file():
        pytest.skip(f"{python} is not there: make trainers")
    quiet = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it looks for one on the network
        "RAY_AUTH_MODE": "disabled",
        "WANDB_MODE": "disabled",
    }
    site = sysconfig.get_path("purelib")
    done = subprocess.run(
        [python, "-W", "ignore", "-c", _START, str(_ROOT), site, module, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | quiet,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def conforms(name: str, *adapters: str) -> None:
    """The conformance cases, with the trainer's own classes."""
    run(name, "tests.training.conformance", *adapters)
