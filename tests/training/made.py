"""Environments that tests write."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starforge_rewards.training.dataset import TaskRow
from starforge_rewards.training.environment import Loaded, load_environment
from starforge_rewards.training.reward import Item

RUBRIC: dict[str, Any] = {
    "scale_min": 0,
    "scale_max": 5,
    "criteria": [
        {"name": "Right", "weight": 3, "description": "States what is so."},
        {"name": "Short", "weight": 1, "description": "Says no more than was asked."},
    ],
}
BY_RUBRIC = {"kind": "rubric", "rubric": RUBRIC}
ROWS = ({"id": "a", "prompt": "p"}, {"id": "b", "prompt": "q", "split": "eval"})


def environment(folder: Path, rows: Sequence[dict[str, Any]] = ROWS, /, **keys: Any) -> Path:
    """Writes `folder/env`; without verifiers, it has the rubric above."""
    home = folder / "env"
    home.mkdir(exist_ok=True)
    said = {"name": "env", "dataset": "rows.jsonl", **keys}
    if not {"verifier", "verifiers"} & keys.keys():
        said["verifier"] = BY_RUBRIC
    (home / "environment.yaml").write_text(json.dumps(said))
    (home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return home


def loaded(folder: Path, rows: Sequence[dict[str, Any]] = ROWS, /, **keys: Any) -> Loaded:
    return load_environment(environment(folder, rows, **keys))


def item(response: str, **keys: Any) -> Item:
    return Item(TaskRow.model_validate({"id": "a", "prompt": "p", **keys}), response)
