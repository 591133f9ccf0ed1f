import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from starforge_rewards.errors import InputError
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.folder import FolderRegistry
from starforge_rewards.registry.open import open_registry, open_resolver
from starforge_rewards.registry.records import RubricQuery
from starforge_rewards.settings import Settings
from tests.registry import samples
from tests.registry.live import live

NAME = "alice/answer-quality"


def settings(folder: Path, **about: object) -> Settings:
    return Settings.model_validate({"cache_dir": folder} | about)


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder / 'registry.sqlite'}"


def test_a_server_goes_before_a_database(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path / 'server.sqlite'}")
    with live(database) as server:
        token = server.token("alice")
        named = settings(tmp_path, url=server.url, token=token, database_url=sqlite(tmp_path))
        with open_registry(named) as registry:
            samples.put(registry, NAME)
        assert samples.registry(database, "alice").rubrics.resolve(NAME)
    database.close()
    assert not (tmp_path / "registry.sqlite").exists()


def test_a_database_is_opened_as_an_owner_and_kept(tmp_path: Path) -> None:
    named = settings(tmp_path, database_url=sqlite(tmp_path))
    with open_registry(named, "alice") as registry:
        samples.put(registry, NAME)
    with open_registry(named, "bob") as registry:
        assert registry.rubrics.list(RubricQuery()).items == ()
    with open_registry(named, "alice") as registry:
        assert registry.rubrics.list(RubricQuery()).items[0].name == "answer-quality"


def test_an_owner_alone_means_the_users_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with open_registry(settings(tmp_path), "alice") as registry:
        samples.put(registry, NAME)
    assert (tmp_path / "starforge_rewards" / "registry.sqlite").exists()


@pytest.mark.parametrize(
    ("about", "owner", "said"),
    [
        ({}, None, "SF_URL"),
        ({"database_url": "sqlite:////x"}, None, "--as OWNER"),
        ({"url": "http://127.0.0.1"}, "alice", "SF_URL"),
        ({"url": "ftp://h", "token": SecretStr("x")}, None, "SF_URL"),
        ({}, "../x", "the owner must match"),
    ],
)
def test_what_is_missing_or_too_much_is_said(
    tmp_path: Path, about: dict[str, object], owner: str | None, said: str
) -> None:
    with (
        pytest.raises(InputError) as refused,
        open_registry(settings(tmp_path, **about), owner),
    ):
        pass
    assert said in str(refused.value)


def test_with_nothing_named_the_shipped_folder_resolves(tmp_path: Path) -> None:
    with open_resolver(settings(tmp_path)) as found:
        assert isinstance(found, FolderRegistry)
    named = settings(tmp_path, database_url=sqlite(tmp_path))
    with open_resolver(named, "alice") as found:
        assert not isinstance(found, FolderRegistry)
    with pytest.raises(InputError, match="--as OWNER"), open_resolver(named):
        pass


def test_a_database_without_its_packages_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from starforge_rewards.cli import main; main.run()"
    )
    for command in (["token", "list"], ["rubric", "list", "--as", "alice"]):
        ended = subprocess.run(
            [sys.executable, "-c", script, *command],
            env={"PYTHONPATH": str(Path(__file__).parents[2]), "XDG_DATA_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 2, ended.stderr
        assert ended.stderr == (
            "error: a database needs sqlalchemy: pip install 'starforge-rewards[server]'\n"
        )
