from pathlib import Path

import pytest

from starforge_rewards.settings import Settings, shipped


def test_the_cache_lies_where_the_environment_says(tmp_path: Path) -> None:
    assert Settings.read({"SF_CACHE_DIR": str(tmp_path)}).cache_dir == tmp_path


def test_a_home_in_the_environments_path_is_filled_in() -> None:
    assert Settings.read({"SF_CACHE_DIR": "~/kept"}).cache_dir == Path.home() / "kept"


@pytest.mark.parametrize("environ", [{}, {"SF_CACHE_DIR": ""}])
def test_without_a_word_the_cache_is_in_the_users_own(environ: dict[str, str]) -> None:
    assert Settings.read(environ).cache_dir == Path.home() / ".cache" / "starforge_rewards"


def test_the_environment_is_read_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SF_CACHE_DIR", "/tmp/first")  # noqa: S108 - nothing is written
    assert Settings.read().cache_dir == Path("/tmp/first")  # noqa: S108
    monkeypatch.setenv("SF_CACHE_DIR", "/tmp/second")  # noqa: S108
    assert Settings.read().cache_dir == Path("/tmp/second")  # noqa: S108


def test_what_ships_is_found() -> None:
    assert shipped("configs", "rubrics").is_dir()
