from pathlib import Path

import pytest
from pydantic import JsonValue

from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry.folder import FolderRegistry, RowRubrics, rubric_from_file

TEXT = """\
scale_min: 0
scale_max: 5
criteria:
  - name: Correct
    weight: 3
"""
INLINE: dict[str, JsonValue] = {
    "criteria": [{"name": "Correct", "weight": 3}],
    "scale_min": 0,
    "scale_max": 5,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "support.v2.yaml").write_text(TEXT)
    (tmp_path / "alice" / "broken.yaml").write_text(TEXT.replace("3", ".nan"))
    return tmp_path


def test_a_reference_resolves_to_its_file_unversioned(folder: Path) -> None:
    held = FolderRegistry(folder).resolve("alice/support.v2")
    assert str(held) == "alice/support.v2"
    assert held.unversioned
    assert held.rubric.criteria[0].weight == 3


def test_the_shipped_rubrics_are_the_default() -> None:
    assert len(FolderRegistry().resolve("starforge/support-answer").rubric.criteria) == 3


@pytest.mark.parametrize("named", ["alice/none", "bob/support.v2", "alice/support"])
def test_what_is_not_there_is_not_found_and_says_where(folder: Path, named: str) -> None:
    with pytest.raises(NotFound, match=f"no rubric {named} in {folder}"):
        FolderRegistry(folder).resolve(named)


def test_a_version_is_not_found_because_a_folder_keeps_none(folder: Path) -> None:
    with pytest.raises(NotFound, match="name it without @2"):
        FolderRegistry(folder).resolve("alice/support.v2@2")


@pytest.mark.parametrize("named", ["../alice/support.v2", "alice", "alice/../bob", "/etc/passwd"])
def test_a_reference_cannot_leave_the_folder(folder: Path, named: str) -> None:
    with pytest.raises(InputError):
        FolderRegistry(folder / "alice").resolve(named)


def test_a_file_that_is_refused_names_file_line_and_field(folder: Path) -> None:
    with pytest.raises(InputError, match=r"broken\.yaml:5: criteria\[0\]\.weight: ") as caught:
        FolderRegistry(folder).resolve("alice/broken")
    assert caught.value.line == 5


def test_a_rubric_file_has_its_digest_for_an_identity(folder: Path, tmp_path: Path) -> None:
    held = rubric_from_file(folder / "alice" / "support.v2.yaml")
    assert held.ref is None
    assert held.digest == FolderRegistry(folder).resolve("alice/support.v2").digest
    with pytest.raises(InputError, match="no such file"):
        rubric_from_file(tmp_path / "none.yaml")


def test_rows_carry_rubrics_by_reference_or_inline_and_each_is_read_once(folder: Path) -> None:
    own = RowRubrics(FolderRegistry(folder))
    by_ref, inline = own.of("alice/support.v2"), own.of(dict(INLINE))
    assert by_ref.digest == inline.digest
    assert inline.ref is None
    (folder / "alice" / "support.v2.yaml").unlink()
    assert own.of("alice/support.v2") is by_ref
    assert own.of(dict(INLINE)) is inline


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"weigth": 1}, "rubric.weigth", "unknown key"),
        ({"criteria": []}, "rubric.criteria", "at least 1"),
        ({"criteria": [{"name": "A"}]}, r"rubric.criteria\[0\].weight", "required"),
        ({"criteria": [{"name": "A", "weight": "1"}]}, r"rubric.criteria\[0\].weight", "number"),
        ({"criteria": [{"name": "A", "weight": 1}] * 2}, r"rubric.criteria\[1\].name", "twice"),
        ({"scale_min": 6}, "rubric.scale_min", "below scale_max"),
    ],
)
def test_a_refused_inline_rubric_names_its_field_in_the_row(
    change: dict[str, JsonValue], field: str, problem: str
) -> None:
    with pytest.raises(InputError, match=f"^{field}: .*{problem}"):
        RowRubrics(FolderRegistry()).of({**INLINE, **change})
