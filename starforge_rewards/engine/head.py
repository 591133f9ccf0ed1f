"""A Ray head of our own, for pools that outlive the command that started them.

A cluster that `ray.init()` starts dies with its process; this one runs until it is stopped. Only
the head that we started is ever stopped.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from starforge_rewards.engine import actors
from starforge_rewards.engine.actors import Address
from starforge_rewards.errors import EngineFailed, InputError

_PATIENCE = 90.0
"""Seconds until a head that does not come up is given up."""


def ensure(at: Address, state: Path) -> bool:
    """Join the cluster at the address; where none runs on this machine, start a head.

    Args:
        at: where; a head is only started where it names no cluster, or `auto`.
        state: the file that remembers the head that we started.

    Returns:
        True where a head was started.

    Raises:
        EngineFailed: no cluster, or the head does not come up.
        InputError: the folder of `state` cannot be written.
    """
    try:
        actors.join(at)
    except EngineFailed:
        if at.cluster != "auto":
            raise
    else:
        return False
    log = state.with_suffix(".log")
    _prepare(state, log)
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    command += ["--port=0", "--include-dashboard=false", "--disable-usage-stats"]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=dict([actors.ENGINE_PRIORITY]) | os.environ,
        )
    state.write_text(json.dumps({"pid": process.pid, "started": _started(process.pid)}))
    _wait(at, process, log)
    return True


def _prepare(*files: Path) -> None:
    """Before a head runs that nothing could remember."""
    for file in files:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.open("ab").close()
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=file) from error


def stop(state: Path) -> bool:
    """Stop the head that we started, with all that it hosts; False where there is none."""
    actors.leave()
    try:
        head = json.loads(state.read_text())
        alive = bool(
            _started(head["pid"]) == head["started"]
        )  # else the number is another process's now
    except (OSError, ValueError, KeyError):
        return False
    state.unlink()
    if alive:
        os.kill(head["pid"], signal.SIGTERM)  # it ends its own children
        _wait_for_end(head["pid"])
    return alive


def _wait(at: Address, process: "subprocess.Popen[bytes]", log: Path) -> None:
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends and process.poll() is None:
        try:
            actors.join(at)
        except EngineFailed:
            time.sleep(0.5)
        else:
            return
    process.terminate()
    raise EngineFailed(f"the Ray head did not come up; its log is {log}")


def _wait_for_end(pid: int) -> None:
    ends = time.monotonic() + 20
    while time.monotonic() < ends and _started(pid) is not None:
        time.sleep(0.1)
    if _started(pid) is not None:
        os.killpg(pid, signal.SIGKILL)


def _started(pid: int) -> str | None:
    """When the process started, in clock ticks since boot; None where it is gone."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] == "Z" else after_name[19]
