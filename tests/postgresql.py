"""A PostgreSQL server of this test run alone, from Debian's packages, on a free port."""

import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def program(name: str) -> str | None:
    """A program of the newest PostgreSQL here; Debian keeps them off the path."""
    path = os.pathsep.join([os.environ["PATH"], *map(str, FOLDERS)])
    return shutil.which(name, path=path)


class Server:
    """A running server; each test has a database of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self.port = port
        self.root = f"postgresql://postgres@127.0.0.1:{port}"

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(f"{self.root}/postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"{self.root}/{name}"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        quick = "-c fsync=off -c max_connections=300"
        log = str(self._folder / "log")
        pg_ctl(
            "-D", str(self._folder / "data"), "-l", log, "-o", f"{options} {quick}", "-w", "start"
        )

    def stop(self) -> None:
        pg_ctl("-D", str(self._folder / "data"), "-m", "immediate", "-w", "stop")


@contextmanager
def server() -> Iterator[Server]:
    """A new server for as long as the block lasts."""
    with TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        if os.getuid() == 0:  # PostgreSQL does not run as root
            shutil.chown(folder, "postgres", "postgres")
        initdb = program("initdb") or "initdb"
        run([initdb, "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8"])
        one = Server(folder, free_port())
        one.start()
        try:
            yield one
        finally:
            one.stop()


def pg_ctl(*arguments: str) -> None:
    run([program("pg_ctl") or "pg_ctl", *arguments])


def run(command: Sequence[str]) -> None:
    if os.getuid() == 0:
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        command = [*as_postgres, *command]
    # Not captured by a pipe, which the server would hold open.
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
