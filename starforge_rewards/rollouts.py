"""Files of rollouts: JSONL, read line by line so that an error names its line, and Parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from starforge_rewards import documents
from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import InputError

if TYPE_CHECKING:
    import pyarrow


_UNREADABLE = (ValueError, OverflowError, LookupError)
"""What pyarrow raises for a value that is no Python value: text that is not UTF-8, a date beyond
year 9999, fields of one name, a time zone that nobody knows."""


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
            _refuse_repeated_columns(file.schema_arrow.names, path)
            number = 0
            for batch in file.iter_batches():
                for record in _records(batch, path, number + 1):
                    number += 1
                    yield number, _rollout(record, path, number)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"not a Parquet file: {error}", file=path) from None


def _refuse_repeated_columns(names: Sequence[str], path: Path) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError("this column is there twice", file=path, field=twice)


def _records(batch: "pyarrow.RecordBatch", path: Path, first: int) -> list[dict[str, Any]]:
    """The rows of a batch, the first of which is row `first` of the file."""
    try:
        records: list[dict[str, Any]] = batch.to_pylist()
        return records
    except _UNREADABLE as error:
        raise _unreadable(batch, path, first) or InputError(str(error), file=path) from None


def _unreadable(batch: "pyarrow.RecordBatch", path: Path, first: int) -> InputError | None:
    """The first value of a batch that cannot be read, with its row and column."""
    for offset in range(batch.num_rows):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column[offset].as_py()
            except _UNREADABLE as error:
                said = f"cannot be read: {error}"
                return InputError(said, file=path, line=first + offset, field=name)
    return None


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
