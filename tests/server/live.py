"""A server as people run it: `starforge serve` in a process of its own, on a free port."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_JUDGE = "kind: scripted\nfunction: tests.server.scripted_judge:judge\n"


class Live:
    """A running server; `log` holds what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str], log: list[str]) -> None:
        self.process, self.log = process, log
        self.url = ""

    def stop(self, signal: int) -> int:
        """Its exit code after a signal."""
        self.process.send_signal(signal)
        return self.process.wait(30)


@contextmanager
def live(folder: Path, database: str, *options: str) -> Iterator[Live]:
    """Starts a server and waits until it says its address and answers.

    Args:
        folder: for its judge's file.
        database: its URL.
        options: more of the command line.
    """
    (folder / "judge.yaml").write_text(_JUDGE)
    command = [sys.executable, "-m", "starforge_rewards", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--judge", str(folder / "judge.yaml"), *options],
        env={**os.environ, "SF_DATABASE_URL": database, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    server = Live(process, [])
    greeted = threading.Event()
    reader = threading.Thread(target=_read, args=(server, greeted))
    reader.start()
    try:
        assert greeted.wait(60), "".join(server.log)
        assert server.url, "".join(server.log)
        yield server
    finally:
        process.kill()
        process.wait()
        reader.join()
        assert process.stdout is not None
        process.stdout.close()


def _read(server: Live, greeted: threading.Event) -> None:
    assert server.process.stdout is not None
    for line in server.process.stdout:
        server.log.append(line)
        if found := re.match(r"Starforge serves (\S+)", line):
            server.url = found[1]
        if "starforge token create" in line:  # the last line of the greeting
            greeted.set()
    greeted.set()
