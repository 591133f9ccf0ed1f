"""Inspect's own eval, in `.venvs/inspect`."""

import json
from typing import Any

import pytest

from tests.training import judge_file, venvs


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What Inspect made of a mock model's answers."""
    folder = tmp_path_factory.mktemp("inspect")
    judge, out = judge_file.write(folder), folder / "told.json"
    venvs.run("inspect", "tests.training.inspect_run", str(judge), str(folder / "logs"), str(out))
    return json.loads(out.read_text())


def test_a_sample_that_the_judge_could_not_score_is_outside_every_metric(told: Any) -> None:
    assert told["status"] == "success"
    assert (told["scored"], told["unscored"]) == (3, 1)
    assert told["metrics"]["mean"] == pytest.approx((3 + 5 + 0) / 3)
    failed = told["samples"][1]
    assert failed["value"] is None
    assert failed["reason"] == "grader_failed"
    assert failed["explanation"].startswith("timeout: ")


def test_a_score_says_which_rubric_made_it_and_has_each_criterion(told: Any) -> None:
    about = told["samples"][0]["metadata"]
    assert about["rubrics"] == ["starforge/support-answer"]
    assert about["criteria"]["Factually correct"] == 3.0
    assert (about["total"], about["normalized"]) == (3.0, 0.6)


def test_an_empty_answer_has_the_lowest_score(told: Any) -> None:
    assert told["samples"][3]["value"] == 0.0
