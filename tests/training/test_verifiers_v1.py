"""verifiers 0.4's own scoring, in `.venvs/verifiers`."""

import json
from typing import Any

import pytest

from tests.training import judge_file, made, venvs

ROWS = (
    {"id": "mixed", "prompt": "p", "metadata": {"said": ["3", "fail timeout", ""]}},
    {"id": "held-out", "prompt": "q", "split": "eval", "metadata": {"said": []}},
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What verifiers made of some traces."""
    folder = tmp_path_factory.mktemp("verifiers")
    home = made.environment(folder, ROWS)
    judge, out = judge_file.write(folder), folder / "told.json"
    venvs.run("verifiers", "tests.training.verifiers_v1_run", str(home), str(judge), str(out))
    return json.loads(out.read_text())


def test_the_judge_and_the_taskset_are_found_by_the_id_of_the_installed_package(told: Any) -> None:
    assert told["prompts"] == ["p"]
    assert told["mixed"][0]["rewards"] == {"env": 3.0}


def test_a_failed_judgement_is_raised_and_the_trace_is_not_ok(told: Any) -> None:
    failed = told["mixed"][1]
    assert failed["ok"] is False
    assert failed["rewards"] == {"env": None}
    (error,) = failed["errors"]
    assert error.startswith("TaskError:")
    assert "timeout" in error


def test_each_criterion_is_a_metric_and_only_the_total_is_a_reward(told: Any) -> None:
    scored = told["mixed"][0]
    assert scored["ok"] is True
    assert scored["reward"] == 3.0
    assert scored["metrics"]["env/criterion/Right"] == 3.0
    assert scored["metrics"]["env/criterion/Short"] == 3.0
    assert [told["mixed"][at]["metrics"]["env/valid"] for at in range(3)] == [1.0, 0.0, 1.0]


def test_an_empty_reply_has_the_lowest_score_without_being_judged(told: Any) -> None:
    assert told["mixed"][2]["reward"] == 0.0
    assert "env/criterion/Right" not in told["mixed"][2]["metrics"]


def test_a_rollout_with_tools_is_judged_as_a_whole(told: Any) -> None:
    assert told["tools"]["reward"] == 4.0


def test_a_rubric_by_reference_takes_weight_and_value_of_the_judges_entry(told: Any) -> None:
    scored = told["by reference"]
    assert scored["rewards"] == {"starforge-rewards": 0.6}
    assert scored["reward"] == pytest.approx(1.2)
    assert scored["calls"][0]["request"]["rubrics"] == ["starforge/support-answer"]


def test_a_judge_without_a_rubric_or_with_a_prompt_of_its_own_is_refused(told: Any) -> None:
    assert [error.split(": ", 2)[-1] for error in told["refused"]] == [
        "InputError: rubric: give one of rubric and environment",
        "InputError: prompt: the rubric's own words are asked: leave it out",
    ]
