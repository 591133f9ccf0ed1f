"""What the README shows is run: its files are written, its commands executed, in its order."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from starforge_rewards.cli import judge, main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ELSEWHERE = {
    "make demo": "starforge demo",
    "make test": None,  # it runs this test
    "pip install '.[gpu]'": None,  # needs a GPU
    "starforge score rollouts.jsonl --rubric support.yaml --judge one-gpu --out scores.jsonl": None,
}
"""Commands that run as another one here, or not at all."""
WARNS = {"starforge judge check pool:desk": 1}
"""Exit codes that are not 0: the embedded model does not pass the canaries."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def workplace(embedded_model: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with the README's files, and an environment with a Ray of its own."""
    # Not pytest's folder: Ray's socket paths must stay short.
    with TemporaryDirectory(prefix="sf") as name:
        folder = Path(name)
        for file, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", README, re.DOTALL):
            (folder / file).write_text(text)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "RAY_TMPDIR": name, "COLUMNS": "120"}
        del env["RAY_AUTH_MODE"]
        yield folder, env
        down = [sys.executable, "-m", "starforge_rewards", "judge", "down", "desk"]
        subprocess.run(down, env=env, capture_output=True, check=False)  # where a command failed


def test_every_command_of_the_readme_runs(workplace: tuple[Path, dict[str, str]]) -> None:
    folder, env = workplace
    commands = [line for block in blocks("bash") for line in block.splitlines() if line.strip()]
    assert set(ELSEWHERE) <= set(commands)
    for command in commands:
        instead = ELSEWHERE.get(command, command)
        if instead is None:
            continue
        done = subprocess.run(  # noqa: S602 - the README's own words
            instead,
            shell=True,
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == WARNS.get(command, 0), f"{command}\n{done.stdout}\n{done.stderr}"
    assert (folder / "scores.jsonl").read_text().count('"outcome":"scored"') == 3
    assert (folder / "shared.jsonl").read_text().count('"outcome":"scored"') == 3


def test_the_readmes_tree_names_every_file_of_the_package_and_no_other() -> None:
    [tree] = re.findall(r"```\n(starforge_rewards/.*?)```", README, re.DOTALL)
    named = set(re.findall(r"(\w+\.py)\b", tree)) | {"folder.py"}
    package = ROOT / "starforge_rewards"
    files = {
        path.name
        for path in package.rglob("*.py")
        if "cli" not in path.parts and not path.name.startswith("__")
    }
    assert named == files


def test_every_command_is_in_the_readme() -> None:
    commands = [command.name for command in main.app.registered_commands]
    commands += [f"judge {command.name}" for command in judge.app.registered_commands]
    shown = README.replace("make demo", "starforge demo")
    assert len(commands) >= 6
    for command in commands:
        assert f"starforge {command}" in shown, command
