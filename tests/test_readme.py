"""What the README shows is run: its files are written, its commands executed, in its order."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from starforge_rewards.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ELSEWHERE = {
    "make demo": "starforge demo",
    "make test": None,  # it runs this test
    "pip install '.[gpu]'": None,  # needs a GPU
    "pip install '.[gpu,server]'": None,
    "pip install trl==1.16.0": None,  # it is there
    "python configs/trainers/trl_grpo.py --steps 2": None,  # tests/training/test_trl.py runs it
    "starforge score rollouts.jsonl --rubric support.yaml --judge one-gpu --out scores.jsonl": None,
}
"""Commands that run as another one here, or not at all."""
STAYS = {"starforge serve": "http://127.0.0.1:8400/readyz"}
"""Commands that run until they are stopped, and where they answer once they are up."""
ENDS = {
    "starforge judge check pool:desk": 1,  # the embedded model does not pass the canaries
    "starforge rubric lint support.yaml": 1,  # there is advice
}
"""Exit codes that are not 0."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> Iterator[str]:
    """In order; a command may be of several lines, as the shell reads it."""
    for block in blocks("bash"):
        command = ""
        for line in block.splitlines():
            command = f"{command}\n{line}" if command else line
            whole = subprocess.run(
                ["/bin/bash", "-n", "-c", command], capture_output=True, check=False
            )
            if command and whole.returncode == 0:
                yield command
                command = ""
        assert not command, command


class Reader:
    """Types the README's commands in one shell session, with a Ray and a registry of its own."""

    def __init__(self, folder: Path) -> None:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        own = {"PATH": path, "RAY_TMPDIR": str(folder), "XDG_DATA_HOME": str(folder / "data")}
        self.folder = folder
        self._env = {**os.environ, **own, "COLUMNS": "120"}
        del self._env["RAY_AUTH_MODE"]
        self._staying: list[subprocess.Popen[bytes]] = []

    def type(self, command: str) -> str:
        """What the command printed."""
        if command in STAYS:
            self._stay(command)
            return ""
        exported = re.match(r"export (\w+)=", command)
        shell = f'{command}\nprintf %s "${exported[1]}"' if exported else command
        done = subprocess.run(
            ["/bin/bash", "-c", shell],
            cwd=self.folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == ENDS.get(command, 0), f"{command}\n{done.stdout}\n{done.stderr}"
        if exported:
            assert done.stdout, command
            self._env[exported[1]] = done.stdout
        return done.stdout

    def close(self) -> None:
        for process in self._staying:
            process.terminate()
            process.wait(60)
        down = [sys.executable, "-m", "starforge_rewards", "judge", "down", "desk"]
        subprocess.run(down, env=self._env, capture_output=True, check=False)

    def _stay(self, command: str) -> None:
        log = self.folder / "stays.log"
        with log.open("wb") as file:
            one = subprocess.Popen(
                command.split(), cwd=self.folder, env=self._env, stdout=file, stderr=file
            )
        self._staying.append(one)
        up = ["/usr/bin/curl", "--silent", "--fail", "--retry", "60", "--retry-delay", "1"]
        answers = subprocess.run([*up, "--retry-all-errors", STAYS[command]], check=False)
        assert answers.returncode == 0, log.read_text()


@pytest.fixture(scope="module")
def reader(embedded_model: Path) -> Iterator[Reader]:
    """A reader in a folder with the README's files."""
    # Not pytest's folder: Ray's socket paths must stay short.
    with TemporaryDirectory(prefix="sf") as name:
        folder = Path(name)
        for file, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", README, re.DOTALL):
            (folder / file).write_text(text)
        one = Reader(folder)
        yield one
        one.close()


def test_every_command_of_the_readme_runs(reader: Reader) -> None:
    typed = list(commands())
    assert {*ELSEWHERE, *STAYS, *ENDS} <= {*typed}
    printed: dict[str, str] = {}
    for command in typed:
        instead = ELSEWHERE.get(command, command)
        if instead is not None:
            printed[command] = reader.type(instead)
    for results in ("scores.jsonl", "shared.jsonl", "cited.jsonl"):
        assert (reader.folder / results).read_text().count('"outcome":"scored"') == 3
    resolved = json.loads(next(said for c, said in printed.items() if "/resolve?ref=" in c))
    assert (resolved["ref"], resolved["kind"]) == ("alice/answer-quality@1", "weighted")
    assert "adhoc_score" in printed["starforge rubric usage alice/answer-quality"]


def test_the_readmes_tree_names_every_file_of_the_package_and_no_other() -> None:
    [tree] = re.findall(r"```\n(starforge_rewards/.*?)```", README, re.DOTALL)
    named = set(re.findall(r"(\w+\.py)\b", tree))
    package = ROOT / "starforge_rewards"
    files = {
        path.name
        for path in package.rglob("*.py")
        if not {"cli", "console", "migrations"} & {*path.parts} and not path.name.startswith("__")
    }
    assert named == files


def test_every_command_is_in_the_readme() -> None:
    named = [command.name for command in main.app.registered_commands]
    for group in main.app.registered_groups:
        assert group.typer_instance is not None
        named += [f"{group.name} {one.name}" for one in group.typer_instance.registered_commands]
    shown = README.replace("make demo", "starforge demo")
    assert len(named) >= 18
    assert [command for command in named if f"starforge {command}" not in shown] == []
