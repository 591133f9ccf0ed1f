"""Peak memory of `starforge env score` over ten times as many rollouts, out of Parquet.

Each run is a process of its own, on a judge that costs nothing.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pyarrow.parquet

from tests.performance import workload
from tests.performance.ratio import Ratio, alternate, at_most
from tests.performance.scripted_lowest import JUDGE

_TASKS = 100
_WORDS = "an answer of some length that says what the customer has to do, step by step. " * 8


class Size(NamedTuple):
    many: int
    few: int
    pairs: int


FULL = Size(100_000, 10_000, 2)
QUICK = Size(20_000, 2_000, 1)


def measure(*, quick: bool) -> Iterator[Ratio]:
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        home = _environment(Path(name))
        many, few = (_rollouts(Path(name), count) for count in (size.many, size.few))
        yield Ratio(
            what="peak memory of scoring a Parquet file / one of a tenth of its rollouts",
            size=f"{size.many}",
            pairs=alternate(lambda: _peak(home, many), lambda: _peak(home, few), size.pairs),
            target=at_most(1.2),
        )


def _environment(folder: Path) -> Path:
    home = folder / "measured"
    home.mkdir()
    rubric = workload.rubric(2).rubric.model_dump(exclude_unset=True)
    said = {
        "name": "measured",
        "dataset": "rows.jsonl",
        "verifier": {"kind": "rubric", "rubric": rubric},
        "judge": JUDGE.model_dump(),
    }
    (home / "environment.yaml").write_text(json.dumps(said))
    rows = ({"id": str(n), "prompt": f"Question {n}?"} for n in range(_TASKS))
    (home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return home


def _rollouts(folder: Path, count: int) -> Path:
    path = folder / f"{count}.parquet"
    ids = [str(n % _TASKS) for n in range(count)]
    responses = [f"{n}: {_WORDS}" for n in range(count)]
    pyarrow.parquet.write_table(pyarrow.table({"id": ids, "response": responses}), path)
    return path


def _peak(home: Path, rollouts: Path) -> float:
    """KiB, as the system counted it for that process."""
    out = rollouts.with_suffix(".jsonl")
    command = [sys.executable, "-m", "starforge_rewards", "env", "score", str(home)]
    process = subprocess.Popen(
        [*command, str(rollouts), "--out", str(out), "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"scoring ended with {process.returncode}")
    return used.ru_maxrss
