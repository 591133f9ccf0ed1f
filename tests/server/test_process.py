import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from starforge_rewards.cli import main
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.server.process import WithoutQuery
from tests.server.asking import BODY, Server
from tests.server.live import Live, live

SPECIFICATION = """
curl -X PUT $SF_URL/api/rubrics/alice/answer-quality -H "Authorization: Bearer $SF_TOKEN" \
-H "Content-Type: application/json" -d '{
  "description": "Scoring customer-support answers.",
  "visibility": "private", "scale_min": 0, "scale_max": 5,
  "criteria": [
    {"name": "Factually correct", "weight": 3.0,
     "description": "Every claim about the product is true and current."},
    {"name": "Answers the question asked", "weight": 2.0,
     "description": "Addresses the actual problem of the customer, not an adjacent one."},
    {"name": "Cites the handbook", "weight": 1.0,
     "description": "Points to the section a human could check."}]}'
curl -H "Authorization: Bearer $SF_TOKEN" $SF_URL/api/rubrics/alice/answer-quality/revisions
curl -H "Authorization: Bearer $SF_TOKEN" $SF_URL/api/rubrics/alice/answer-quality/usage
curl -H "Authorization: Bearer $SF_TOKEN" "$SF_URL/api/rubrics/resolve?ref=alice/answer-quality"
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'registry.sqlite'}"


@pytest.fixture
def server(tmp_path: Path, url: str) -> Iterator[Live]:
    with live(tmp_path, url) as one:
        yield one


def new_token(url: str, owner: str = "alice") -> str:
    with closing(Database.open(url)) as database:
        return Tokens(database).create(owner).token


def test_the_commands_of_the_specification_work_as_written(server: Live, url: str) -> None:
    """And no token comes into the log, nor a query string."""
    token = new_token(url)
    script = SPECIFICATION.replace("\ncurl ", "\necho; curl -sS ")
    done = subprocess.run(
        ["/bin/bash", "-euc", script],
        env={**os.environ, "SF_URL": server.url, "SF_TOKEN": token},
        capture_output=True,
        text=True,
        check=True,
    )
    written, revisions, usage, resolved = map(json.loads, done.stdout.split("\n")[1:])
    assert (written["version"], written["changed"], written["rubric"]) == (1, True, BODY)
    assert [one["rubric"] for one in revisions["revisions"]] == [BODY]
    assert usage == {"usage": []}
    assert resolved["ref"] == "alice/answer-quality@1"
    secret = f"{server.url}/api/rubrics?search=whispered"
    httpx.get(secret, headers={"Authorization": f"Bearer {token}x"})
    assert server.stop(signal.SIGTERM) == 0
    log = "".join(server.log)
    assert "GET /api/rubrics HTTP/1.1 401" in log
    assert "PUT /api/rubrics/alice/answer-quality HTTP/1.1 201" in log
    assert token.split("_", 2)[2] not in log
    assert "whispered" not in log
    assert "Traceback" not in log


def test_what_is_printed_says_where_it_is_and_how_to_log_in(
    server: Live, tmp_path: Path, url: str
) -> None:
    said = "".join(server.log)
    assert re.search(r"console +http://127\.0\.0\.1:\d+/console\n", said)
    assert f"database  {url}" in said
    assert "\n            starforge token create OWNER\n" in said
    with closing(Database.open(url)) as database:
        assert Tokens(database).list() == []  # none is made that nobody asked for
        rubrics = registry_of(database, User(owner="alice")).rubrics
        assert rubrics.resolve("starforge/support-answer@1")
    new_token(url)
    with live(tmp_path, url) as second:
        assert "nobody has a token" not in "".join(second.log)


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(server: Live, url: str) -> None:
    headers = {"Authorization": f"Bearer {new_token(url)}"}
    acknowledged: list[int] = []
    enough = threading.Event()

    def write() -> None:
        with httpx.Client(base_url=server.url, headers=headers) as client:
            for number in range(10_000):
                body = BODY | {"description": f"Edit {number}."}
                try:
                    done = client.put("/api/rubrics/alice/answer-quality", json=body)
                except httpx.TransportError:
                    return
                acknowledged.append(done.json()["version"])
                if len(acknowledged) == 20:
                    enough.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert enough.wait(30)
    server.stop(signal.SIGKILL)
    writer.join()
    with closing(Database.open(url)) as database:
        rubrics = registry_of(database, User(owner="alice")).rubrics
        ref = Ref.parse("alice/answer-quality")
        current, revisions = rubrics.show(ref), rubrics.revisions(ref)
    assert acknowledged == list(range(1, len(acknowledged) + 1))
    assert current.version in (len(acknowledged), len(acknowledged) + 1)  # one was under way
    assert [one.version for one in revisions] == list(range(current.version, 0, -1))
    texts = {one.version: one.rubric["description"] for one in revisions}
    assert all(texts[version] == f"Edit {version - 1}." for version in acknowledged)


def test_a_request_under_way_is_finished_when_the_server_is_told_to_stop(
    server: Live, url: str, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    criteria: list[JsonValue] = [{"name": "Right", "weight": 1}]
    body = {"rubric": {"criteria": criteria}, "prompt": "p", "response": f"when {pipe}"}
    headers = {"Authorization": f"Bearer {new_token(url)}"}
    with ThreadPoolExecutor() as threads:
        path = f"{server.url}/api/judge/score"
        asked = threads.submit(httpx.post, path, json=body, headers=headers, timeout=30)
        with pipe.open("w") as label:  # opens once the judge reads
            server.process.send_signal(signal.SIGTERM)
            label.write("1")
        assert asked.result().json()["total"] == 1.0
    assert server.process.wait(30) == 0


Refuse = Callable[..., str]


@pytest.fixture
def refuse(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refuse:
    """`starforge serve` in this process, which ends with 2; what it prints."""
    judge = tmp_path / "judge.yaml"
    judge.write_text("kind: scripted\nfunction: tests.server.scripted_judge:judge\n")
    monkeypatch.setenv("SF_DATABASE_URL", url)

    def serve(*options: str) -> str:
        usual = [] if "--judge" in options else ["--judge", str(judge)]
        monkeypatch.setattr(sys, "argv", ["starforge", "serve", *usual, *options])
        with pytest.raises(SystemExit) as ended:
            main.run()
        assert ended.value.code == 2
        return capsys.readouterr().err

    return serve


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nowhere"], "nowhere.yaml: no such file"),
        (["--judge", "nowhere"], "nowhere.yaml: no such file"),
        (["--database", "mysql://u:secret@h/d"], "mysql is not supported"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1:"),
    ],
)
def test_what_cannot_be_used_ends_with_2_in_one_line(
    options: list[str], said: str, refuse: Refuse
) -> None:
    printed = refuse(*options)
    assert said in printed
    assert "secret" not in printed
    assert len(printed.splitlines()) == 1


def test_a_judge_that_names_nothing_ends_with_2(refuse: Refuse, tmp_path: Path) -> None:
    judge = tmp_path / "wrong.yaml"
    judge.write_text("kind: scripted\nfunction: no_module:judge\n")
    assert "cannot import no_module" in refuse("--judge", str(judge))


def test_a_port_in_use_ends_with_2(refuse: Refuse) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port}" in refuse("--port", str(port))


def test_an_access_line_loses_its_query() -> None:
    args = ("127.0.0.1:1", "GET", "/api/rubrics/resolve?ref=a/b", "1.1", 200)
    record = logging.LogRecord("uvicorn.access", logging.INFO, "", 0, "%s %s %s %s %d", args, None)
    assert WithoutQuery().filter(record)
    assert record.getMessage() == "127.0.0.1:1 GET /api/rubrics/resolve 1.1 200"


def test_no_request_of_any_kind_logs_a_token(
    plain: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for path in ("/api/rubrics", "/api/rubrics/alice/x", "/api/nothing", "/readyz"):
        plain.ask("alice", "GET", path)
    plain.ask("alice", "POST", "/api/judge/score", {"rubric": BODY, "prompt": "p", "response": "r"})
    assert plain.tokens["alice"].split("_", 2)[2] not in caplog.text
