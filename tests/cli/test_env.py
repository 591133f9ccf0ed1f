import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Rubric
from tests.cli.conftest import Starforge
from tests.training import scripted
from tests.training.made import RUBRIC, environment

JUDGE = scripted.config().model_dump()
ROLLOUTS = [
    {"id": "a", "response": "5"},
    {"id": "b", "response": "0"},
    {"id": "a", "response": "3"},
]


def rollouts(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "r.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rewards(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


# --- list and check ---


def test_what_ships_is_listed_with_rows_verifiers_and_judge(starforge: Starforge) -> None:
    ended = starforge("env", "list", "--json")
    found = {one["name"]: one for one in json.loads(ended.out)["environments"]}
    assert found["support-desk"]["rows"] == {"train": 24, "eval": 8}
    assert found["support-desk"]["judge"] == "embedded"
    assert len(found["meeting-notes"]["verifiers"]) == 2
    table = starforge("env", "list")
    assert (ended.code, table.code) == (0, 0)
    assert all(name in table.out for name in found)


@pytest.mark.parametrize("name", ["support-desk", "meeting-notes", "clinic-booking"])
def test_what_ships_is_sound(starforge: Starforge, name: str) -> None:
    ended = starforge("env", "check", name, "--json")
    said = json.loads(ended.out)
    assert (ended.code, said["advice"]) == (0, [])
    assert sum(said["rows"].values()) > 0
    assert said["rubrics"]


def test_advice_is_no_refusal(starforge: Starforge, tmp_path: Path) -> None:
    vague = {"criteria": [{"name": "Accuracy", "weight": 1}]}
    home = environment(tmp_path, verifier={"kind": "rubric", "rubric": vague}, judge=JUDGE)
    ended = starforge("env", "check", str(home))
    assert ended.code == 0
    assert ended.out.startswith("env: 1 train, 1 eval; judge scripted\n  1 * rubric = inline ")
    assert "[no_description]" in ended.err


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"verifier": {"kind": "rubric", "ref": "alice/none"}}, "no rubric alice/none"),
        ({"verifier": {"kind": "plugin", "plugin": "nowhere_at_all:f"}}, "cannot import"),
        ({"judge": "judge.yaml"}, "judge.yaml: no such file"),
        ({"dataset": "none.jsonl"}, "none.jsonl: no such file"),
        ({"verifier": {"kind": "rubric", "ref_column": "own"}}, "rows.jsonl:1: own: each row must"),
        ({"value": "max"}, "environment.yaml:1: value"),
    ],
)
def test_what_a_run_would_stumble_over_is_refused_before(
    starforge: Starforge, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    ended = starforge("env", "check", str(environment(tmp_path, **changed)))
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_each_rows_own_rubric_is_checked_with_its_line(
    starforge: Starforge, tmp_path: Path
) -> None:
    rows = [{"id": "a", "prompt": "p", "own": RUBRIC}, {"id": "b", "prompt": "p", "own": {}}]
    home = environment(tmp_path, rows, verifier={"kind": "rubric", "ref_column": "own"})
    ended = starforge("env", "check", str(home))
    assert ended.code == 2
    assert "rows.jsonl:2: rubric.criteria: Field required" in ended.err


def test_a_private_rubric_is_resolved_as_who_asks(starforge: Starforge, tmp_path: Path) -> None:
    home = environment(tmp_path, verifier={"kind": "rubric", "ref": "alice/one"})
    (tmp_path / "one.yaml").write_text(json.dumps(RUBRIC))
    starforge("rubric", "put", "alice/one", "one.yaml", "--as", "alice")
    mine = starforge("env", "check", str(home), "--as", "alice", "--json")
    assert (mine.code, json.loads(mine.out)["rubrics"]) == (0, ["alice/one@1"])
    assert starforge("env", "check", str(home), "--as", "bob").code == 2


# --- score ---


def score(starforge: Starforge, home: Path, rows: Path, *more: str) -> Any:
    return starforge("env", "score", str(home), str(rows), "--out", "out.jsonl", *more)


def test_rollouts_are_rewarded_in_order_several_of_a_task(
    starforge: Starforge, tmp_path: Path
) -> None:
    home = environment(tmp_path, judge=JUDGE)
    ended = score(starforge, home, rollouts(tmp_path, *ROLLOUTS), "--json")
    said = json.loads(ended.out)
    assert ended.code == 0
    assert (said["rows"], said["scored"], said["asked"], said["failed"]) == (3, 3, 6, {})
    found = rewards(tmp_path)
    assert [(row["id"], row["value"]) for row in found] == [("a", 5), ("b", 0), ("a", 3)]
    assert found[0]["criteria"] == {"Right": 5, "Short": 5}
    again = score(starforge, home, rollouts(tmp_path, ROLLOUTS[0]))
    assert again.code == 0, "results may be replaced by new ones"
    assert again.out.endswith("Rewards: out.jsonl\n")
    assert len(rewards(tmp_path)) == 1


def test_a_rollout_without_a_reward_has_its_cause_and_ends_with_1(
    starforge: Starforge, tmp_path: Path
) -> None:
    home = environment(tmp_path, judge=JUDGE)
    failed = {"id": "b", "response": "fail timeout"}
    ended = score(starforge, home, rollouts(tmp_path, ROLLOUTS[0], failed))
    assert ended.code == 1
    assert [(row["value"], row["cause"]) for row in rewards(tmp_path)] == [
        (5, None),
        (None, "timeout"),
    ]


def test_parquet_and_another_judge_are_taken(starforge: Starforge, tmp_path: Path) -> None:
    home = environment(tmp_path)
    (tmp_path / "j.yaml").write_text(json.dumps(JUDGE))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROLLOUTS), tmp_path / "r.parquet")
    ended = score(starforge, home, tmp_path / "r.parquet", "--judge", "j.yaml")
    assert ended.code == 0
    assert [row["value"] for row in rewards(tmp_path)] == [5, 0, 3]


