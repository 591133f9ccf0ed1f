"""What is installed runs without the checkout: configurations and environments are in the wheel."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import starforge_rewards

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built wheel's files."""
    folder = tmp_path_factory.mktemp("wheel")
    python(ROOT, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def python(cwd: Path, *arguments: str, path: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_runs_from_anywhere_and_says_its_version(unpacked: Path, tmp_path: Path) -> None:
    script = "import starforge_rewards; print(starforge_rewards.__file__)"
    found = python(tmp_path, "-c", script, path=str(unpacked)).strip()
    assert found == str(unpacked / "starforge_rewards" / "__init__.py")
    said = python(tmp_path, "-m", "starforge_rewards", "--version", path=str(unpacked))
    assert said == f"{starforge_rewards.__version__}\n"


def test_a_shipped_rubric_scores_shipped_rollouts_out_of_the_wheel(
    unpacked: Path, tmp_path: Path
) -> None:
    (tmp_path / "own_judge.py").write_text("def judge(question):\n    return '4'\n")
    (tmp_path / "judge.yaml").write_text("kind: scripted\nfunction: own_judge:judge\n")
    rollouts = unpacked.joinpath(
        "starforge_rewards", "shipped", "environments", "support-desk", "rollouts.jsonl"
    )
    named = ["--rubric", "starforge/support-answer", "--judge", "judge.yaml", "--out", "out.jsonl"]
    command = ["-m", "starforge_rewards", "score", str(rollouts), *named, "--json"]
    said = json.loads(python(tmp_path, *command, path=f"{unpacked}:{tmp_path}"))
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert said["scored"] == len(rows) == len(rollouts.read_text().splitlines())
    assert {round(row["total"], 9) for row in rows} == {0, 4}  # one response is empty
    assert {row["rubric"] for row in rows} == {"starforge/support-answer"}


def test_all_that_ships_is_in_the_wheel_and_no_test_is(unpacked: Path) -> None:
    for folder in ("configs", "environments"):
        here = {f.relative_to(ROOT) for f in (ROOT / folder).rglob("*") if f.is_file()}
        base = unpacked / "starforge_rewards" / "shipped"
        there = {f.relative_to(base) for f in (base / folder).rglob("*") if f.is_file()}
        assert {file for file in here if "__pycache__" not in file.parts} <= there
    assert {file.name for file in unpacked.iterdir()} == {
        "starforge_rewards",
        f"starforge_rewards-{starforge_rewards.__version__}.dist-info",
    }
