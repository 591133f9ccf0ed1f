"""Files of rollouts, JSONL or Parquet; an error names its line."""

from pathlib import Path
from typing import NamedTuple

from starforge_rewards import tables
from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import InputError


class Row(NamedTuple):
    """A rollout and where it stands in its file."""

    line: int
    """From 1; of a Parquet file, the row."""
    id: str
    """Its own, or `row-<line>`."""
    rollout: Rollout


def read_rollouts(path: Path) -> list[Row]:
    """All rollouts of a `.jsonl` or `.parquet` file, in order; the whole file is checked first.

    Raises:
        InputError: the file is unreadable or empty, a row is refused (with its line and field), or
            two rows have the same id.
    """
    rows: list[Row] = []
    lines: dict[str, int] = {}
    for line, rollout in tables.rows(path, Rollout):
        name = f"row-{line}" if rollout.id is None else rollout.id
        if name in lines:
            raise InputError(
                f"{name!r} is already the id of line {lines[name]}",
                file=path,
                line=line,
                field="id",
            )
        lines[name] = line
        rows.append(Row(line, name, rollout))
    if not rows:
        raise InputError("holds no rollouts", file=path)
    return rows
