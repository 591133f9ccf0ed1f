import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge_rewards import tables
from starforge_rewards.conversation import Frozen
from starforge_rewards.errors import InputError


class Row(Frozen):
    name: str
    number: int = 0
    more: dict[str, str] = {}


ROWS: list[dict[str, Any]] = [
    {"name": "a", "number": 1},
    {"name": "b", "more": {"x": "y"}},
    {"name": "c", "number": 3, "more": {"z": "w"}},
]


def files(folder: Path, rows: list[dict[str, Any]]) -> list[Path]:
    lines, table = folder / "r.jsonl", folder / "r.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = pyarrow.table({key: [row.get(key) for row in rows] for key in keys})
    pyarrow.parquet.write_table(columns, table, row_group_size=2)
    return [lines, table]


def test_both_forms_hold_the_same_rows(tmp_path: Path) -> None:
    expected = [(n, Row(**row)) for n, row in enumerate(ROWS, start=1)]
    for path in files(tmp_path, ROWS):
        assert list(tables.rows(path, Row)) == expected


def test_a_column_is_taken_under_another_name_and_only_from_there(tmp_path: Path) -> None:
    rows = [{"who": "a", "number": 7}, {"who": "b", "number": 8}]
    for path in files(tmp_path, rows):
        found = [row for _, row in tables.rows(path, Row, {"name": "who"})]
        assert found == [Row(name="a", number=7), Row(name="b", number=8)]
        with pytest.raises(InputError, match=r":1: name: Field required"):
            next(tables.rows(path, Row, {"name": "nobody", "number": "number"}))


def test_a_row_that_is_refused_says_where_it_stands(tmp_path: Path) -> None:
    for path in files(tmp_path, [{"name": "a"}, {"name": "b"}, {"name": None}]):
        with pytest.raises(InputError, match=rf"{path.name}:3: name: "):
            list(tables.rows(path, Row))


NAMES = st.sampled_from("abcd")


@given(st.dictionaries(NAMES, st.integers()), st.dictionaries(NAMES, NAMES, min_size=1))
def test_every_field_comes_from_one_column(record: dict[str, int], columns: dict[str, str]) -> None:
    found = tables.renamed(record, columns)
    for field, column in columns.items():
        assert found.get(field) == record.get(column)
    for key in found.keys() - columns.keys():
        assert found[key] == record[key]
        assert key not in columns.values()


def test_a_large_parquet_file_comes_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    table = pyarrow.table({"name": [str(n) for n in range(5000)]})
    pyarrow.parquet.write_table(table, path)
    found = tables.rows(path, Row)
    assert next(found)[1].name == "0"
    assert [number for number, _ in found] == list(range(2, 5001))
