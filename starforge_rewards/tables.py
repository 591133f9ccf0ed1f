"""Rows of files in either form, JSONL or Parquet, one at a time, so that memory stays flat.

Columns may be named otherwise than the model's fields: `columns` says which column holds which.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from starforge_rewards import documents
from starforge_rewards.errors import InputError

if TYPE_CHECKING:
    import pyarrow

RowModel = TypeVar("RowModel", bound=BaseModel)

_TOGETHER = 1024
"""Rows of a Parquet file that are in memory at a time."""
_UNREADABLE = (ValueError, OverflowError, LookupError)
"""What pyarrow raises for a value that is no Python value: text that is not UTF-8, a date beyond
year 9999, fields of one name, a time zone that nobody knows."""

_TOGETHER = 1000
"""Rows of a Parquet file that are in memory at a time."""
_BUFFER = 2**18
"""Bytes of each column; pyarrow reads a whole row group's where none are said."""


def rows(
    path: Path, model: type[RowModel], columns: Mapping[str, str] | None = None
) -> Iterator[tuple[int, RowModel]]:
    """The rows of a `.jsonl` or `.parquet` file with their numbers, from 1.

    Raises:
        InputError: the file is unreadable, or a row is refused, with its line and field.
    """
    parquet = path.suffix.lower() == ".parquet"
    for number, record in _parquet(path) if parquet else documents.records(path):
        yield number, validated(record, model, columns, path, number)


def validated(
    record: object,
    model: type[RowModel],
    columns: Mapping[str, str] | None,
    path: object,
    number: int,
) -> RowModel:
    """A record as a model; `path` and `number` say where it stands.

    Raises:
        InputError: it is refused.
    """
    data = renamed(record, columns) if columns and isinstance(record, dict) else record
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InputError.of(error, file=path, line=number, data=data) from None


def renamed(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The fields that `columns` names, from its columns alone, and every other as it is."""
    taken = columns.keys() | set(columns.values())
    kept = {key: value for key, value in record.items() if key not in taken}
    return kept | {field: record[name] for field, name in columns.items() if name in record}


def _parquet(path: Path) -> Iterator[tuple[int, object]]:
    import pyarrow
    import pyarrow.parquet  # late: only a Parquet file needs it

    if not path.is_file():
        raise InputError("no such file", file=path)
    try:
        with pyarrow.parquet.ParquetFile(path, buffer_size=_BUFFER) as file:
            _refuse_repeated_columns(file.schema_arrow.names, path)
            number = 0
            for batch in file.iter_batches(_TOGETHER):
                for record in _records(batch, path, number + 1):
                    number += 1
                    yield number, without_nulls(record)
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


def without_nulls(value: Any) -> Any:
    """A column of a file that a row leaves out is null there: it was not written."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
