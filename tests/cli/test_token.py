import json
from pathlib import Path

import pytest

from starforge_rewards.errors import Unauthorized
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.tokens import Tokens
from tests.cli.conftest import Starforge
from tests.registry.live import live


def test_a_token_is_all_that_is_printed_and_opens_its_namespace(
    starforge: Starforge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'named.sqlite'}"
    ended = starforge("token", "create", "alice", "--database", url)
    assert ended.code == 0
    database = Database.open(url)
    try:
        token = ended.out.removesuffix("\n")
        assert Tokens(database).check(token).owner == "alice"
        assert token not in ended.err
        with live(database) as server:
            monkeypatch.setenv("SF_URL", server.url)
            monkeypatch.setenv("SF_TOKEN", token)
            assert starforge("rubric", "list").code == 0
    finally:
        database.close()


def test_tokens_are_listed_without_their_secrets_and_revoked(
    starforge: Starforge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'named.sqlite'}"
    monkeypatch.setenv("SF_DATABASE_URL", url)
    made = json.loads(starforge("token", "create", "root", "--admin", "--json").out)
    starforge("token", "create", "bob", "--label", "[red]laptop[/red]")
    shown = starforge("token", "list")
    assert "[red]laptop[/red]" in shown.out
    assert made["token"].rpartition("_")[2] not in shown.out
    assert starforge("token", "revoke", made["id"]).out == f"token {made['id']} is revoked\n"
    first, second = json.loads(starforge("token", "list", "--json").out)["tokens"]
    assert (first["owner"], first["admin"], first["revoked_at"] is None) == ("root", True, False)
    assert (second["owner"], second["admin"], second["revoked_at"]) == ("bob", False, None)
    assert starforge("token", "revoke", made["id"]).code == 2
    database = Database.open(url)
    with pytest.raises(Unauthorized):
        Tokens(database).check(made["token"])
    database.close()


def test_without_a_database_named_the_users_own_file_is_used(
    starforge: Starforge, tmp_path: Path
) -> None:
    assert starforge("token", "create", "alice").code == 0
    assert (tmp_path / "data" / "starforge_rewards" / "registry.sqlite").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("resolve",), "reserved"),
        (("../x",), "the owner must match"),
        (("alice", "--database", "mysql://h/d"), "mysql"),
        (("alice", "--label", "a\x1bb"), "control character"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    starforge: Starforge, arguments: tuple[str, ...], said: str
) -> None:
    ended = starforge("token", "create", *arguments)
    assert ended.code == 2
    assert ended.out == ""
    (line,) = ended.err.splitlines()
    assert said in line
