"""An append-only file of finished work, so that a killed job goes on where it stopped.

The first line says which job it is; a journal of another job is refused, never mixed in. A last
line that a kill cut short is dropped.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Self

from starforge_rewards.errors import InputError

_BEGINS = b'{"job": '
_LONGEST = 1 << 16
"""Bytes of a first line; that of a journal is far shorter."""


class Journal:
    """Rows by index, in the order in which they were finished."""

    def __init__(self, path: Path, job: Mapping[str, object]) -> None:
        """Open or begin the journal of a job.

        Args:
            path: its file; the folders above it are made.
            job: what the work depends on; JSON. A journal of anything else is refused.

        Raises:
            InputError: the file is the journal of another job, and what differs; no journal; in use
                by another process; or cannot be written.
        """
        self._path = path
        self._places: dict[int, tuple[int, int]] = {}
        header = json.dumps({"job": job}, sort_keys=True).encode() + b"\n"
        with _clear(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _locked(path)
        try:
            self._go_on(header, job)
        except BaseException:
            self.close()
            raise

    @property
    def done(self) -> frozenset[int]:
        """Indexes of the rows that are there."""
        return frozenset(self._places)

    def add(self, rows: Mapping[int, str]) -> None:
        """Keep finished rows: one line of JSON each. A later row of an index replaces an earlier.

        Raises:
            InputError: the file cannot be written, such as on a full disk; what was there stays.
        """
        lines = {index: f"{index}\t{row}\n".encode() for index, row in rows.items()}
        offset = self._append(b"".join(lines.values()))
        for index, line in lines.items():
            self._places[index] = (offset, len(line))
            offset += len(line)

    def rows(self) -> Iterator[tuple[int, str]]:
        """The rows, by index."""
        with self._path.open("rb") as file:
            for index in sorted(self._places):
                offset, length = self._places[index]
                file.seek(offset)
                yield index, file.read(length).decode().split("\t", 1)[1].removesuffix("\n")

    def finish(self, out: Path) -> None:
        """Write the rows to `out` in order of index, at once, and drop the journal.

        Raises:
            InputError: `out` cannot be written; the journal stays.
        """
        target = out.resolve()  # a link goes on to name the results
        whole = target.with_name(f".{target.name}.whole")
        try:
            with _clear(out):
                with whole.open("wb") as file:
                    for _, row in self.rows():
                        file.write(row.encode() + b"\n")
                whole.replace(target)
                self._path.unlink()  # still locked: nobody takes up what is done
        except InputError:
            with suppress(OSError):
                whole.unlink()
            raise
        self.close()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _go_on(self, header: bytes, job: Mapping[str, object]) -> None:
        with self._path.open("rb") as file:
            first = file.readline(_LONGEST)
        if first == header:
            self._read()
        elif first.endswith(b"\n") or not _begun(first):
            raise InputError(
                f"holds unfinished results of another job ({_differences(first, job)}): "
                "finish that one, name another file, or delete it",
                file=self._path,
            )
        else:
            self._file.truncate(0)
            self._append(header)

    def _append(self, line: bytes) -> int:
        """Straight to the system: a killed process loses nothing that was added."""
        offset = os.fstat(self._file.fileno()).st_size
        with _clear(self._path):
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                self._file.truncate(offset)  # half a line would spoil the next
                raise
        return offset

    def _read(self) -> None:
        with self._path.open("rb") as file:
            offset = len(file.readline())
            for line in file:
                index, tab, _ = line.partition(b"\t")
                if not (line.endswith(b"\n") and tab and index.isdigit()):
                    break
                self._places[int(index)] = (offset, len(line))
                offset += len(line)
        self._file.truncate(offset)


@contextmanager
def _clear(path: Path) -> Iterator[None]:
    """What the system refuses is said in one line, with the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from error


def _locked(path: Path) -> FileIO:
    """The file, open to append and locked; the lock ends with this process."""
    while True:
        file = path.open("ab", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except BlockingIOError:
            file.close()
            raise InputError("another process is writing these results", file=path) from None
        except OSError:
            file.close()
            raise
        file.close()  # between opening and locking its process finished and dropped it


def _begun(first: bytes) -> bool:
    """Whether a line without an end is a first line of ours that a kill cut short."""
    return first[: len(_BEGINS)] == _BEGINS[: len(first)]


def _differences(header: bytes, job: Mapping[str, object]) -> str:
    try:
        other = json.loads(header)["job"]
        return ", ".join(key for key in job if other.get(key) != job[key]) or "another version"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "it is no journal"
