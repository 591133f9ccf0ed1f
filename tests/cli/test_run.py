import json
from pathlib import Path

import pytest
import yaml

from starforge_rewards.registry.database import Database
from starforge_rewards.run import Outcome
from tests.cli.conftest import Starforge
from tests.registry import samples
from tests.registry.live import live

NAME = "alice/answer-quality"
AS = ("--as", "alice")
FIRST = "Version two's own [red]text[/red]."


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starforge: Starforge) -> Database:
    """Where a finished run cites version 2 of a rubric that has five."""
    url = f"sqlite:///{tmp_path / 'registry.sqlite'}"
    monkeypatch.setenv("SF_DATABASE_URL", url)
    one = Database.open(url)
    alice = samples.registry(one, "alice")
    for text in ("First.", FIRST, "Third.", "Fourth.", "Fifth."):
        samples.put(alice, NAME, description=text)
    samples.put(alice, "alice/other", description="The other one.")
    outcome = Outcome(rows=2, scored=1, unscored={"timeout": 1}, score=0.5, normalized=0.5)
    cited = samples.run(
        f"{NAME}@2", "alice/other@1", role="benchmark_score", runner="judge", subject="[b]m[/b]"
    )
    finished = {"status": "finished", "outcome": outcome}
    alice.runs.put(samples.RUN, cited.model_copy(update=finished))
    alice.runs.put("run-00000002", samples.run(f"{NAME}@5"))
    one.close()
    return Database.open(url)


@pytest.mark.usefixtures("database")
def test_a_run_is_shown_with_the_whole_text_of_what_it_cites(starforge: Starforge) -> None:
    ended = starforge("run", "show", samples.RUN, *AS)
    assert ended.code == 0
    about, *cited = yaml.safe_load_all(ended.out)
    assert (about["role"], about["runner"], about["subject"]) == (
        "benchmark_score",
        "judge",
        "[b]m[/b]",
    )
    assert (about["status"], about["outcome"]["unscored"]) == ("finished", {"timeout": 1})
    assert about["judge"]["digest"] == samples.JUDGE.digest
    assert [text["description"] for text in cited] == [FIRST, "The other one."]
    assert f"# {NAME}@2, weighted, by alice" in ended.out
    said = json.loads(starforge("run", "show", samples.RUN, *AS, "--json").out)
    assert said["citations"][0]["rubric"] == f"{NAME}@2"
    assert said["citations"][0]["text"]["rubric"]["description"] == FIRST


def test_a_version_that_is_private_by_now_is_said_to_be_so(
    starforge: Starforge, database: Database
) -> None:
    alice = samples.registry(database, "alice")
    ref = samples.put(alice, NAME, visibility="public")
    samples.registry(database, "bob").runs.put("run-of-bob", samples.run(ref))
    samples.put(alice, NAME, visibility="private")
    database.close()
    shown = starforge("run", "show", "run-of-bob", "--as", "bob")
    assert shown.code == 0
    assert f"# {ref}: you cannot read it any more" in shown.out
    assert "criteria" not in shown.out


@pytest.mark.usefixtures("database")
def test_runs_are_listed_newest_first_and_filtered(starforge: Starforge) -> None:
    lines = starforge("run", "list", *AS).out
    assert lines.index("run-00000002") < lines.index(samples.RUN)
    assert "benchmark_score (judge)" in lines
    assert "[b]m[/b]" in lines
    only = json.loads(starforge("run", "list", *AS, "--rubric", f"{NAME}@2", "--json").out)
    assert [one["id"] for one in only["items"]] == [samples.RUN]
    assert samples.RUN not in starforge("run", "list", *AS, "--status", "running").out
    first = starforge("run", "list", *AS, "--limit", "1")
    cursor = first.err.removeprefix("more: --cursor ").strip()
    assert samples.RUN in starforge("run", "list", *AS, "--cursor", cursor).out


@pytest.mark.usefixtures("database")
def test_a_run_of_nobody_or_of_another_is_not_found(starforge: Starforge) -> None:
    assert starforge("run", "show", "run-99999999", *AS).code == 2
    assert starforge("run", "show", samples.RUN, "--as", "bob").code == 2


def test_a_run_is_shown_from_a_server(
    starforge: Starforge, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = starforge("run", "show", samples.RUN, *AS)
    with live(database) as server:
        monkeypatch.setenv("SF_URL", server.url)
        monkeypatch.setenv("SF_TOKEN", server.token("alice").get_secret_value())
        assert starforge("run", "show", samples.RUN) == direct
        assert samples.RUN in starforge("run", "list").out
    database.close()
