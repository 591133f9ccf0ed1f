import subprocess
import sys
from pathlib import Path
from typing import Any

from starforge_rewards.training.rubric_reward import RubricReward
from tests.training import conformance, venvs

from starforge_rewards.training import eval_protocol  # isort: skip


def answered(folder: Path, response: str) -> Any:
    function = eval_protocol.pointwise(RubricReward(conformance.environment(folder)))
    said = [{"role": "user", "content": "Is it?"}, {"role": "assistant", "content": response}]
    return conformance.run(function(messages=said, ground_truth="Yes."))


def test_each_criterion_is_a_metric(tmp_path: Path) -> None:
    found = answered(tmp_path, "fair")
    assert (found.score, found.is_score_valid) == (0.6, True)
    assert {name: one.score for name, one in found.metrics.items()} == {"Right": 3.0, "Short": 3.0}


def test_a_failure_is_no_valid_score_and_says_why(tmp_path: Path) -> None:
    found = answered(tmp_path, "fails")
    assert not found.is_score_valid
    assert "unparseable" in found.error


def test_it_conforms_where_eval_protocol_is_installed() -> None:
    venvs.conforms("eval_protocol", "eval_protocol", "eval_protocol-batch")


def test_it_conforms_with_reward_kit_alone() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.training.reward_kit_alone"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
