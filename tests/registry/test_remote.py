"""The registry of a server: against the real one, and against ones that fail."""

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import JsonValue, SecretStr

from starforge_rewards.errors import (
    Conflict,
    Forbidden,
    InputError,
    NotFound,
    StarforgeError,
    Unauthorized,
    Unavailable,
)
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import RubricQuery, RunQuery
from starforge_rewards.registry.remote import remote_registry
from starforge_rewards.registry.remote_server import Patience
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.run import Outcome, ResultRow
from tests.registry import samples
from tests.registry.live import Asked, Live, Said, listening, live, losing

NAME = "alice/answer-quality"
REF = Ref.parse(NAME)
AT_ONCE = Patience(first=0)
TOKEN = SecretStr("sf_0123456789abcdef_" + "s" * 43)


@pytest.fixture
def server(database: Database) -> Iterator[Live]:
    with live(database) as one:
        yield one


@contextmanager
def asking(server: Live, owner: str = "alice", url: str | None = None) -> Iterator[Registry]:
    with remote_registry(url or server.url, server.token(owner), AT_ONCE) as registry:
        yield registry


def row(position: int, **about: Any) -> ResultRow:
    said = {"key": f"row-{position}", "position": position, "outcome": "scored", "total": 0.5}
    return ResultRow.model_validate(said | about)


# --- against the real server ---


def test_what_is_written_over_http_is_what_the_database_holds(server: Live) -> None:
    direct = samples.registry(server.database, "alice")
    with asking(server) as remote:
        first = remote.rubrics.put(REF, samples.rubric(description="Ünï 🙂", levels=2))
        assert (first.version, first.changed, first.created) == (1, True, True)
        assert not remote.rubrics.put(REF, samples.rubric(description="Ünï 🙂", levels=2)).changed
        second = remote.rubrics.put(REF, samples.rubric(), expected_version=1)
        assert remote.rubrics.resolve(NAME) == direct.rubrics.resolve(NAME)
        assert remote.rubrics.resolve(f"{NAME}@1") == direct.rubrics.resolve(f"{NAME}@1")
        assert remote.rubrics.show(REF) == direct.rubrics.show(REF)
        assert remote.rubrics.show(first.ref).rubric == first.rubric
        assert list(remote.rubrics.revisions(REF)) == list(direct.rubrics.revisions(REF))
        assert remote.rubrics.show(REF).version == second.version == 2


def test_an_absent_visibility_keeps_the_current_one_over_http_too(server: Live) -> None:
    with asking(server) as remote:
        remote.rubrics.put(REF, samples.rubric(visibility="public"))
        assert remote.rubrics.put(REF, samples.rubric(levels=3)).rubric["visibility"] == "public"


def test_listings_are_searched_paged_and_archived(server: Live) -> None:
    with asking(server) as remote:
        for name in ("alice/one", "alice/two", "alice/three"):
            samples.put(remote, name)
        page = remote.rubrics.list(RubricQuery(limit=2))
        rest = remote.rubrics.list(RubricQuery(limit=2, cursor=page.next))
        assert [one.name for one in (*page.items, *rest.items)] == ["one", "three", "two"]
        assert rest.next is None
        assert [one.name for one in remote.rubrics.list(RubricQuery(search="thr")).items] == [
            "three"
        ]
        assert remote.rubrics.archive(Ref.parse("alice/two"), True).archived
        assert [one.name for one in remote.rubrics.list(RubricQuery(archived=True)).items] == [
            "two"
        ]
        assert not remote.rubrics.archive(Ref.parse("alice/two"), False).archived


