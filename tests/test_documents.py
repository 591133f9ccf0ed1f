import json
from pathlib import Path

import pytest
from pydantic import JsonValue, TypeAdapter

from starforge_rewards import documents, tables
from starforge_rewards.conversation import Frozen, Message, Rollout
from starforge_rewards.errors import InputError
from starforge_rewards.rubrics.weighted import Rubric

RUBRIC = """\
# a comment
description: Support answers.
scale_min: 0
scale_max: 5
criteria:
  - name: Correct
    weight: 3
    description: Every claim is true.
  - name: Cites
    weight: 1
"""


class Free(Frozen):
    a: JsonValue = None


def written(folder: Path, text: str | bytes, name: str = "r.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path: Path, model: type[Frozen] = Rubric) -> InputError:
    with pytest.raises(InputError) as error:
        documents.load(path, model)
    assert error.value.file == path
    assert str(error.value).startswith(str(path))
    return error.value


def refused_row(path: Path, model: type[Frozen] = Rollout) -> InputError:
    with pytest.raises(InputError) as error:
        list(tables.rows(path, model))
    assert error.value.file == path
    return error.value


def test_a_yaml_file_becomes_the_model(tmp_path: Path) -> None:
    rubric = documents.load(written(tmp_path, RUBRIC), Rubric)
    assert [c.name for c in rubric.criteria] == ["Correct", "Cites"]
    assert (rubric.scale_min, rubric.scale_max) == (0.0, 5.0)


def test_a_type_adapter_is_as_good_as_a_model(tmp_path: Path) -> None:
    numbers = documents.load(written(tmp_path, "[1, 2]"), TypeAdapter(list[int]))
    assert numbers == [1, 2]


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ("weight: 3", "weight: .nan", 7, "criteria[0].weight"),
        ("weight: 1", "weight: -.inf", 10, "criteria[1].weight"),
        ("weight: 3", "weight: true", 7, "criteria[0].weight"),
        ("weight: 3", "weight: '3'", 7, "criteria[0].weight"),
        ("weight: 3", "wieght: 3\n    weight: 3", 7, "criteria[0].wieght"),
        ("    weight: 1\n", "", 9, "criteria[1].weight"),
        ("name: Cites", "name: ' Correct '", 9, "criteria[1].name"),
        ("name: Cites", "name: ' '", 9, "criteria[1].name"),
        ("scale_min: 0", "scale_min: 5", 3, "scale_min"),
        ("scale_min: 0\n", "", 3, "scale_max"),
        ("weight: 1", "weight: 1\n    anchors:\n      '0': no\n      '9': x", 12, None),
        ("weight: 1", "weight: 1\n    anchors:\n      9: x", 11, "criteria[1].anchors"),
        ("scale_max: 5", "scale_max: 5\nlevels: 1", 5, "levels"),
        ("description: Support", "colour: Support", 2, "colour"),
    ],
)
def test_a_refused_field_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, field: str | None
) -> None:
    assert RUBRIC.count(old) == 1
    error = refused(written(tmp_path, RUBRIC.replace(old, new)))
    assert error.line == line
    assert field is None or error.field == field


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: 1\n\t- 2\n", 2),
        ("a: 1\nb: \x00\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: &x 1\nb: *y\n", 2),
        ("a: 1\nb: !!python/object:os.system {}\n", 2),
        ("? [1]\n: 2\n", 1),
        ("a: 1\n? !!str {=: foo}\n: 2\n", 2),
        ("a: 2026-99-99\n", None),
        ("a: !!int ''\n", None),
        ("a: !!bool x\n", None),
        ("a: !!timestamp x\n", None),
        ("[" * 900 + "]" * 900, None),
    ],
)
def test_what_is_not_yaml_is_an_input_error_with_its_line(
    tmp_path: Path, text: str, line: int | None
) -> None:
    error = refused(written(tmp_path, text), Free)
    assert error.problem.startswith("not YAML: ")
    assert error.line == line


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("a: 1\na: 2\n", 2, "a"),
        ("a:\n  - b: 1\n    c: 2\n    b: 3\n", 4, "b"),
        ("a: {1: x, '1': y}\n", 1, "1"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(
    tmp_path: Path, text: str, line: int, field: str
) -> None:
    error = refused(written(tmp_path, text), Free)
    assert (error.line, error.field) == (line, field)
    assert "twice" in error.problem


def test_an_alias_may_stand_for_the_same_mapping_twice(tmp_path: Path) -> None:
    loaded = documents.load(written(tmp_path, "a: [&x {k: 1}, *x]\n"), Free)
    assert loaded.a == [{"k": 1}, {"k": 1}]


def test_a_mapping_that_contains_itself_is_refused(tmp_path: Path) -> None:
    error = refused(written(tmp_path, "a: &x [*x]\n"), Free)
    assert error.field == "a[0]"


def test_the_line_of_a_merged_field_is_that_of_what_holds_it(tmp_path: Path) -> None:
    merged = (
        "- &one {weight: 1}\n- &two\n  <<: *one\n  name: ' '\n- <<: *one\n  weight: x\n  name: c"
    )
    with pytest.raises(InputError) as error:
        documents.load(written(tmp_path, merged), TypeAdapter(list[dict[str, int]]))
    assert (error.value.line, error.value.field) == (4, "[1].name")


@pytest.mark.parametrize("text", ["", "# nothing\n", "- 1\n", "just words\n", "5\n"])
def test_a_document_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    assert "mapping" in refused(written(tmp_path, text)).problem


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.yaml").problem == "no such file"
    assert refused_row(tmp_path / "none.jsonl").problem == "no such file"


def test_a_folder_in_place_of_a_file_cannot_be_read(tmp_path: Path) -> None:
    assert refused(tmp_path).problem.startswith("cannot be read: ")
    assert refused_row(tmp_path).problem.startswith("cannot be read: ")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_text_in_another_encoding_is_refused_with_its_line(tmp_path: Path, mark: bytes) -> None:
    path = written(tmp_path, mark + "a: 1\nb: ok\nc: Größe\n".encode("latin-1"))
    assert refused(path, Free).line == 3
    assert "UTF-8" in refused(path, Free).problem


@pytest.mark.parametrize("name", ["r.yaml", "r.json"])
def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, b'\xef\xbb\xbf{"a": 1}', name)
    assert documents.load(path, Free).a == 1


