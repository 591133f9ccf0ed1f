"""Public rubrics of five level descriptions, one per row, through the whole command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from starforge_rewards.conversation import Rollout
from starforge_rewards.rubrics.weighted import Rubric
from tests import public_data, tiny_model

pytestmark = pytest.mark.skipif(
    not (public_data.FOLDER / "prometheus").is_dir(),
    reason=f"no public data in {public_data.FOLDER}",
)


def test_all_rows_of_the_set_are_rollouts_with_five_anchors() -> None:
    rows = [Rollout.model_validate(row) for row in public_data.prometheus_rollouts(320)]
    assert len(rows) == 320
    for row in rows:
        [criterion] = Rubric.model_validate(row.rubric).criteria
        assert sorted(criterion.anchors) == ["1", "2", "3", "4", "5"]


def test_rows_with_their_own_rubrics_are_scored_and_the_second_time_nobody_is_asked(
    two_layers: Path, tmp_path: Path
) -> None:
    rows, out, judge = (tmp_path / name for name in ("rows.jsonl", "out.jsonl", "judge.yaml"))
    rows.write_text("".join(json.dumps(r) + "\n" for r in public_data.prometheus_rollouts(20)))
    judge.write_text(tiny_model.judge_yaml(two_layers))
    command = [sys.executable, "-m", "starforge_rewards", "score", str(rows), "--json"]
    command += ["--judge", str(judge), "--out", str(out)]
    env = os.environ | {"SF_CACHE_DIR": str(tmp_path / "cache")}
    summaries = []
    for _ in range(2):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        summaries.append(json.loads(done.stdout))
    assert [(s["scored"], s["asked"], s["cached"]) for s in summaries] == [(20, 20, 0), (20, 0, 20)]
    results = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(1 <= row["total"] <= 5 for row in results)
    assert len({row["rubric_digest"] for row in results}) >= 9
