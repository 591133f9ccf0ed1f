"""verifiers 0.3.1's own `Rubric`, in `.venvs/verifiers-legacy`."""

import json
from typing import Any

import pytest

from tests.training import judge_file, made, venvs


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What verifiers made of some states."""
    folder = tmp_path_factory.mktemp("legacy")
    homes = []
    for policy in ("stop", "group_median"):
        (folder / policy).mkdir()
        homes.append(str(made.environment(folder / policy, on_failure=policy)))
    judge, out = judge_file.write(folder), folder / "told.json"
    module = "tests.training.verifiers_legacy_run"
    venvs.run("verifiers-legacy", module, *homes, str(judge), str(out))
    return json.loads(out.read_text())


def test_the_reward_has_its_weight_and_each_criterion_is_a_metric(told: Any) -> None:
    assert told["one"]["rewards"] == [6.0]
    assert told["one"]["metrics"] == [
        {"env": 3.0, "sf_valid": 1.0, "sf_criterion/Right": 3.0, "sf_criterion/Short": 3.0}
    ]


def test_a_group_has_the_advantages_of_its_rewards(told: Any) -> None:
    assert told["group"]["rewards"] == [2.0, 10.0]
    assert told["group"]["advantages"] == [-4.0, 4.0]


@pytest.mark.parametrize("case", ["failed one", "failed in a group", "all failed"])
def test_a_failure_ends_the_run_and_no_state_gets_a_reward(told: Any, case: str) -> None:
    assert "no score" in told[case]["stopped"]
    assert set(told[case]["rewards"]) == {None}


def test_a_declared_median_stands_in_and_is_marked_and_moves_no_other_advantage(told: Any) -> None:
    assert told["median"]["rewards"] == [1.0, 3.0, 5.0]
    assert told["median"]["advantages"] == [-2.0, 0.0, 2.0]
    assert [metrics["sf_valid"] for metrics in told["median"]["metrics"]] == [1.0, 0.0, 1.0]
    assert "sf_criterion/Right" not in told["median"]["metrics"][1]
