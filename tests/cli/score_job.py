"""A folder with a rubric, rollouts and a judge that is a function, to test commands on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RUBRIC = """\
scale_min: 0
scale_max: 5
criteria:
  - name: Correct
    weight: 3
  - name: Brief
    weight: 1
"""
JUDGE = """\
import asyncio, os, signal
from starforge_rewards.question import NoAnswer

PLACES = asyncio.Semaphore(8)

async def judge(question):
    response = str(question.evidence.parts[1].content)
    async with PLACES:
        await asyncio.sleep(0.001)
        with open(os.environ["CALLS"], "a+") as calls:
            calls.write(f"{response} {question.instruction}\\n")
            calls.seek(0)
            count = len(calls.readlines())
        if count >= int(os.environ.get("KILL_AT", 10**9)):
            os.kill(os.getpid(), signal.SIGKILL)
    if response.startswith("late"):
        return NoAnswer.because("timeout", "too slow")
    return response.split()[0]
"""


def job(folder: Path, *responses: str) -> Path:
    """Writes all of it; the judge says what the response begins with, and notes each question."""
    (folder / "rubric.yaml").write_text(RUBRIC)
    (folder / "folder_judge.py").write_text(JUDGE)
    (folder / "judge.yaml").write_text("kind: scripted\nfunction: folder_judge:judge\n")
    rows = ({"prompt": "p", "response": response} for response in responses)
    write(folder / "rollouts.jsonl", *rows)
    return folder


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def start(
    folder: Path, *more: str, stdout: int = subprocess.PIPE, **env: str
) -> subprocess.Popen[str]:
    """`starforge score` on the folder's files, in a process of its own."""
    command = [sys.executable, "-m", "starforge_rewards", "score", "rollouts.jsonl"]
    usual = ["--rubric", "rubric.yaml", "--judge", "judge.yaml", "--out", "out.jsonl"]
    environ = os.environ | {"PYTHONPATH": f"{ROOT}:{folder}", "CALLS": "calls", **env}
    return subprocess.Popen(
        [*command, *usual, *more],
        cwd=folder,
        env=environ,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(folder: Path, name: str = "out.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def calls(folder: Path) -> list[str]:
    """What the judge was asked so far: response and criterion."""
    file = folder / "calls"
    return file.read_text().splitlines() if file.exists() else []