def test_a_run_records_itself_its_rows_and_its_scores(server: Live) -> None:
    with asking(server) as remote:
        ref = samples.put(remote, NAME)
        begun = remote.runs.put(samples.RUN, samples.run(ref))
        assert [one.rubric for one in begun.citations] == [f"{NAME}@1"]
        scores = {samples.key(ref, i): samples.score(i / 1000) for i in range(1001)}
        remote.scores.add(samples.RUN, scores)
        keys = [*scores, samples.key(ref, 5000)]
        found = remote.scores.find(samples.JUDGE.digest, keys)
        assert {key: found[key].total for key in found} == {k: s.total for k, s in scores.items()}
        page = remote.scores.of_run(samples.RUN)
        more = remote.scores.of_run(samples.RUN, cursor=page.next, limit=1000)
        assert len({one.key for one in (*page.items, *more.items)}) == 400
        remote.runs.add_results(samples.RUN, [row(i) for i in range(1001)])
        rows = remote.runs.results(samples.RUN, after=0, limit=5000)
        assert [one.position for one in rows] == list(range(1, 1001))
        assert len(remote.runs.results(samples.RUN, limit=3)) == 3
        outcome = Outcome(rows=2, scored=2, score=0.25, normalized=0.25)
        remote.runs.put(samples.RUN, samples.run(status="finished", outcome=outcome))
        assert remote.runs.show(samples.RUN).outcome == outcome
        listed = remote.runs.list(RunQuery(role="adhoc_score", rubric=NAME, status="finished"))
        assert [one.id for one in listed.items] == [samples.RUN]
        (usage,) = remote.rubrics.usage(REF)
        assert (usage.run, usage.version, usage.score) == (samples.RUN, 1, 0.25)
        assert remote.rubrics.usage(Ref.parse(f"{NAME}@2")) == []


def test_results_beyond_a_megabyte_go_in_several_bodies(server: Live) -> None:
    with asking(server) as remote:
        remote.runs.put(samples.RUN, samples.run(samples.put(remote, NAME)))
        rows = [row(i, detail="ü" * 200_000) for i in range(30)]  # 12 MB; the server takes 4
        remote.runs.add_results(samples.RUN, rows)
        kept = [
            one for i in range(30) for one in remote.runs.results(samples.RUN, after=i - 1, limit=1)
        ]
        assert kept == rows


def test_thousands_of_citations_go_in_several_bodies(server: Live) -> None:
    with asking(server) as remote:
        refs = [samples.put(remote, f"alice/{'n' * 120}-{i}") for i in range(3)]
        seen = list[Asked]()

        def forward(asked: Asked) -> Said:
            seen.append(asked)
            record = remote.runs.put(samples.RUN, samples.run(*refs))
            return Said(body=record.model_dump_json())

        cited = [f"alice/{'n' * 120}-{i}@1" for i in range(10_000)]
        with listening(forward) as url, remote_registry(url, TOKEN, AT_ONCE) as through:
            through.runs.put(samples.RUN, samples.run(*cited))
    assert len(seen) == 2
    assert max(len(asked.body) for asked in seen) < 1_000_000
    sent = [text for asked in seen for text in json.loads(asked.body)["citations"]]
    assert sent == cited


def test_each_refusal_is_the_same_error_as_on_the_database(server: Live) -> None:
    with asking(server) as alice, asking(server, "bob") as bob:
        samples.put(alice, NAME)
        with pytest.raises(NotFound):
            bob.rubrics.resolve(NAME)
        with pytest.raises(NotFound):
            bob.rubrics.show(Ref.parse("alice/absent"))
        with pytest.raises(Forbidden):
            bob.rubrics.put(REF, samples.rubric())
        with pytest.raises(Conflict, match="at version 1"):
            alice.rubrics.put(REF, samples.rubric(levels=3), expected_version=7)
        with pytest.raises(InputError, match="leave out @1"):
            alice.rubrics.put(Ref.parse(f"{NAME}@1"), samples.rubric())
        with pytest.raises(InputError, match=r"^cursor: "):
            alice.rubrics.list(RubricQuery(cursor="nonsense"))
        with pytest.raises(InputError, match="bare name"):
            alice.rubrics.resolve("answer-quality")
        with pytest.raises(NotFound):
            alice.runs.put(samples.RUN, samples.run("alice/absent@1"))
        for run_id in ("..", "", "../rubrics", "run-99999999"):
            with pytest.raises(StarforgeError):
                alice.runs.show(run_id)


@pytest.mark.parametrize("token", [None, TOKEN])
def test_without_a_valid_token_nothing_opens(server: Live, token: SecretStr | None) -> None:
    with remote_registry(server.url, token, AT_ONCE) as nobody, pytest.raises(Unauthorized) as said:
        nobody.rubrics.list(RubricQuery())
    assert ("SF_TOKEN" in str(said.value)) == (token is None)


