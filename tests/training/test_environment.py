from pathlib import Path

import pytest

from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.training.dataset import read_tasks
from starforge_rewards.training.environment import load_environment, shipped_environments
from tests.training.made import loaded

USUAL = {
    "name": "name: env",
    "dataset": "dataset: rows.jsonl",
    "verifier": "verifier: {kind: rubric, ref: a/b}",
}


def write(folder: Path, changed: str) -> Path:
    home = folder / "env"
    home.mkdir()
    lines = USUAL | {changed.split(":")[0]: changed}
    (home / "environment.yaml").write_text("\n".join(lines.values()) + "\n")
    return home


@pytest.mark.parametrize(
    ("written", "line", "field"),
    [
        ("judge: {kind: vllm, model: m, fooo: 1}", 4, "judge.fooo"),
        ("judge: {kind: nope}", 4, "judge.kind"),
        ("judge: 3", 4, "judge"),
        ("dataset: {hub: a}", 2, "dataset.revision"),
        ("dataset: {hub: a, revision: b, streaming: perhaps}", 2, "dataset.streaming"),
        ("dataset: 3", 2, "dataset"),
        ("dataset: {file: a, columns: {promt: b}}", 2, "dataset.columns.promt"),
        ("dataset: {file: a, columns: {}}", 2, "dataset.columns"),
        ("verifier: {kind: rubric, ref: bare}", 3, "verifier.ref"),
        ("verifier: {kind: rubric}", 3, "verifier"),
        ("verifier: {kind: rubric, ref: a/b, ref_column: c}", 3, "verifier.ref_column"),
        (
            "verifier: {kind: rubric, rubric: {criteria: [{name: a, weight: .nan}]}}",
            3,
            "verifier.rubric.criteria[0].weight",
        ),
        ("verifier: {kind: endpoint, url: 'ftp://x'}", 3, "verifier.url"),
        ("verifier: {kind: endpoint, url: 'http://x:99999'}", 3, "verifier.url"),
        ("verifier: {kind: endpoint, url: 'http://x', attempts: 0}", 3, "verifier.attempts"),
        ("verifier: {kind: endpoint, url: 'http://x', timeout: 0}", 3, "verifier.timeout"),
        ("verifier: {kind: plugin, plugin: module}", 3, "verifier.plugin"),
        ("verifier: {kind: plugin, plugin: 'a:b', weight: .nan}", 3, "verifier.weight"),
        ("verifier: {kind: plugin, plugin: 'a:b', weight: true}", 3, "verifier.weight"),
        ("verifier: {kind: plugin, plugin: 'a:b', weight: '1'}", 3, "verifier.weight"),
        ("verifier: {kind: plugin, plugin: 'a:b', weight: 0}", 3, "verifier"),
        ("verifier: {kind: judge}", 3, "verifier"),
        ("verifier: null", 3, "verifier"),
        ("verifiers: []", 4, "verifiers"),
        ("verifiers: [{kind: rubric, ref: a/b}]", 3, "verifier"),
        ("value: max", 4, "value"),
        ("on_failure: zero", 4, "on_failure"),
        ("abort_failure_rate: 0", 4, "abort_failure_rate"),
        ("abort_failure_rate: 1.5", 4, "abort_failure_rate"),
        ("keep_reasoning: 1", 4, "keep_reasoning"),
        ("metadata: 3", 4, "metadata"),
        ("reward: 1", 4, "reward"),
        ("name: other", None, "name"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line_and_field(
    tmp_path: Path, written: str, line: int | None, field: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_environment(write(tmp_path, written))
    assert (caught.value.line, caught.value.field) == (line, field)
    assert caught.value.file == tmp_path / "env" / "environment.yaml"


def test_a_list_of_verifiers_takes_no_value_for_all(tmp_path: Path) -> None:
    both = [{"kind": "rubric", "ref": "a/b"}, {"kind": "plugin", "plugin": "a:b"}]
    with pytest.raises(InputError, match="in a list each rubric verifier says its own"):
        loaded(tmp_path, verifiers=both, value="normalized")
    assert len(loaded(tmp_path, verifiers=both).environment.all_verifiers) == 2


def test_a_row_has_one_rubric_of_its_own(tmp_path: Path) -> None:
    both = [{"kind": "rubric", "ref_column": name} for name in ("mine", "yours")]
    with pytest.raises(InputError, match="verifiers: one verifier may say ref_column"):
        loaded(tmp_path, verifiers=both)


def test_an_environment_is_found_by_folder_file_or_shipped_name(tmp_path: Path) -> None:
    one = loaded(tmp_path)
    assert load_environment(tmp_path / "env" / "environment.yaml") == one
    assert load_environment("support-desk").environment.name == "support-desk"
    with pytest.raises(NotFound, match="no environment 'nowhere'"):
        load_environment("nowhere")
    with pytest.raises(NotFound):
        load_environment(tmp_path / "nowhere")


def test_what_ships_loads_with_rows_of_both_splits() -> None:
    assert shipped_environments() == ["clinic-booking", "meeting-notes", "support-desk"]
    for name in shipped_environments():
        splits = {row.split for row in read_tasks(load_environment(name))}
        assert splits == {"train", "eval"}


def test_the_judge_lies_beside_the_file_or_ships_or_is_overridden(tmp_path: Path) -> None:
    one = loaded(tmp_path, judge="judge.yaml")
    with pytest.raises(InputError, match=r"env/judge\.yaml: no such file"):
        one.judge()
    (one.folder / "judge.yaml").write_text("kind: scripted\nfunction: a:b\n")
    assert one.judge() == ScriptedConfig(kind="scripted", function="a:b")
    assert one.judge("embedded").kind == "vllm"
    assert one.judge("pool:here").kind == "pool"
    inline = loaded(tmp_path, judge={"kind": "scripted", "function": "c:d"})
    assert inline.judge() == ScriptedConfig(kind="scripted", function="c:d")
