"""Files of rollouts: JSONL, read line by line so that an error names its line, and Parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from starforge_rewards import documents
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
    found = _parquet(path) if path.suffix.lower() == ".parquet" else documents.rows(path, Rollout)
    for line, rollout in found:
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


def _parquet(path: Path) -> Iterator[tuple[int, Rollout]]:
    import pyarrow
    import pyarrow.parquet  # late: only a Parquet file needs it

    if not path.is_file():
        raise InputError("no such file", file=path)
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            records = (record for batch in file.iter_batches() for record in batch.to_pylist())
            for number, record in enumerate(records, start=1):
                yield number, _rollout(record, path, number)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"not a Parquet file: {error}", file=path) from None


def _rollout(record: dict[str, Any], path: Path, number: int) -> Rollout:
    """A Parquet row has every key of the file; what is null in it was not written."""
    try:
        return Rollout.model_validate(_without_nulls(record))
    except ValidationError as error:
        raise InputError.of(error, file=path, line=number, data=record) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