def test_a_write_whose_answer_was_lost_lands_once(server: Live) -> None:
    with losing(server.url) as url, asking(server, url=url) as remote:
        versions = [
            remote.rubrics.put(REF, samples.rubric(description=text)).version
            for text in ("one", "two", "one", "two")
        ]
        assert versions == [1, 2, 3, 4]
        ref = Ref.parse(f"{NAME}@4")
        remote.runs.put(samples.RUN, samples.run(ref))
        remote.scores.add(samples.RUN, {samples.key(ref): samples.score()})
        assert len(remote.scores.of_run(samples.RUN).items) == 1
    direct = samples.registry(server.database, "alice")
    texts = [one.rubric["description"] for one in direct.rubrics.revisions(REF)]
    assert texts == ["two", "one", "two", "one"]


def test_a_write_that_expects_a_version_succeeds_though_its_first_answer_was_lost(
    server: Live,
) -> None:
    with losing(server.url) as url, asking(server, url=url) as remote:
        remote.rubrics.put(REF, samples.rubric(), expected_version=0)
        assert remote.rubrics.put(REF, samples.rubric(levels=4), expected_version=1).version == 2


def test_one_registry_serves_many_threads(server: Live) -> None:
    with asking(server) as remote, ThreadPoolExecutor(16) as threads:
        written = threads.map(
            lambda i: remote.rubrics.put(REF, samples.rubric(description=str(i))).version,
            range(40),
        )
        assert sorted(written) == list(range(1, 41))


# --- against servers that fail ---

LISTING = json.dumps({"items": [], "next": None, "a key of later": 1})


def failed(status: int, msg: str = "no", code: str = "invalid", **headers: str) -> Said:
    body = {"detail": [{"msg": msg, "loc": ["body", "criteria", 0, "name"], "type": "x"}]}
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Said(status, json.dumps(body | {"code": code}), named)


def listed(*says: Said) -> list[Asked]:
    """Lists rubrics on a server that says these things in order, the last for ever."""
    waiting, seen = list(says), list[Asked]()

    def reply(asked: Asked) -> Said:
        seen.append(asked)
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    with listening(reply) as url, remote_registry(url, TOKEN, AT_ONCE) as registry:
        assert registry.rubrics.list(RubricQuery()).items == ()
    return seen


@pytest.mark.parametrize(
    "failure",
    [
        failed(503, Retry_After="0"),
        failed(429, Retry_After="0"),
        failed(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        Said(502, "<html>", {"Content-Type": "text/html"}),
        Said(504),
        Said(None),
    ],
    ids=["503", "429", "429 until a date", "502 in HTML", "504", "hung up"],
)
def test_what_may_pass_is_tried_again(failure: Said) -> None:
    assert len(listed(failure, failure, Said(body=LISTING))) == 3


def test_all_tries_of_a_write_carry_one_key_and_each_write_its_own() -> None:
    keys = list[str]()

    def reply(asked: Asked) -> Said:
        keys.append(asked.headers["Idempotency-Key"])
        return failed(503)

    with listening(reply) as url, remote_registry(url, TOKEN, Patience(3, 0)) as registry:
        for write_key in (None, None, "mine"):
            with pytest.raises(Unavailable):
                registry.rubrics.put(REF, samples.rubric(), write_key=write_key)
    first, second, mine = keys[:3], keys[3:6], keys[6:]
    assert (len(set(first)), len(set(second)), set(mine)) == (1, 1, {"mine"})
    assert first != second


def test_tries_end_and_name_the_server() -> None:
    with pytest.raises(Unavailable, match=r"^http://127\.0\.0\.1:\d+ .* is away \(6 tries\)$"):
        listed(failed(503, "the database is away"))


def test_nobody_waits_an_hour_because_a_server_says_so() -> None:
    with pytest.raises(Unavailable, match=r"slow down \(1 try\)"):
        listed(failed(429, "slow down", Retry_After="3600"))


def test_a_server_that_is_not_there_is_named() -> None:
    with listening(lambda _: Said()) as url:
        pass
    with remote_registry(url, TOKEN, AT_ONCE) as gone, pytest.raises(Unavailable) as said:
        gone.rubrics.list(RubricQuery())
    assert url in str(said.value)


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            remote_registry(url, TOKEN, Patience(2, 0, answer=0.1)) as registry,
            pytest.raises(Unavailable, match=r"timed out \(2 tries\)"),
        ):
            registry.rubrics.list(RubricQuery())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Said(200, "<html>", {"Content-Type": "text/html"}), "it answers 200 with text/html"),
        (Said(404, '{"detail":"Not Found"}'), "it answers 404 with application/json"),
        (Said(200, "[]"), "it answers 200"),
        (Said(307, "", {"Location": "https://other/"}), "sends on to https://other/"),
    ],
)
def test_a_url_of_something_else_is_said_to_be_so(answer: Said, said: str) -> None:
    with pytest.raises(InputError, match=r"^SF_URL: ") as refused:
        listed(answer)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("failure", "error", "said"),
    [
        (failed(422, "must not be blank"), InputError, "criteria[0].name: must not be blank"),
        (failed(413, "too large"), InputError, "criteria[0].name: too large"),
        (Said(413, "<html>"), InputError, "too large for what lies between us and the server"),
        (failed(401, "no valid token"), Unauthorized, "no valid token"),
        (failed(403, "not yours"), Forbidden, "not yours"),
        (failed(404, "not there"), NotFound, "not there"),
        (failed(409, "version"), Conflict, "version"),
        (failed(500, "a mistake"), Unavailable, "answers 500: a mistake"),
        (Said(500, "oh"), Unavailable, "answers 500"),
        (Said(200, '{"items": 5}'), Unavailable, "this release cannot read: items"),
    ],
)
def test_each_status_is_an_error_of_ours(
    failure: Said, error: type[StarforgeError], said: str
) -> None:
    with pytest.raises(error) as raised:
        listed(failure)
    assert said in str(raised.value)


