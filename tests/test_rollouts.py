import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge_rewards.conversation import Message, ToolCall
from starforge_rewards.errors import InputError
from starforge_rewards.rollouts import read_rollouts

TURNS = [
    {"role": "user", "content": "Why?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"name": "look", "arguments": "{}", "result": "found", "status": "ok"}],
    },
]
RUBRIC = {
    "scale_min": 0,
    "scale_max": 5,
    "criteria": [
        {"name": "A", "weight": 1, "anchors": {"0": "no"}},
        {"name": "B", "weight": -0.5, "description": "d"},
    ],
}


def jsonl(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def parquet(path: Path, *rows: dict[str, Any]) -> Path:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    table = pyarrow.table({key: [row.get(key) for row in rows] for key in keys})
    pyarrow.parquet.write_table(table, path, row_group_size=2)
    return path


def test_rows_keep_their_order_and_have_a_name(tmp_path: Path) -> None:
    rows = [{"prompt": "p", "response": str(n)} for n in range(3)]
    rows[1]["id"] = "own"
    file = jsonl(tmp_path / "r.jsonl", *rows)
    file.write_text(file.read_text().replace("\n", "\n\n", 1))
    assert [(row.line, row.id, row.rollout.response) for row in read_rollouts(file)] == [
        (1, "row-1", "0"),
        (3, "own", "1"),
        (4, "row-4", "2"),
    ]


ROWS: list[dict[str, Any]] = [
    {"id": "a", "prompt": "p", "response": "r", "reference": "x", "metadata": {"k": 1}},
    {"id": "b", "prompt": "p", "response": "", "context": "c", "metadata": {"other": "Zwölf"}},
    {"id": "c", "prompt": "p", "response": "r", "rubric": RUBRIC},
]


def test_parquet_holds_the_same_rollouts_as_jsonl(tmp_path: Path) -> None:
    lines = read_rollouts(jsonl(tmp_path / "r.jsonl", *ROWS))
    columns = read_rollouts(parquet(tmp_path / "r.PARQUET", *ROWS))
    assert columns == lines


def test_parquet_holds_conversations_too(tmp_path: Path) -> None:
    rows = [{"prompt": TURNS[:1], "response": TURNS[1:]}, {"prompt": TURNS, "response": TURNS}]
    columns = read_rollouts(parquet(tmp_path / "r.parquet", *rows))
    assert columns == read_rollouts(jsonl(tmp_path / "r.jsonl", *rows))
    call = ToolCall(name="look", result="found", status="ok")
    assert columns[0].rollout.response == (Message(role="assistant", tool_calls=(call,)),)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
MAYBE = st.none() | TEXT


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(TEXT, TEXT, MAYBE, MAYBE), min_size=1, max_size=5))
def test_any_text_is_the_same_from_both_kinds_of_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str | None, str | None]]
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    keys = ("prompt", "response", "reference", "context")
    dicts = [dict(zip(keys, row, strict=True)) for row in rows]
    columns = read_rollouts(parquet(folder / "r.parquet", *dicts))
    assert columns == read_rollouts(jsonl(folder / "r.jsonl", *dicts))
    assert [row.rollout.prompt for row in columns] == [row[0] for row in rows]


GOOD = {"prompt": "p", "response": "r"}


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ({"prompt": "p"}, "response: Field required"),
        ({**GOOD, "respones": "r"}, "respones: unknown key"),
        ({**GOOD, "response": [{"role": "bot"}]}, r"response\[0\].role: "),
        ({**GOOD, "id": "row-1"}, "id: 'row-1' is already the id of line 1"),
    ],
)
@pytest.mark.parametrize("write", [jsonl, parquet])
def test_a_refused_row_names_file_line_and_field(
    tmp_path: Path, write: Any, bad: dict[str, Any], place: str
) -> None:
    path = tmp_path / f"r.{write.__name__}"
    good = {**GOOD, "response": []} if isinstance(bad.get("response"), list) else GOOD
    with pytest.raises(InputError, match=rf"{path.name}:2: {place}"):
        read_rollouts(write(path, good, bad))


@pytest.mark.parametrize("write", [jsonl, parquet])
def test_a_column_of_another_type_is_refused(tmp_path: Path, write: Any) -> None:
    path = tmp_path / f"r.{write.__name__}"
    with pytest.raises(InputError, match=f"{path.name}:1: prompt: must be a text or a list"):
        read_rollouts(write(path, {**GOOD, "prompt": 5}))


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_rollouts_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "r.jsonl").write_text(content)
    with pytest.raises(InputError, match="holds no rollouts"):
        read_rollouts(tmp_path / "r.jsonl")
    with pytest.raises(InputError, match="holds no rollouts"):
        read_rollouts(parquet(tmp_path / "r.parquet", {"prompt": "p"}).with_name("r.jsonl"))


def test_an_empty_parquet_file_is_refused(tmp_path: Path) -> None:
    table = pyarrow.table({"prompt": pyarrow.array([], pyarrow.string())})
    pyarrow.parquet.write_table(table, tmp_path / "r.parquet")
    with pytest.raises(InputError, match="holds no rollouts"):
        read_rollouts(tmp_path / "r.parquet")


def test_what_is_no_parquet_file_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_text("prompt,response\n" * 99)
    with pytest.raises(InputError, match=r"r\.parquet: not a Parquet file: ") as caught:
        read_rollouts(tmp_path / "r.parquet")
    assert "\n" not in str(caught.value)


TEXTS = pyarrow.array(["p", "q"])
# "a", and two bytes that are no UTF-8.
NO_TEXT = pyarrow.Array.from_buffers(
    pyarrow.string(),
    2,
    [None, pyarrow.array([0, 1, 3], pyarrow.int32()).buffers()[1], pyarrow.py_buffer(b"a\xff\xfe")],
)


@pytest.mark.parametrize(
    ("column", "place"),
    [
        (NO_TEXT, "2: response: cannot be read: 'utf-8' codec"),
        (pyarrow.array([0, 2**55], pyarrow.timestamp("ms")), "2: response: cannot be read: "),
        (
            pyarrow.StructArray.from_arrays([TEXTS, TEXTS], ["t", "t"]),
            "1: response: cannot be read: .*duplicate field names",
        ),
    ],
)
def test_a_value_that_cannot_be_read_names_file_row_and_column(
    tmp_path: Path, column: pyarrow.Array, place: str
) -> None:
    table = pyarrow.table({"prompt": TEXTS, "response": column})
    pyarrow.parquet.write_table(table, tmp_path / "r.parquet")
    with pytest.raises(InputError, match=rf"r\.parquet:{place}"):
        read_rollouts(tmp_path / "r.parquet")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    names = ["prompt", "response", "prompt"]
    table = pyarrow.Table.from_arrays([TEXTS] * 3, names=names)
    pyarrow.parquet.write_table(table, tmp_path / "r.parquet")
    with pytest.raises(InputError, match=r"r\.parquet: prompt: this column is there twice"):
        read_rollouts(tmp_path / "r.parquet")


@pytest.mark.parametrize("name", ["r.jsonl", "r.parquet"])
def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_rollouts(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=name):
        read_rollouts(tmp_path / name)
