import asyncio
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from starforge_rewards.errors import InputError, Unavailable
from starforge_rewards.judge.scripted import ScriptedJudge
from starforge_rewards.registry.folder import FolderRegistry
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.training.environment import load_environment
from starforge_rewards.training.reward import Item, Part
from starforge_rewards.training.stand import verifiers_of
from starforge_rewards.training.verify import Asking, as_number, load_plugin
from tests.training import scripted
from tests.training.made import BY_RUBRIC, RUBRIC, environment, item, loaded

OWN = {"kind": "rubric", "ref_column": "rubric"}


def no_client() -> Any:
    raise AssertionError("nobody needs a client here")


def verify(folder: Path, *items: Item, **verifier: Any) -> list[Part]:
    [one] = verifiers_of(loaded(folder, verifier=verifier), FolderRegistry())
    travelled = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    found: list[Part] = []
    for each in (one, travelled):
        if OWN.items() <= verifier.items() and each is travelled:
            each.rubric.resolver = FolderRegistry()
        asking = Asking(ScriptedJudge(scripted.judge), None, no_client)
        found = asyncio.run(each.verify(items, asking))
    return found


def plugin(folder: Path, *items: Item, named: str = "words") -> list[Part]:
    named = f"tests.training.scripted:{named}"
    return verify(folder, *items, kind="plugin", plugin=named, weight=2)


@pytest.mark.parametrize(
    ("number", "read"),
    [
        (1, 1.0),
        (-0.5, -0.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3.0),
        (Fraction(1, 4), 0.25),
        (True, None),
        (np.bool_(True), None),
        ("1", None),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        (10**400, None),
        ([1], None),
        (1j, None),
    ],
)
def test_only_a_finite_number_is_one(number: object, read: float | None) -> None:
    assert as_number(number) == read


def test_a_plugin_that_gives_no_number_is_a_cause_and_the_others_keep_theirs(
    tmp_path: Path,
) -> None:
    said = ["fine", "raise", "exit", "nan", "text", "none", "true", "huge", "fine"]
    parts = plugin(tmp_path, *map(item, said))
    assert [part.value for part in parts] == [0.5, *[None] * 7, 0.5]
    assert {part.cause for part in parts[1:-1]} == {"plugin_failed"}
    assert all("tests.training.scripted:words" in part.detail for part in parts[1:-1])
    assert parts[1].detail.endswith("ValueError: told to")
    assert "'1', no finite number" in parts[4].detail
    assert all(part.weight == 2 for part in parts)


def test_a_plugin_may_be_async_and_sees_no_split(tmp_path: Path) -> None:
    parts = plugin(tmp_path, item("r", split="eval"), item("r", id="other"), named="later")
    assert [part.value for part in parts] == [1.0, 2.0]
    assert [part.value for part in plugin(tmp_path, item("r"), named="wrapped")] == [0.25]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere_at_all:f", "verifier.plugin: cannot import nowhere_at_all"),
        ("tests.training.scripted:nothing", "has no callable nothing"),
        ("tests.training.scripted:ASKED", "has no callable ASKED"),
    ],
)
def test_a_plugin_that_is_not_there_is_refused_at_the_start(
    tmp_path: Path, named: str, said: str
) -> None:
    env = loaded(tmp_path, verifier={"kind": "plugin", "plugin": named})
    with pytest.raises(InputError, match=said) as caught:
        verifiers_of(env, FolderRegistry())
    assert caught.value.file == tmp_path / "env" / "environment.yaml"


def test_a_plugin_that_raises_while_it_is_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaks_on_import.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="ZeroDivisionError"):
        load_plugin("breaks_on_import:f")


@pytest.mark.parametrize(
    ("said", "value", "measure"),
    [
        ({"value": "total"}, 5.0, "total"),
        ({"value": "normalized"}, 1.0, "normalized"),
        ({}, 5.0, "total"),
    ],
)
def test_a_rubric_gives_the_value_that_is_asked_for(
    tmp_path: Path, said: dict[str, str], value: float, measure: str
) -> None:
    [part] = verify(tmp_path, item("5"), **BY_RUBRIC, **said)
    assert (part.value, part.measure) == (value, measure)
    [listed] = verifiers_of(loaded(tmp_path, verifiers=[BY_RUBRIC]), FolderRegistry())
    assert getattr(listed, "value", None) == "normalized", "the default in a list"


def test_where_compliance_is_expected_the_reward_is_turned_round(tmp_path: Path) -> None:
    rows = [item(said, expect=expect) for expect in ("comply", "refuse") for said in "05"]
    parts = verify(tmp_path, *rows, **BY_RUBRIC, value="total")
    assert [part.value for part in parts] == [1.0, 0.0, 0.0, 5.0]
    assert [part.measure for part in parts] == ["complied", "complied", "total", "total"]


def test_rows_bring_their_rubrics_inline_or_by_reference(tmp_path: Path) -> None:
    other = {"criteria": [{"name": "Only", "weight": 1}]}
    named = "starforge/support-answer"
    rows = [item("5", rubric=rubric) for rubric in (RUBRIC, other, named, RUBRIC)]
    parts = verify(tmp_path, *rows, **OWN)
    rubrics = [part.rubric for part in parts]
    assert rubrics[0] == rubrics[3] != rubrics[1]
    assert rubrics[2] == FolderRegistry().resolve(named).rubric
    assert [part.value for part in parts] == [5.0, 0.0, 5.0, 5.0]


def test_a_row_without_a_rubric_or_with_a_bad_one_is_a_mistake(tmp_path: Path) -> None:
    [one] = verifiers_of(loaded(tmp_path, verifier=OWN), FolderRegistry())
    asking = Asking(ScriptedJudge(scripted.judge), None, no_client)
    with pytest.raises(InputError, match="row 'a' has no rubric of its own"):
        asyncio.run(one.verify([item("5")], asking))
    with pytest.raises(InputError, match=r"rubric\.criteria"):
        asyncio.run(one.verify([item("5", rubric={"criteria": []})], asking))


def test_a_rubric_that_cannot_be_fetched_now_costs_its_rows_alone(tmp_path: Path) -> None:
    class Away:
        def resolve(self, text: str) -> ResolvedRubric:
            raise Unavailable("the server is away")

    [one] = verifiers_of(loaded(tmp_path, verifier=OWN), Away())
    asking = Asking(ScriptedJudge(scripted.judge), None, no_client)
    rows = [item("5", rubric=RUBRIC), item("5", rubric="a/b")]
    parts = asyncio.run(one.verify(rows, asking))
    assert [part.value for part in parts] == [5.0, None]
    assert (parts[1].cause, parts[1].detail) == ("registry_unavailable", "the server is away")


def test_every_verifier_has_a_name_of_its_own(tmp_path: Path) -> None:
    twice = {"kind": "plugin", "plugin": "tests.training.scripted:words"}
    home = environment(tmp_path, verifiers=[BY_RUBRIC, twice, twice, BY_RUBRIC])
    names = [one.name for one in verifiers_of(load_environment(home), FolderRegistry())]
    named = "tests.training.scripted:words"
    assert names == ["rubric", named, f"{named}#2", "rubric#2"]