def test_a_rubric_with_keys_of_a_newer_release_is_not_half_read() -> None:
    rubric: dict[str, JsonValue] = {"criteria": [{"name": "a", "weight": 1, "curve": "steep"}]}
    body = json.dumps({"ref": f"{NAME}@1", "digest": "d", "rubric": rubric})
    with (
        listening(lambda _: Said(body=body)) as url,
        remote_registry(url, TOKEN, AT_ONCE) as registry,
        pytest.raises(InputError, match=rf"{NAME}@1: criteria\[0\]\.curve: unknown key"),
    ):
        registry.rubrics.resolve(NAME)


# --- what is configured ---


@pytest.mark.parametrize(
    "url",
    ["ftp://host", "host:8400", "", "http://", "http://u:pw@host", "http://h?x=1", "http://h:x"],
)
def test_no_token_goes_to_what_is_no_url_of_a_server(url: str) -> None:
    with pytest.raises(InputError, match=r"^SF_URL: ") as said, remote_registry(url, TOKEN):
        pass
    assert "pw" not in str(said.value)


@pytest.mark.parametrize("secret", ["two words", "line\nline", "tökén", ""])
def test_a_damaged_token_is_refused_without_saying_it(secret: str) -> None:
    with (
        pytest.raises(InputError, match=r"^SF_TOKEN: ") as said,
        remote_registry("http://127.0.0.1", SecretStr(secret)),
    ):
        pass
    assert not secret or secret not in str(said.value)


def test_a_slash_at_the_urls_end_and_a_path_do_not_matter() -> None:
    seen = list[Asked]()

    def reply(asked: Asked) -> Said:
        seen.append(asked)
        return Said(body=LISTING)

    with listening(reply) as url:
        for base in (url, f"{url}/", f"{url}/below/"):
            with remote_registry(base, TOKEN, AT_ONCE) as registry:
                registry.rubrics.list(RubricQuery())
    paths = [asked.path for asked in seen]
    assert paths == ["/api/rubrics", "/api/rubrics", "/below/api/rubrics"]


def test_the_token_is_in_its_header_and_in_no_log_and_no_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    (asked, *_) = listed(Said(body=LISTING))
    assert asked.headers["Authorization"] == f"Bearer {TOKEN.get_secret_value()}"
    with pytest.raises(Unavailable) as said:
        listed(failed(503))
    with remote_registry("http://127.0.0.1:9", TOKEN) as registry:
        shown = f"{registry!r} {vars(registry.rubrics)!r} {said.value!r} {caplog.text}"
    assert "http" in caplog.text
    assert "s" * 43 not in shown


def test_a_gpu_node_needs_no_package_of_the_server() -> None:
    script = (
        "import sys, starforge_rewards.registry.remote, starforge_rewards.registry.open; "
        "print(*sorted({'sqlalchemy', 'fastapi', 'alembic', 'nicegui'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