def test_only_tasks_of_the_split_that_was_asked_for(starforge: Starforge, tmp_path: Path) -> None:
    home = environment(tmp_path, judge=JUDGE)
    assert score(starforge, home, rollouts(tmp_path, ROLLOUTS[1]), "--split", "eval").code == 0
    ended = score(starforge, home, rollouts(tmp_path, *ROLLOUTS), "--split", "eval")
    assert ended.code == 2
    assert "r.jsonl:1: id: 'a' is the id of no task that was asked for" in ended.err
    ended = score(starforge, home, rollouts(tmp_path, *ROLLOUTS), "--split", "test")
    assert (ended.code, "no split" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "nobody", "response": "5"}, "r.jsonl:2: id: 'nobody'"),
        ({"id": "a"}, "r.jsonl:2: response: Field required"),
        ({"id": "a", "response": "5", "more": 1}, "r.jsonl:2: more: unknown key"),
    ],
)
def test_a_bad_row_is_refused_before_any_is_judged(
    starforge: Starforge, tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    home = environment(tmp_path, judge=JUDGE)
    scripted.ASKED.clear()
    ended = score(starforge, home, rollouts(tmp_path, ROLLOUTS[0], row))
    assert (ended.code, said in ended.err, scripted.ASKED) == (2, True, [])
    assert not (tmp_path / "out.jsonl").exists()


def test_files_that_are_no_rewards_are_left_alone(starforge: Starforge, tmp_path: Path) -> None:
    home = environment(tmp_path, judge=JUDGE)
    rows = rollouts(tmp_path, *ROLLOUTS)
    same = starforge("env", "score", str(home), str(rows), "--out", str(rows))
    (tmp_path / "out.jsonl").write_text("mine\n")
    other = score(starforge, home, rows)
    assert (same.code, other.code) == (2, 2)
    assert (tmp_path / "out.jsonl").read_text() == "mine\n"
    assert starforge("env", "score", str(home), "none.jsonl", "--out", "new.jsonl").code == 2
    assert score(starforge, home, rollouts(tmp_path)).code == 2


def test_a_try_is_recorded_as_such(
    starforge: Starforge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'r.sqlite'}"
    database = Database.open(url)
    registry = registry_of(database, User(owner="alice"))
    registry.rubrics.put(Ref.parse("alice/one"), Rubric.model_validate(RUBRIC))
    monkeypatch.setenv("SF_DATABASE_URL", url)
    home = environment(tmp_path, judge=JUDGE, verifier={"kind": "rubric", "ref": "alice/one"})
    assert score(starforge, home, rollouts(tmp_path, *ROLLOUTS), "--as", "alice").code == 0
    [usage] = registry.rubrics.usage(Ref.parse("alice/one"))
    assert (usage.role, usage.status) == ("adhoc_score", "finished")
    assert usage.score == pytest.approx(8 / 3)
    database.close()


def test_a_mixed_environment_is_scored_as_it_ships(starforge: Starforge, tmp_path: Path) -> None:
    (tmp_path / "j.yaml").write_text(json.dumps(JUDGE))
    rows = rollouts(tmp_path, {"id": "bakery-oven", "response": "4"})
    ended = starforge(
        "env", "score", "meeting-notes", str(rows), "--out", "out.jsonl", "--judge", "j.yaml"
    )
    assert ended.code == 0
    assert rewards(tmp_path)[0]["value"] == 3
