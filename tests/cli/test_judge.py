import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        ("cache", "cache/ray-head.json: cannot be written: File exists"),
        ("~nobody-here", "SF_CACHE_DIR: ~nobody-here: Could not determine home directory."),
    ],
)
def test_a_cache_where_no_folder_can_be_is_named_before_a_head_starts(
    tmp_path: Path, two_layers: Path, cache: str, said: str
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    (tmp_path / "judge.yaml").write_text(f"kind: vllm\nmodel: {two_layers}\n")
    ended = subprocess.run(
        [sys.executable, "-m", "starforge_rewards", "judge", "up", "p", "--judge", "judge.yaml"],
        cwd=tmp_path,
        env=os.environ
        | {"SF_CACHE_DIR": cache, "PYTHONPATH": str(Path(__file__).parents[2])}
        | {"RAY_TMPDIR": str(tmp_path)},  # no cluster of somebody else's
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 2, ended.stderr
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert errors[0].startswith(f"error: {said}")
    assert "Traceback" not in ended.stderr
