"""Pinning a model: a folder by its files, a hub name by its commit, the rest refused."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from starforge_rewards.engine.weights import Weights, identify
from starforge_rewards.errors import InputError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def digest(model: Path) -> str:
    return identify(str(model), None, model.parent / "cache").digest


def elsewhere(model: str, revision: str | None = None, **env: str) -> list[str | None]:
    """Identifies in a process of its own, because the hub's client reads its settings once."""
    code = (
        "import json, sys; from pathlib import Path;"
        "from starforge_rewards.engine.weights import identify;"
        "name, revision = json.loads(sys.argv[1]);"
        "print(json.dumps(identify(name, revision, Path('unused'))));"
        "assert not {'torch', 'transformers', 'vllm', 'ray'} & set(sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, json.dumps([model, revision])],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )
    if ran.returncode:
        return [ran.stderr.strip().splitlines()[-1]]
    pinned: list[str | None] = json.loads(ran.stdout)
    return pinned


def test_a_folder_is_told_by_an_absolute_path_and_a_digest(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    weights = identify("model", None, model.parent / "cache")
    assert weights == Weights(path_or_name=str(model), revision=None, digest=digest(model))
    assert len(weights.digest) == 64


def test_equal_files_elsewhere_have_the_same_digest(model: Path) -> None:
    copy = model.with_name("copy")
    copy.mkdir()
    for file in sorted(model.iterdir(), reverse=True):
        (copy / file.name).write_bytes(file.read_bytes())
    assert digest(copy) == digest(model)


@pytest.mark.parametrize(
    "name",
    [
        *("model.safetensors", "model.bin", "model.pt", "model.pth", "model.gguf", "model.h5"),
        *("flax_model.msgpack", "tokenizer.json", "chat_template.jinja", "modeling_own.py"),
    ],
)
def test_a_file_that_can_change_an_answer_changes_the_digest(model: Path, name: str) -> None:
    before = digest(model)
    (model / name).write_text("other")
    assert digest(model) != before


def test_a_file_under_another_name_changes_the_digest(model: Path) -> None:
    before = digest(model)
    (model / "model.safetensors").rename(model / "model-1.safetensors")
    assert digest(model) != before


def test_a_readme_and_a_run_s_checkpoints_change_nothing(model: Path) -> None:
    before = digest(model)
    (model / "README.md").write_text("read me")
    (model / "checkpoint-10").mkdir()
    (model / "checkpoint-10" / "model.safetensors").write_bytes(b"another model")
    assert digest(model) == before


def test_a_file_that_did_not_change_is_not_read_again(model: Path) -> None:
    before, memo = digest(model), model.parent / "cache" / "weights.json"
    known = json.loads(memo.read_text())
    known[str(model / "model.safetensors")][-1] = "0" * 64
    memo.write_text(json.dumps(known))
    assert digest(model) != before  # what the memo says, for once


def test_a_file_that_was_given_its_old_time_back_is_read_again(model: Path) -> None:
    before, file = digest(model), model / "model.safetensors"
    times = file.stat()
    file.write_bytes(b"WEIGHTS")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert digest(model) != before


@pytest.mark.parametrize("memo", ["", "{", "[]", '{"FILE": 1}', '{"FILE": [7, 0, "short"]}', "\0"])
def test_a_memo_that_is_not_ours_is_ignored_and_replaced(model: Path, memo: str) -> None:
    whole = digest(model)
    file = model.parent / "cache" / "weights.json"
    file.write_text(memo.replace("FILE", str(model / "model.safetensors")))
    assert digest(model) == whole
    assert str(model / "model.safetensors") in json.loads(file.read_text())


def test_the_memo_forgets_files_that_are_gone_and_leaves_no_partial_file(model: Path) -> None:
    digest(model)
    (model / "model.safetensors").rename(model / "new.safetensors")
    digest(model)
    cache = model.parent / "cache"
    names = {Path(key).name for key in json.loads((cache / "weights.json").read_text())}
    assert names == {"config.json", "new.safetensors"}
    assert [file.name for file in cache.iterdir()] == ["weights.json"]


def test_a_cache_that_cannot_be_written_costs_time_and_no_answer(model: Path) -> None:
    blocked = model.parent / "blocked"
    blocked.write_text("a file where the folder should be")
    assert identify(str(model), None, blocked).digest == digest(model)


def test_a_folder_without_a_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{tmp_path} has no config\.json"):
        identify(str(tmp_path), None, tmp_path)


def test_a_revision_of_a_folder_is_refused(model: Path) -> None:
    with pytest.raises(InputError, match="has no revisions"):
        identify(str(model), "main", model.parent)


def test_a_commit_is_itself_without_cache_or_network(tmp_path: Path) -> None:
    assert identify("org/name", COMMIT, tmp_path) == ("org/name", COMMIT, COMMIT)


@pytest.mark.parametrize(("revision", "ref"), [(None, "main"), ("v1", "v1")])
def test_a_branch_is_the_commit_of_the_local_hub_cache(
    tmp_path: Path, revision: str | None, ref: str
) -> None:
    kept = tmp_path / "models--org--name"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / ref).write_text(COMMIT)
    (kept / "snapshots" / COMMIT).mkdir(parents=True)
    (kept / "snapshots" / COMMIT / "config.json").write_text("{}")
    pinned = elsewhere("org/name", revision, HF_HUB_CACHE=str(tmp_path), HF_HUB_OFFLINE="1")
    assert pinned == ["org/name", COMMIT, COMMIT]


class Hub(BaseHTTPRequestHandler):
    """A hub that has one model."""

    def do_GET(self) -> None:
        found = self.path.startswith("/api/models/org/name")
        body = json.dumps({"id": "org/name", "sha": COMMIT} if found else {"error": "no"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def hub() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_model_that_is_not_cached_is_asked_of_the_hub(tmp_path: Path, hub: str) -> None:
    pinned = elsewhere("org/name", HF_HUB_CACHE=str(tmp_path), HF_ENDPOINT=hub, HF_HUB_OFFLINE="0")
    assert pinned == ["org/name", COMMIT, COMMIT]


@pytest.mark.parametrize(
    "name", ["org/other", "/no/such/folder", "./no-such-folder", "~nobody-here/m"]
)
def test_a_model_that_nobody_knows_is_an_input_error(tmp_path: Path, hub: str, name: str) -> None:
    said = elsewhere(name, HF_HUB_CACHE=str(tmp_path), HF_ENDPOINT=hub, HF_HUB_OFFLINE="0")
    assert said == [
        f"starforge_rewards.errors.InputError: unknown model {name!r}: neither a folder nor a "
        "model that the hub or its local cache answers for"
    ]


def test_without_a_network_an_unknown_model_is_the_same_error(tmp_path: Path) -> None:
    (said,) = elsewhere("org/name", HF_HUB_CACHE=str(tmp_path), HF_HUB_OFFLINE="1")
    assert said is not None
    assert "unknown model 'org/name'" in said
