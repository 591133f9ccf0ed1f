"""An append-only file of finished work, so that a killed job goes on where it stopped.

The first line says which job it is; a journal of another job is refused, never mixed in. A last
line that a kill cut short is dropped; a damaged line counts as not there.
"""

import fcntl
import json
import os
import re
import stat
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, Self

from starforge_rewards.errors import InputError

_NOTHING: Mapping[str, object] = {}
_BEGINS = b'{"job": '
_LONGEST = 1 << 16
"""Bytes of a first line; that of a journal is far shorter."""


_INDEX = re.compile(rb"[0-9]{1,18}")


def noted(path: Path) -> Mapping[str, Any]:
    """What the journal at a path notes of its work; nothing where there is none."""
    try:
        with path.open("rb") as file:
            return dict(_header(file.readline(_LONGEST)).get("about", _NOTHING))
    except OSError:
        return _NOTHING


class Journal:
    """Rows by index, in the order in which they were finished."""

    def __init__(
        self, path: Path, job: Mapping[str, object], about: Mapping[str, object] = _NOTHING
    ) -> None:
        """Open or begin the journal of a job.

        Args:
            path: its file; the folders above it are made.
            job: what the work depends on; JSON. A journal of anything else is refused.
            about: what is noted of the work where this begins it; JSON. See `self.about`.

        Raises:
            InputError: the file is the journal of another job, and what differs; no journal; in use
                by another process; or cannot be written.
        """
        self._path = path
        self._places: dict[int, tuple[int, int]] = {}
        self.about = about
        """What was noted when the work began, by this process or an earlier one."""
        with _clear(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _locked(path)
        try:
            self._go_on(job)
        except BaseException:
            self.close()
            raise

    @property
    def done(self) -> frozenset[int]:
        """Indexes of the rows that are there."""
        return frozenset(self._places)

    def add(self, rows: Mapping[int, str]) -> None:
        """Keep finished rows: a JSON object on one line each. A later row replaces an earlier one.

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
        target = Path(os.path.realpath(out))  # a link goes on to name the results
        whole = target.with_name(f".{uuid.uuid4().hex}.whole")  # no file of anybody else's
        try:
            with _clear(out):
                with _created(whole, like=target) as file:
                    for _, row in self.rows():
                        file.write(row.encode() + b"\n")
                whole.replace(target)
                self._path.unlink()  # still locked: nobody takes up what is done
        except BaseException:
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

    def _go_on(self, job: Mapping[str, object]) -> None:
        with self._path.open("rb") as file:
            first = file.readline(_LONGEST)
        begun = _header(first)
        if begun.get("job") == job:
            self.about = begun.get("about", _NOTHING)
            self._read()
        elif first.endswith(b"\n") or not _begun(first):
            raise InputError(
                f"holds unfinished results of another job ({_differences(begun, job)}): "
                "finish that one, name another file, or delete it",
                file=self._path,
            )
        else:
            self._file.truncate(0)
            # "job" first: by that a line which a kill cut short is known.
            self._append(json.dumps({"job": job, "about": self.about}).encode() + b"\n")

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
                if not line.endswith(b"\n"):
                    break
                index, _, row = line.partition(b"\t")
                if _INDEX.fullmatch(index) and _is_object(row):
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


def _created(path: Path, *, like: Path) -> BinaryIO:
    """A new file, readable to whom the file `like` is, from the start; else as the system has it.

    Raises:
        OSError: something is at the path already, or it cannot be written.
    """
    try:
        mode = stat.S_IMODE(like.stat().st_mode)
    except FileNotFoundError:
        return path.open("xb")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "wb")


def _is_object(row: bytes) -> bool:
    try:
        return isinstance(json.loads(row.decode()), dict)
    except (ValueError, RecursionError):
        return False


def _begun(first: bytes) -> bool:
    """Whether a line without an end is a first line of ours that a kill cut short."""
    return first[: len(_BEGINS)] == _BEGINS[: len(first)]


def _header(first: bytes) -> Mapping[str, Any]:
    """What a whole first line says; nothing where it is none of ours."""
    try:
        header = json.loads(first) if first.endswith(b"\n") else {}
    except (ValueError, RecursionError):
        return {}
    return header if isinstance(header, dict) and isinstance(header.get("job"), dict) else {}


def _differences(begun: Mapping[str, Any], job: Mapping[str, object]) -> str:
    if not begun:
        return "it is no journal"
    other = begun["job"]
    return ", ".join(key for key in job if other.get(key) != job[key]) or "another version"
