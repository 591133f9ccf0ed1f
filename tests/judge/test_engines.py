"""Real vLLM engines on the two-layer model: what a kill costs, and what it leaves behind."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from starforge_rewards.conversation import Rollout
from starforge_rewards.engine import actors
from starforge_rewards.errors import EngineFailed
from starforge_rewards.judge import pool
from starforge_rewards.judge.config import VllmJudge, load_judge
from starforge_rewards.judge.model import resolve_model
from starforge_rewards.judge.pool import PooledJudge
from starforge_rewards.registry.folder import FolderRegistry
from starforge_rewards.rubrics.weighted import Score
from starforge_rewards.scoring import score
from starforge_rewards.settings import Settings
from tests import tiny_model
from tests.judge.hosted import until

RUBRIC = "starforge/support-answer"
_MARK = "SF_TEST_MARK"


def judge_file(folder: Path, model: Path, mark: str, **settings: int) -> Path:
    """A judge file whose engine processes carry a mark in their environment."""
    config = json.loads(tiny_model.judge_yaml(model, **settings))
    path = folder / "judge.yaml"
    path.write_text(json.dumps(config | {"env": {_MARK: mark}}))
    return path


def rollouts(count: int) -> list[Rollout]:
    return [
        Rollout(
            id=f"r{n}",
            prompt=f"Question {n // 4}: how do I reset the router? " + "It blinks. " * 20,
            response=f"Answer {n}: " + "hold the button for ten seconds, then wait. " * 10,
        )
        for n in range(count)
    ]


def marked(mark: str) -> list[int]:
    """Live processes that carry the mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.1)


def test_one_of_two_engines_is_killed_and_every_rollout_is_scored_once_in_order(
    two_layers: Path, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex
    config = load_judge(str(judge_file(tmp_path, two_layers, mark, replicas=2, max_in_flight=64)))
    assert isinstance(config, VllmJudge)
    settings = Settings(cache_dir=tmp_path)
    model = resolve_model(config, settings, lambda _said: None)
    at = pool.address_of(config.ray)
    plan = pool.plan_for(config, model, name="engines", at=at)
    rubric = FolderRegistry().resolve(RUBRIC)
    some = rollouts(400)

    async def work() -> None:
        end = await pool.launch(plan)
        judge = PooledJudge("engines", model.identity, at, 1)
        before = await score(rubric, some[:8], judge)
        running = asyncio.create_task(score(rubric, some, judge))
        answers: list[int] = []

        async def some_answered() -> None:
            while not answers or answers[-1] < 200:
                [front] = await pool.status("engines", at)
                answers.append(sum(replica.answered for replica in front.replicas))
                await asyncio.sleep(0.05)

        await some_answered()
        victim = await actors.find(plan.replica(0), at).ready()
        children = [child.pid for child in psutil.Process(victim).children(recursive=True)]
        os.kill(victim, signal.SIGKILL)
        results = await running
        assert len(results) == len(some)
        assert all(isinstance(result, Score) for result in results)
        totals = [r.total for r in results if isinstance(r, Score)]
        assert len({round(total, 9) for total in totals}) > 50, "the rollouts differ"
        for early, late in zip(before, results, strict=False):
            assert isinstance(early, Score)
            assert isinstance(late, Score)
            assert abs(early.total - late.total) < 1e-3
        await until(lambda: not any(map(psutil.pid_exists, children)), 10)
        end()

    try:
        asyncio.run(work())
    finally:
        actors.leave()
    wait_until(lambda: not marked(mark), 20)


def test_a_killed_driver_leaves_no_engine_and_the_next_run_judges_only_what_is_missing(
    two_layers: Path, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex
    judge = judge_file(tmp_path, two_layers, mark, max_in_flight=32)
    rows, out = tmp_path / "rollouts.jsonl", tmp_path / "out.jsonl"
    rows.write_text("".join(r.model_dump_json(exclude_none=True) + "\n" for r in rollouts(300)))
    command = [sys.executable, "-m", "starforge_rewards", "score", str(rows), "--json"]
    command += ["--rubric", RUBRIC, "--judge", str(judge), "--out", str(out)]
    env = os.environ | {"SF_CACHE_DIR": str(tmp_path / "cache")}
    journal = tmp_path / "out.jsonl.journal"

    def kept() -> int:
        return max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else 0

    driver = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: kept() >= 60, 120)
    finally:
        driver.kill()
        driver.wait()
    assert not out.exists()
    had = kept()
    assert 60 <= had < 300
    wait_until(lambda: not marked(mark), 30)

    again = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    summary = json.loads(again.stdout)
    assert summary["resumed"] >= had - 1  # a line that the kill cut is not counted
    assert summary["asked"] + summary["cached"] == 3 * (300 - summary["resumed"])
    results = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in results] == [f"r{n}" for n in range(300)]
    assert all(row["outcome"] == "scored" for row in results)
    assert not journal.exists()
    wait_until(lambda: not marked(mark), 30)

    third = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    summary = json.loads(third.stdout)
    assert (summary["asked"], summary["cached"]) == (0, 900)
    assert "Starting" not in third.stderr, "all is cached: no engine starts"


def test_a_replica_over_changed_model_files_does_not_start(
    two_layers: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(two_layers, folder)
    config = load_judge(str(judge_file(tmp_path, folder, uuid.uuid4().hex, restarts=0)))
    assert isinstance(config, VllmJudge)
    model = resolve_model(config, Settings(cache_dir=tmp_path), lambda _said: None)
    config_file = folder / "config.json"
    config_file.write_text(config_file.read_text() + "\n")  # as a training run that writes there
    plan = pool.plan_for(config, model, name="changed", at=pool.address_of(config.ray))
    try:
        with pytest.raises(EngineFailed, match="are not those that this judge was opened with"):
            asyncio.run(pool.launch(plan))
    finally:
        actors.leave()
