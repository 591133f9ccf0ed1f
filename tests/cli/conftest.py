"""The command in this process, on a database of its own."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from starforge_rewards.cli import main


class Ended(NamedTuple):
    code: object
    out: str
    err: str


Starforge = Callable[..., Ended]


@pytest.fixture
def starforge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Starforge:
    """Runs `starforge` with these arguments, in an empty folder with nothing configured."""
    monkeypatch.chdir(tmp_path)
    for name in ("SF_URL", "SF_TOKEN", "SF_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["starforge", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return Ended(ended.value.code, *capsys.readouterr())

    return run