def test_json_is_read_by_the_rules_of_json(tmp_path: Path) -> None:
    text = '{\n\t"a": ["\\ud83d\\ude00", 1e-3, 5E2, "no", "\\/"]\n}'
    assert documents.load(written(tmp_path, text, "r.JSON"), Free).a == [
        "😀",
        0.001,
        500.0,
        "no",
        "/",
    ]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{"a": 1,\n "b": }', 2, "not JSON"),
        ('{"a": NaN}', None, "NaN is not a JSON number"),
        ('{"a": -Infinity}', None, "-Infinity is not a JSON number"),
        ('{"a": 1e999}', None, "1e999 is too large"),
        ('{"a": 1,\n "a": 2}', None, "'a' is there twice"),
        ('{"a": 1,\n "b": 2}', 2, "unknown key"),
        ('{"a": 1,\n\t"b": 2}', None, "unknown key"),
        ("[" * 100_000, None, "not JSON"),
    ],
)
def test_a_bad_json_document_is_refused(
    tmp_path: Path, text: str, line: int | None, said: str
) -> None:
    error = refused(written(tmp_path, text, "r.json"), Free)
    assert said in error.problem
    assert error.line == line


def test_rows_come_in_order_with_the_numbers_of_their_lines(tmp_path: Path) -> None:
    text = '\n{"prompt": "a", "response": "b"}\r\n  \n{"prompt": "c\u2028d", "response": ""}'
    found = list(tables.rows(written(tmp_path, text, "r.jsonl"), Rollout))
    assert [number for number, _ in found] == [2, 4]
    assert [row.model_dump()["prompt"] for _, row in found] == ["a", "c\u2028d"]


def test_rows_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, '{"prompt": "a", "response": "b"}\nbroken\n', "r.jsonl")
    reading = tables.rows(path, Rollout)
    assert next(reading)[0] == 1
    with pytest.raises(InputError):
        next(reading)


def test_the_first_row_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    row = b'\xef\xbb\xbf{"prompt": "a", "response": "b"}\n'
    (found,) = tables.rows(written(tmp_path, row, "r.jsonl"), Rollout)
    assert found == (1, Rollout(prompt="a", response="b"))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b"{", "not JSON"),
        (b'{"prompt": "a", "response": "b"} {}', "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"prompt": "\xed\xa0\x80", "response": "b"}', "not UTF-8"),
        (b'{"prompt": "a", "prompt": "b", "response": "c"}', "'prompt' is there twice"),
        (b'{"prompt": "a", "response": "b", "metadata": {"x": NaN}}', "NaN is not a JSON number"),
        (b'{"prompt": "a", "response": "b", "metadata": {"x": 1e999}}', "1e999 is too large"),
        (b'{"prompt": "a", "response": "b", "metadata": {"x": 1' + b"0" * 5000 + b"}}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"null", "mapping"),
        (b'"text"', "mapping"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, row: bytes, said: str) -> None:
    good = b'{"prompt": "a", "response": "b"}\n'
    error = refused_row(written(tmp_path, good + b"\n" + row + b"\n" + good, "r.jsonl"))
    assert error.line == 3
    assert said in error.problem


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"prompt": "a"}, "response"),
        ({"prompt": "a", "response": "b", "refrence": "c"}, "refrence"),
        ({"prompt": 5, "response": "b"}, "prompt"),
        ({"prompt": "\ud800", "response": "b"}, "prompt"),
        ({"prompt": [{"role": "user"}, {"role": "usr"}], "response": "b"}, "prompt[1].role"),
        ({"prompt": [{"role": "user", "text": "x"}], "response": "b"}, "prompt[0].text"),
        ({"prompt": "a", "response": [{"role": "tool", "content": 1}]}, "response[0].content"),
        ({"prompt": "a", "response": "b", "metadata": {"x": "\ud800"}}, "metadata"),
        ({"prompt": "a", "response": "b", "rubric": 5}, "rubric"),
    ],
)
def test_a_refused_field_of_a_row_is_named(
    tmp_path: Path, row: dict[str, object], field: str
) -> None:
    error = refused_row(written(tmp_path, json.dumps(row), "r.jsonl"))
    assert (error.line, error.field) == (1, field)


def test_rows_of_another_model_are_checked_by_it(tmp_path: Path) -> None:
    path = written(tmp_path, '{"role": "user"}\n{"role": "me"}\n', "r.jsonl")
    error = refused_row(path, Message)
    assert (error.line, error.field) == (2, "role")
