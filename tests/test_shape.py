import re
import subprocess
import sys
from pathlib import Path

import pytest

import starforge_rewards

PACKAGE = Path(starforge_rewards.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc", "base"}
HEAVY = ("ray", "vllm", "torch", "fastapi", "sqlalchemy", "transformers")
LONGEST = 350


def named(files: list[Path]) -> list[str]:
    return [str(file.relative_to(PACKAGE)) for file in files]


def test_every_file_and_folder_is_named_after_what_it_owns() -> None:
    assert len(FILES) > 10
    parts = {file: {*file.relative_to(PACKAGE).with_suffix("").parts} for file in FILES}
    assert named([file for file in FILES if parts[file] & NAMELESS]) == []


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert named([file for file in FILES if lines[file] > LONGEST]) == []


def test_every_file_says_what_it_owns() -> None:
    said = [file for file in FILES if not file.read_text(encoding="utf-8").startswith('"""')]
    assert named(said) == []


@pytest.mark.parametrize("module", ["starforge_rewards", "starforge_rewards.scoring"])
def test_the_core_is_imported_without_anything_heavy(module: str) -> None:
    script = f"import sys, {module}; print(*sorted({{*{HEAVY}}} & {{*sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


def test_the_version_is_the_top_entry_of_the_changelog() -> None:
    changelog = (PACKAGE.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[?([0-9][^\]\s]*)", changelog, re.MULTILINE)
    assert released[0] == starforge_rewards.__version__
