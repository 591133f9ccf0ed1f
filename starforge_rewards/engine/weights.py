"""Which weights a model name means, told without loading them: a hub commit, or a folder's digest.

A judge's identity carries the digest, so that a score can never mix two models of one name.
"""

import hashlib
import json
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import HfApi, try_to_load_from_cache
from huggingface_hub.errors import HTTPError  # of whichever httpx the hub's client is built on

from starforge_rewards.errors import InputError

_SUFFIXES = frozenset(
    (
        *(".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack"),
        *(".json", ".model", ".jinja", ".txt", ".tiktoken", ".py"),
    )
)
"""Of files that can change an answer: weights, configuration, tokenizer, template, own code."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_TIMEOUT = 10.0
"""Seconds."""


class Weights(NamedTuple):
    """A model, pinned: loading `path_or_name` at `revision` gives the files of `digest`."""

    path_or_name: str
    """An absolute folder, or a hub name."""
    revision: str | None
    """The hub commit; None for a folder."""
    digest: str
    """The hub commit, or the sha256 of the folder's files."""


def identify(model: str, revision: str | None, cache_dir: Path) -> Weights:
    """Pins a folder or a hub name; reads each file of a folder once until it changes.

    Args:
        model: a folder, which goes first, or a hub name such as `Qwen/Qwen2.5-7B-Instruct`.
        revision: a branch, tag or commit of the hub; a folder has none.
        cache_dir: the product's cache; the memo is its `weights.json`.

    Raises:
        InputError: there is no such model, or the folder holds none.
    """
    folder = Path(os.path.expanduser(model))  # which leaves the `~` of nobody as it is
    if folder.is_dir():
        try:
            return _of_folder(folder.resolve(), revision, cache_dir / "weights.json")
        except OSError as error:
            raise InputError(f"{folder} cannot be read: {error}") from error
    commit = _commit(model, revision)
    return Weights(path_or_name=model, revision=commit, digest=commit)


def _of_folder(folder: Path, revision: str | None, memo_file: Path) -> Weights:
    if revision is not None:
        raise InputError(f"{folder} is a folder and has no revisions: leave out `revision`")
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} has no config.json: it is not a Hugging Face model folder")
    known = _read(memo_file)
    fresh: dict[str, list[object]] = {}
    total = hashlib.sha256()
    # Not deeper: below may lie checkpoints of a run that still writes, which are other models.
    for file in sorted(folder.iterdir()):
        if file.suffix in _SUFFIXES and file.is_file():
            state = file.stat()
            # `cp -p` and `touch -r` copy the time of a change, but neither inode nor ctime.
            stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
            key = str(file)
            old = known.get(key)
            digest = old[-1] if old and old[:-1] == stamp else _sha256(file)
            fresh[key] = [*stamp, digest]
            total.update(f"{digest}  {file.name}\n".encode())
    if any(known.get(key) != entry for key, entry in fresh.items()):
        _write(memo_file, known | fresh)
    return Weights(path_or_name=str(folder), revision=None, digest=total.hexdigest())


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(memo_file: Path) -> dict[str, list[object]]:
    """What was hashed before; nothing where the file is absent or not what `_write` writes."""
    try:
        memo = json.loads(memo_file.read_bytes())
    except (OSError, ValueError):
        return {}
    entries = memo.items() if isinstance(memo, dict) else ()
    return {key: entry for key, entry in entries if _sound(entry)}


def _sound(entry: object) -> bool:
    match entry:
        case [int(), int(), int(), int(), str(digest)]:
            return re.fullmatch("[0-9a-f]{64}", digest) is not None
    return False


def _write(memo_file: Path, memo: dict[str, list[object]]) -> None:
    """Whole or not at all. Of two writers the later wins, and the earlier's files are hashed again.

    A cache that cannot be written costs time and no answer, so it is no error.
    """
    partial = memo_file.with_name(f".{memo_file.name}.{uuid.uuid4().hex}")
    with suppress(OSError):
        kept = {key: entry for key, entry in memo.items() if Path(key).exists()}
        memo_file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        partial.replace(memo_file)
    with suppress(OSError):
        partial.unlink()  # there only where something went wrong


def _commit(model: str, revision: str | None) -> str:
    """The hub commit that `revision` (default: the main branch) names; the local cache goes first.

    A revision that is a commit is itself, so that a pinned judge needs neither cache nor network.
    """
    if revision and _COMMIT.fullmatch(revision):
        return revision
    try:
        cached = try_to_load_from_cache(model, "config.json", revision=revision)
        if isinstance(cached, str):
            return Path(cached).parent.name  # …/snapshots/<commit>/config.json
        info = HfApi().model_info(model, revision=revision, timeout=_HUB_TIMEOUT)
    except (HTTPError, OSError, ValueError):  # unreachable, offline, refused; no hub name at all
        raise InputError(
            f"unknown model {model!r}: neither a folder nor a model that the hub or its local "
            "cache answers for"
        ) from None
    return str(info.sha)
