import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import ScriptedConfig
from starforge_rewards.judge.gather import GatheringJudge
from starforge_rewards.question import Answer
from starforge_rewards.registry.folder import FolderRegistry
from starforge_rewards.rubrics.weighted import evidence_of
from starforge_rewards.training.link import Link, link_to
from tests.training import scripted
from tests.training.made import item


async def ask(judge: GatheringJudge) -> str:
    poser = FolderRegistry().resolve("starforge/support-answer").poser
    row = item("5").row
    [reply, *_] = await judge.answer(poser.pose(evidence_of(row.rollout("5"))))
    assert isinstance(reply, Answer)
    return reply.label


def test_one_process_has_one_link_to_a_judge() -> None:
    one = link_to(scripted.config())
    assert link_to(scripted.config()) is one
    assert link_to(scripted.config("gated")) is not one
    assert link_to(scripted.config(), "evaluation") is not one


def test_threads_and_loops_that_come_and_go_share_a_link() -> None:
    link = Link(scripted.config(), "training")
    try:
        assert link.run(ask) == "5"
        assert [asyncio.run(link.wait(ask)) for _ in range(3)] == ["5"] * 3
        found: list[str] = []
        threads = [threading.Thread(target=lambda: found.append(link.run(ask))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == ["5"] * 16
        assert link.under_way == 0
    finally:
        link.close()


def test_a_judge_that_does_not_open_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    link = Link(ScriptedConfig(kind="scripted", function="comes_later:judge"), "training")
    try:
        with pytest.raises(InputError, match="cannot import comes_later"):
            link.run(ask)
        (tmp_path / "comes_later.py").write_text("from tests.training.scripted import judge\n")
        assert link.run(ask) == "5"
    finally:
        link.close()


def test_what_goes_on_ends_when_the_link_closes() -> None:
    link = Link(scripted.config(), "training")
    beside: list[asyncio.Task[bool]] = []

    async def begin(judge: GatheringJudge) -> None:
        beside.append(asyncio.create_task(asyncio.Event().wait()))
        link.client()

    link.run(begin)
    client = link.client()
    link.close()
    assert beside[0].cancelled()
    assert client.is_closed


def test_a_process_that_forks_keeps_its_link_and_the_child_makes_its_own() -> None:
    script = """
import os
from starforge_rewards.training.link import link_to
from tests.training import scripted
from tests.training.test_link import ask
link = link_to(scripted.config())
assert link.run(ask) == "5"
if not (child := os.fork()):
    assert link_to(scripted.config()) is not link
    assert link_to(scripted.config()).run(ask) == "5"
    raise SystemExit  # with all that runs at exit
_, status = os.waitpid(child, 0)
assert link.run(ask) == "5"
print("both", status)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert (done.stdout, done.stderr) == ("both 0\n", "")
