"""An append-only file of finished work, so that a killed job goes on where it stopped.

The first line says which job it is; a journal of another job is refused, never mixed in. A last
line that a kill cut short is dropped.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from starforge_rewards.errors import InputError


class Journal:
    """Rows by index, in the order in which they were finished."""

    def __init__(self, path: Path, job: Mapping[str, object]) -> None:
        """Open or begin the journal of a job.

        Args:
            path: its file.
            job: what the work depends on; JSON. A journal of anything else is refused.

        Raises:
            InputError: the file is the journal of another job, and what differs.
        """
        self._path = path
        self._places: dict[int, tuple[int, int]] = {}
        header = json.dumps({"job": job}, sort_keys=True).encode() + b"\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with this process
        except OSError:
            self._file.close()
            raise InputError("another process is writing these results", file=path) from None
        self._file.seek(0)
        first = self._file.readline()
        if first.endswith(b"\n") and first != header:
            self._file.close()
            raise InputError(
                f"holds unfinished results of another job ({_differences(first, job)}): "
                "finish that one, name another file, or delete it",
                file=path,
            )
        if first == header:
            self._read()
        else:
            self._file.truncate(0)
            self._append(header)

    @property
    def done(self) -> frozenset[int]:
        """Indexes of the rows that are there."""
        return frozenset(self._places)

    def add(self, index: int, row: str) -> None:
        """Keep a finished row: one line of JSON. A second row of an index replaces the first."""
        line = f"{index}\t{row}\n".encode()
        self._places[index] = (self._append(line), len(line))

    def rows(self) -> Iterator[tuple[int, str]]:
        """The rows, by index."""
        for index in sorted(self._places):
            offset, length = self._places[index]
            self._file.seek(offset)
            yield index, self._file.read(length).decode().split("\t", 1)[1].rstrip("\n")

    def finish(self, out: Path) -> None:
        """Write the rows to `out` in order of index, at once, and drop the journal."""
        whole = out.with_name(f".{out.name}.whole")
        with whole.open("w", encoding="utf-8") as file:
            for _, row in self.rows():
                file.write(row + "\n")
        whole.replace(out)
        self.close()
        self._path.unlink()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, line: bytes) -> int:
        offset = self._file.seek(0, 2)
        self._file.write(line)
        self._file.flush()  # to the system: a killed process loses nothing that was added
        return offset

    def _read(self) -> None:
        offset = self._file.tell()
        for line in self._file:
            index, tab, _ = line.partition(b"\t")
            if not (line.endswith(b"\n") and tab and index.isdigit()):
                break
            self._places[int(index)] = (offset, len(line))
            offset += len(line)
        self._file.truncate(offset)


def _differences(header: bytes, job: Mapping[str, object]) -> str:
    try:
        other = json.loads(header)["job"]
        return ", ".join(key for key in job if other.get(key) != job[key]) or "another version"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "it is no journal"
