"""The reward on a real vLLM engine: what a kill in the middle of a training step costs."""

import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import psutil

from starforge_rewards.training.rubric_reward import RubricReward
from tests.judge.test_engines import judge_file, marked, wait_until
from tests.training.made import item, loaded

STEP = """
import sys
from pathlib import Path
from tests.training.test_rubric_reward_engines import step
step(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
"""


def step(folder: Path, judge: Path, mark: str) -> None:
    """A training step during which the judge's engine is killed."""
    one = RubricReward(loaded(folder), judge=str(judge))
    [first] = one.score([item("before", prompt="warm up")])
    assert first.valid

    def items(count: int) -> list:  # type: ignore[type-arg]
        text = "hold the button for ten seconds, then wait. " * 20
        return [item(f"{n}: {text}", prompt=f"question {n // 4}") for n in range(count)]

    found = []
    stepping = threading.Thread(target=lambda: found.extend(one.score(items(120))))
    stepping.start()
    wait_until(lambda: one.metrics().queue_depth > 0, 20)
    for pid in marked(mark):
        if psutil.Process(pid).name().startswith("ray::"):
            os.kill(pid, signal.SIGKILL)
            break
    else:
        raise AssertionError("no engine to kill")
    stepping.join(300)
    assert len(found) == 120
    for reward in found:
        assert (reward.value is None) == (reward.cause is not None)
        assert reward.value != 0, "a random model's expectation is never the scale's end"
    scored = sum(reward.valid for reward in found)
    sys.stdout.write(f"scored {scored} of {len(found)}\n")
    one.finish()


def test_a_judge_killed_during_a_training_step_costs_no_reward_its_truth(
    two_layers: Path, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex
    judge = judge_file(tmp_path, two_layers, mark, max_in_flight=16)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", STEP, str(tmp_path), str(judge), mark],
        env={**os.environ, "PYTHONPATH": root, "SF_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "of 120" in done.stdout
    assert "Traceback" not in done.stderr
    wait_until(lambda: not marked(mark), 30)
