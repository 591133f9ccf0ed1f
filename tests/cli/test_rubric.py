import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from starforge_rewards.registry.database import Database
from tests.cli.conftest import Starforge
from tests.registry import samples
from tests.registry.live import Live, live

NAME = "alice/answer-quality"
AS = ("--as", "alice")
RUBRIC: dict[str, Any] = {
    "description": "Support answers. [bold]not markup[/bold]",
    "scale_min": 0,
    "scale_max": 5,
    "criteria": [
        {
            "name": "Factually correct",
            "weight": 3.0,
            "description": "Each claim agrees.\tIt fails where\none does not: ünï 🙂 [red]x[/red]",
            "anchors": {"0": "none", "5": "all"},
        },
        {"name": "Cites", "weight": 2, "description": "A section is named, not any but the one."},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Live]:
    database = Database.open(f"sqlite:///{tmp_path / 'server.sqlite'}")
    with live(database) as one:
        yield one
    database.close()


def write(folder: Path, weight: float = 3.0, **changes: object) -> Path:
    correct, cites = RUBRIC["criteria"]
    body = RUBRIC | {"criteria": [correct | {"weight": weight}, cites]} | changes
    path = folder / "support.yaml"
    path.write_text(yaml.safe_dump(body, allow_unicode=True), encoding="utf-8")
    return path


def test_each_write_says_the_version_that_it_made(starforge: Starforge, file: Path) -> None:
    assert starforge("rubric", "put", NAME, str(file), *AS) == (0, f"{NAME}@1 created\n", "")
    assert starforge("rubric", "put", NAME, str(file), *AS).out == f"{NAME}@1 unchanged\n"
    write(file.parent, weight=4)
    assert starforge("rubric", "put", NAME, str(file), *AS).out == f"{NAME}@2 written\n"
    ended = starforge("rubric", "put", NAME, str(file), *AS, "--json")
    said = json.loads(ended.out)
    assert (said["version"], said["changed"]) == (2, False)


def test_what_is_shown_may_be_put_again(starforge: Starforge, file: Path) -> None:
    starforge("rubric", "put", NAME, str(file), *AS)
    shown = starforge("rubric", "show", NAME, *AS)
    assert shown.code == 0
    assert shown.out.startswith(f"# {NAME}@1, weighted, by alice, 20")
    file.write_text(shown.out, encoding="utf-8")
    assert starforge("rubric", "put", NAME, str(file), *AS).out == f"{NAME}@1 unchanged\n"


def test_a_version_is_shown_as_it_was(starforge: Starforge, file: Path) -> None:
    starforge("rubric", "put", NAME, str(file), *AS)
    write(file.parent, weight=4)
    starforge("rubric", "put", NAME, str(file), *AS)
    first = json.loads(starforge("rubric", "show", f"{NAME}@1", *AS, "--json").out)
    assert first["rubric"]["criteria"][0] == RUBRIC["criteria"][0]
    texts = list(yaml.safe_load_all(starforge("rubric", "revisions", NAME, *AS).out))
    assert [text["criteria"][0]["weight"] for text in texts] == [4.0, 3.0]
    listed = json.loads(starforge("rubric", "revisions", NAME, *AS, "--json").out)
    assert [one["version"] for one in listed["revisions"]] == [2, 1]
    assert starforge("rubric", "show", f"{NAME}@3", *AS).code == 2


def test_another_write_in_between_is_a_conflict(starforge: Starforge, file: Path) -> None:
    expecting = ("rubric", "put", NAME, str(file), *AS, "--expected-version")
    assert starforge(*expecting, "0").code == 0
    write(file.parent, weight=4)
    ended = starforge(*expecting, "0")
    assert ended.code == 1
    assert ended.err.startswith(f"error: {NAME} is at version 1, not 0")


def test_advice_on_a_write_goes_beside_its_result(starforge: Starforge, tmp_path: Path) -> None:
    criteria = [one | {"description": "Accuracy"} for one in RUBRIC["criteria"]]
    starforge("rubric", "put", NAME, str(write(tmp_path)), *AS)
    path = write(tmp_path, criteria=criteria)
    ended = starforge("rubric", "put", NAME, str(path), *AS)
    assert ended.out == f"{NAME}@2 written\n"
    assert "criteria: 2 criteria change at once" in ended.err
    assert "criteria[0].description: 'Accuracy' is a label" in ended.err


def test_lint_ends_with_1_where_there_is_advice(starforge: Starforge, tmp_path: Path) -> None:
    assert starforge("rubric", "lint", str(write(tmp_path))) == (0, "", "")
    path = write(tmp_path, description="")
    ended = starforge("rubric", "lint", str(path))
    assert ended.code == 1
    assert ended.out == (
        "description: say in a sentence what is scored: listings show it [no_description]\n"
    )
    (advice,) = json.loads(starforge("rubric", "lint", str(path), "--json").out)["advice"]
    assert advice["rule"] == "no_description"
    starforge("rubric", "put", NAME, str(path), *AS)
    assert starforge("rubric", "lint", NAME, *AS).code == 1


def test_a_file_is_linted_whatever_registry_is_named(
    starforge: Starforge, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SF_DATABASE_URL", "sqlite:////nowhere/at/all")
    assert starforge("rubric", "lint", str(file)).code == 0
    monkeypatch.setenv("SF_URL", "http://127.0.0.1:9")
    assert starforge("rubric", "lint", str(file)).code == 0


def test_a_diff_shows_what_changes_and_who_is_asked_again(starforge: Starforge, file: Path) -> None:
    starforge("rubric", "put", NAME, str(file), *AS)
    write(file.parent, weight=4)
    starforge("rubric", "put", NAME, str(file), *AS)
    write(file.parent, weight=4, levels=3)
    starforge("rubric", "put", NAME, str(file), *AS)
    weight = starforge("rubric", "diff", f"{NAME}@1", f"{NAME}@2", *AS)
    assert weight.out.splitlines() == [
        f"{NAME}@1 -> {NAME}@2",
        "criteria[Factually correct].weight",
        "  - 3.0",
        "  + 4.0",
        "asked again: nothing",
    ]
    assert starforge("rubric", "diff", NAME, "--from", "1", "--to", "2", *AS) == weight
    last = starforge("rubric", "diff", NAME, *AS)
    assert last.out.splitlines() == [
        f"{NAME}@2 -> {NAME}@3",
        "levels",
        "  + 3",
        "asked again: Factually correct, Cites",
    ]
    assert starforge("rubric", "diff", f"{NAME}@2", *AS) == last
    both = json.loads(starforge("rubric", "diff", f"{NAME}@1", f"{NAME}@3", *AS, "--json").out)
    assert (both["before"], both["after"]) == (f"{NAME}@1", f"{NAME}@3")
    assert [change["field"] for change in both["changes"]] == [
        "levels",
        "criteria[Factually correct].weight",
    ]


def test_a_diff_needs_two_versions(starforge: Starforge, file: Path) -> None:
    starforge("rubric", "put", NAME, str(file), *AS)
    ended = starforge("rubric", "diff", NAME, *AS)
    assert ended.code == 2
    assert "is the first version" in ended.err
    ended = starforge("rubric", "diff", f"{NAME}@1", "--from", "1", *AS)
    assert ended.code == 2
    assert "says its version already" in ended.err


def test_a_listing_is_searched_paged_and_free_of_markup(starforge: Starforge, file: Path) -> None:
    for name in ("one", "three", "two"):
        starforge("rubric", "put", f"alice/{name}", str(file), *AS)
    shown = starforge("rubric", "list", *AS).out
    assert "alice/three@1" in shown
    assert "[bold]not markup[/bold]" in shown
    first = starforge("rubric", "list", *AS, "--limit", "2")
    cursor = first.err.removeprefix("more: --cursor ").strip()
    assert "alice/two@1" not in first.out
    assert "alice/two@1" in starforge("rubric", "list", *AS, "--cursor", cursor).out
    found = json.loads(starforge("rubric", "list", *AS, "--search", "thr", "--json").out)
    assert [one["name"] for one in found["items"]] == ["three"]


def test_an_archived_rubric_leaves_the_listing_and_comes_back(
    starforge: Starforge, file: Path
) -> None:
    starforge("rubric", "put", NAME, str(file), *AS)
    assert starforge("rubric", "archive", NAME, *AS).out == f"{NAME} is archived\n"
    assert NAME not in starforge("rubric", "list", *AS).out
    assert NAME in starforge("rubric", "list", "--archived", *AS).out
    assert starforge("rubric", "archive", NAME, "--undo", *AS).code == 0
    assert NAME in starforge("rubric", "list", *AS).out


def test_without_a_registry_the_shipped_rubrics_resolve_unversioned(starforge: Starforge) -> None:
    ended = starforge("rubric", "resolve", "starforge/support-answer")
    assert ended.out.startswith("starforge/support-answer (unversioned) ")
    ended = starforge("rubric", "show", "starforge/support-answer")
    assert ended.code == 2
    assert "SF_URL" in ended.err
    assert "--as OWNER" in ended.err


def test_a_resolved_reference_is_pinned(starforge: Starforge, file: Path) -> None:
    starforge("rubric", "put", NAME, str(file), *AS)
    said = json.loads(starforge("rubric", "resolve", NAME, *AS, "--json").out)
    assert list(said) == ["ref", "owner", "name", "version", "kind", "digest", "rubric"]
    assert (said["ref"], said["version"], said["kind"]) == (f"{NAME}@1", 1, "weighted")
    shown = starforge("rubric", "resolve", NAME, *AS).out
    assert shown == f"{NAME}@1 {said['digest']}\n"
    assert starforge("rubric", "resolve", "answer-quality", *AS).code == 2


def test_a_database_is_used_as_somebody(
    starforge: Starforge, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SF_DATABASE_URL", f"sqlite:///{tmp_path / 'named.sqlite'}")
    ended = starforge("rubric", "put", NAME, str(file))
    assert ended.code == 2
    assert "--as OWNER" in ended.err
    assert starforge("rubric", "put", NAME, str(file), *AS).code == 0
    assert (tmp_path / "named.sqlite").exists()
    ended = starforge("rubric", "put", NAME, str(file), "--as", "bob")
    assert ended.code == 2
    assert "is not your namespace" in ended.err
    assert starforge("rubric", "show", NAME, "--as", "bob").code == 2


def test_usage_lists_the_runs_that_cite_each_version(
    starforge: Starforge, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'named.sqlite'}"
    monkeypatch.setenv("SF_DATABASE_URL", url)
    starforge("rubric", "put", NAME, str(file), *AS)
    database = Database.open(url)
    run = samples.run(f"{NAME}@1", role="benchmark_score", runner="safety")
    samples.registry(database, "alice").runs.put(samples.RUN, run)
    database.close()
    (line,) = [
        line
        for line in starforge("rubric", "usage", NAME, *AS).out.splitlines()
        if samples.RUN in line
    ]
    cells = [cell.strip() for cell in line.strip("│").split("│")]
    assert cells[:4] == [samples.RUN, "@1", "benchmark_score (safety)", "running"]
    (said,) = json.loads(starforge("rubric", "usage", NAME, *AS, "--json").out)["usage"]
    assert (said["run"], said["version"]) == (samples.RUN, 1)


def test_the_same_commands_work_against_a_server(
    starforge: Starforge, file: Path, server: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SF_URL", server.url)
    assert starforge("rubric", "list").code == 2
    monkeypatch.setenv("SF_TOKEN", server.token("alice").get_secret_value())
    assert starforge("rubric", "put", NAME, str(file)).out == f"{NAME}@1 created\n"
    write(file.parent, weight=4)
    assert starforge("rubric", "put", NAME, str(file)).out == f"{NAME}@2 written\n"
    assert f"{NAME}@2" in starforge("rubric", "list", "--mine").out
    assert "asked again: nothing" in starforge("rubric", "diff", NAME).out
    assert starforge("rubric", "resolve", NAME).out.startswith(f"{NAME}@2 ")
    assert len(list(yaml.safe_load_all(starforge("rubric", "revisions", NAME).out))) == 2
    assert starforge("rubric", "usage", NAME).code == 0
    assert starforge("rubric", "archive", NAME).out == f"{NAME} is archived\n"
    ended = starforge("rubric", "list", *AS)
    assert ended.code == 2
    assert "SF_URL" in ended.err
