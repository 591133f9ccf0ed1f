from collections.abc import Iterator

import pytest

from starforge_rewards.registry.database import Database
from starforge_rewards.server.config import ServerConfig
from tests.server.asking import BODY, RUBRIC, Server, codes, serving

MOST = 2000


@pytest.fixture
def tight(database: Database) -> Iterator[Server]:
    """A server that takes bodies of 2,000 bytes."""
    with serving(database, ServerConfig(max_body_mb=MOST / 1e6)) as one:
        yield one


def chunks(count: int) -> Iterator[bytes]:
    for _ in range(count // 100):
        yield b" " * 100


def test_a_body_that_says_it_is_too_large_is_not_read(tight: Server) -> None:
    refused = tight.ask("alice", "PUT", RUBRIC, content=b" " * (MOST + 1))
    assert codes(refused) == (413, "too_large")
    at_most = tight.ask("alice", "PUT", RUBRIC, content=b" " * MOST)
    assert codes(at_most) == (422, "invalid")


def test_a_body_in_chunks_is_cut_where_it_becomes_too_large(tight: Server) -> None:
    read = []

    def counted() -> Iterator[bytes]:
        for chunk in chunks(MOST + 100):
            read.append(chunk)
            yield chunk

    refused = tight.ask("alice", "PUT", RUBRIC, content=counted())
    assert codes(refused) == (413, "too_large")
    assert read
    at_most = tight.ask("alice", "PUT", RUBRIC, content=chunks(MOST))
    assert codes(at_most) == (422, "invalid")


@pytest.mark.parametrize("length", ["1e3", "-1", "x", "9" * 40, "²"])
def test_a_length_that_is_no_number_is_refused(tight: Server, length: str) -> None:
    headers = {b"Content-Length": length.encode()}
    refused = tight.client.request("PUT", RUBRIC, headers=headers, content=iter([b"{}"]))
    assert codes(refused) == (413, "too_large")


def test_answers_are_for_the_asker_alone(plain: Server) -> None:
    for path in (RUBRIC, "/api/nothing", "/healthz", "/metrics", "/openapi.json"):
        headers = plain.ask("alice", "GET", path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


def test_head_is_answered_as_get_without_its_body(plain: Server) -> None:
    plain.ask("alice", "PUT", RUBRIC, BODY)
    for path in (RUBRIC, "/api/rubrics", "/healthz"):
        head, got = plain.ask("alice", "HEAD", path), plain.ask("alice", "GET", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(got.content))
