import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.training.dataset import TaskRow, read_tasks
from tests.training.made import RUBRIC, loaded

GOOD = {"id": "a", "prompt": "p"}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"id": "b", "prompt": "p", "split": "test"}, "split"),
        ({"id": "a", "prompt": "q"}, "id"),
        ({"id": "b"}, "prompt"),
        ({"prompt": "p"}, "id"),
        ({"id": "b", "prompt": 3}, "prompt"),
        ({"id": "b", "prompt": [{"role": "judge", "content": "x"}]}, "prompt[0].role"),
        ({"id": "b", "prompt": "p", "expect": "both"}, "expect"),
        ({"id": "b", "prompt": "p", "answer": "x"}, "answer"),
    ],
)
def test_one_bad_row_fails_the_whole_file_before_any_is_served(
    tmp_path: Path, bad: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError) as caught:
        next(read_tasks(loaded(tmp_path, [GOOD, bad])))
    assert (caught.value.line, caught.value.field) == (2, field)
    assert caught.value.file == tmp_path / "env" / "rows.jsonl"


def test_a_split_that_is_not_there_is_never_served_from_the_other(tmp_path: Path) -> None:
    env = loaded(tmp_path, [GOOD, {**GOOD, "id": "b"}])
    assert [row.id for row in read_tasks(env, "train")] == ["a", "b"]
    with pytest.raises(InputError, match=r"rows\.jsonl: split: has no row of the split 'eval'"):
        next(read_tasks(env, "eval"))


def test_each_split_has_its_rows_and_without_one_all_come(tmp_path: Path) -> None:
    env = loaded(tmp_path)
    assert [row.id for row in read_tasks(env, "eval")] == ["b"]
    assert [row.id for row in read_tasks(env)] == ["a", "b"]


def test_no_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no rows"):
        next(read_tasks(loaded(tmp_path, [])))


def test_columns_are_named_otherwise_in_either_form(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"key": f"k{n}", "question": f"q{n}", "prompt": "not this"} for n in range(3)
    ]
    columns = {"id": "key", "prompt": "question", "reference": "answer"}
    one = loaded(tmp_path, rows, dataset={"file": "rows.jsonl", "columns": columns})
    table = pyarrow.table({key: [row.get(key) for row in rows] for key in rows[0]})
    pyarrow.parquet.write_table(table, one.folder / "rows.parquet")
    other = loaded(tmp_path, rows, dataset={"file": "rows.parquet", "columns": columns})
    expected = [TaskRow(id=f"k{n}", prompt=f"q{n}") for n in range(3)]
    assert list(read_tasks(one)) == list(read_tasks(other)) == expected


def test_a_mapped_column_that_is_absent_is_not_replaced_by_another(tmp_path: Path) -> None:
    env = loaded(tmp_path, [GOOD], dataset={"file": "rows.jsonl", "columns": {"prompt": "ask"}})
    with pytest.raises(InputError, match=r"rows\.jsonl:1: prompt: Field required"):
        next(read_tasks(env))


def test_where_rows_bring_rubrics_each_has_one(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {**GOOD, "standard": RUBRIC},
        {"id": "b", "prompt": "p", "standard": "a/b"},
    ]
    verifier = {"kind": "rubric", "ref_column": "standard"}
    found = list(read_tasks(loaded(tmp_path, rows, verifier=verifier)))
    assert [row.rubric for row in found] == [RUBRIC, "a/b"]
    env = loaded(tmp_path, [*rows, {"id": "c", "prompt": "p"}], verifier=verifier)
    with pytest.raises(InputError, match=r"rows\.jsonl:3: standard: each row must have a rubric"):
        next(read_tasks(env))


def hub(folder: Path) -> Path:
    """A folder that `load_dataset` takes for a dataset, with a column that nobody asked for."""
    home = folder / "data"
    home.mkdir()
    rows = [{"question": f"q{n}", "standard": RUBRIC, "junk": n} for n in range(3)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), home / "train.parquet")
    return home


@pytest.mark.parametrize("streaming", [False, True])
def test_a_hub_dataset_is_read_by_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streaming: bool
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    source = {"hub": str(hub(tmp_path)), "revision": "main", "streaming": streaming}
    env = loaded(
        tmp_path,
        dataset={**source, "columns": {"prompt": "question"}},
        verifier={"kind": "rubric", "ref_column": "standard"},
    )
    found = list(read_tasks(env, "train"))
    assert [(row.id, row.prompt) for row in found] == [(f"row-{n}", f"q{n - 1}") for n in (1, 2, 3)]
    assert found[0].rubric is not None
    assert json.loads(json.dumps(found[0].rubric))["criteria"] == RUBRIC["criteria"]
    with pytest.raises(InputError, match="has no row of the split 'eval'"):
        list(read_tasks(env, "eval"))


def test_a_hub_dataset_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets.config
    import huggingface_hub.constants

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    env = loaded(tmp_path, dataset={"hub": "nobody/nothing", "revision": "0" * 40})
    with pytest.raises(NotFound, match=r"env: dataset nobody/nothing: "):
        next(read_tasks(env))
