from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from starforge_rewards import documents
from starforge_rewards.cli import plain
from starforge_rewards.registry.records import body_of
from starforge_rewards.rubrics.weighted import Rubric

PROSE = st.text(
    st.characters(exclude_categories=["Cs"]).filter(
        lambda c: c in "\t\n\r" or (ord(c) >= 32 and ord(c) != 127)
    )
)


def test_the_lines_of_a_text_stay_lines() -> None:
    body = plain.as_yaml({"description": "one\ntwo: 2", "name": "ünï 🙂", "end": "x\u2028y"})
    assert body.splitlines() == [
        "description: |-",
        "  one",
        "  two: 2",
        "name: ünï 🙂",
        'end: "x\\Ly"',
    ]


@given(PROSE, PROSE.filter(str.strip), PROSE)
def test_a_text_in_yaml_is_read_back_as_it_was(description: str, name: str, anchor: str) -> None:
    criterion = {"name": name, "weight": 1e-7, "description": description, "anchors": {"0": anchor}}
    rubric = Rubric.model_validate({"description": description, "criteria": [criterion]})
    with TemporaryDirectory() as folder:
        path = Path(folder, "rubric.yaml")
        path.write_text(plain.as_yaml(body_of(rubric)), encoding="utf-8", newline="")
        assert documents.load(path, Rubric) == rubric
