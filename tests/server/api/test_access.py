import pytest

from starforge_rewards.registry.tokens import Tokens
from tests.server.asking import BODY, RUBRIC, Server, codes

READS = [
    RUBRIC,
    f"{RUBRIC}?version=1",
    f"{RUBRIC}/revisions",
    f"{RUBRIC}/revisions/1",
    f"{RUBRIC}/diff?before=1&after=1",
    f"{RUBRIC}/usage",
    "/api/rubrics/resolve?ref=alice/answer-quality",
    "/api/rubrics/resolve?ref=alice/answer-quality@1",
]
ALL = [
    *(("GET", path) for path in READS),
    ("GET", "/api/rubrics"),
    ("GET", "/api/rubrics?limit=none"),
    ("GET", "/api/rubrics/-/-"),
    ("PUT", RUBRIC),
    ("PUT", f"{RUBRIC}/archived"),
    ("GET", "/api/runs"),
    ("GET", "/api/runs/x"),
    ("PUT", "/api/runs/run-00000001"),
    ("GET", "/api/runs/run-00000001/scores"),
    ("POST", "/api/runs/run-00000001/scores"),
    ("GET", "/api/runs/run-00000001/results"),
    ("POST", "/api/runs/run-00000001/results"),
    ("POST", "/api/scores/find"),
    ("POST", "/api/judge/score"),
]


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic YWxpY2U6",
        "Bearer sf_0123456789abcdef_" + "A" * 43,
        "Bearer \xff\xfe",
    ],
)
def test_without_a_valid_token_nothing_else_is_said(plain: Server, header: str | None) -> None:
    headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
    for method, path in ALL:
        answered = plain.client.request(method, path, headers=headers, content=b"{]")
        assert codes(answered) == (401, "unauthorized"), (method, path)
        assert answered.headers["www-authenticate"] == "Bearer"


def test_a_revoked_token_opens_nothing(server: Server) -> None:
    assert server.ask("alice", "GET", "/api/rubrics").status_code == 200
    Tokens(server.database).revoke(server.tokens["alice"].split("_")[1])
    assert codes(server.ask("alice", "GET", "/api/rubrics")) == (401, "unauthorized")


@pytest.mark.parametrize("visibility", ["private", "public", "absent"])
@pytest.mark.parametrize(
    ("who", "readable"),
    [
        ("alice", {"private", "public"}),
        ("bob", {"public"}),
        ("root", {"private", "public"}),
    ],
)
def test_a_rubric_is_read_by_its_owner_administrators_and_when_public_by_all(
    server: Server, visibility: str, who: str, readable: set[str]
) -> None:
    if visibility != "absent":
        server.write(visibility=visibility)
    for path in READS:
        answered = server.ask(who, "GET", path)
        if visibility in readable:
            assert answered.status_code == 200, path
        else:
            assert codes(answered) == (404, "not_found"), path


def test_an_unreadable_rubric_is_answered_as_an_absent_one(server: Server) -> None:
    server.write(path="/api/rubrics/alice/hidden-quality")
    for path in READS:
        with server.queries() as of_absent:
            absent = server.ask("bob", "GET", path)
        with server.queries() as of_private:
            private = server.ask("bob", "GET", path.replace("answer", "hidden"))
        assert (private.status_code, private.headers) == (absent.status_code, absent.headers)
        assert private.content.replace(b"hidden", b"answer") == absent.content
        assert of_private == of_absent


@pytest.mark.parametrize("who", ["bob", "root"])
@pytest.mark.parametrize("visibility", ["private", "public", "absent"])
def test_a_write_to_anothers_namespace_is_refused_without_looking(
    server: Server, visibility: str, who: str
) -> None:
    if visibility != "absent":
        server.write(visibility=visibility)
    with server.queries() as asked:
        answered = server.ask(who, "PUT", RUBRIC, BODY)
    assert codes(answered) == (403, "forbidden")
    assert not [one for one in asked if "rubrics" in one]
    assert codes(server.ask(who, "PUT", RUBRIC, {"nonsense": 1})) == (403, "forbidden")


def test_archiving_is_the_owners(server: Server) -> None:
    path, body = f"{RUBRIC}/archived", {"archived": True}
    assert codes(server.ask("alice", "PUT", path, body)) == (404, "not_found")
    server.write()
    assert codes(server.ask("bob", "PUT", path, body)) == (404, "not_found")
    assert codes(server.ask("root", "PUT", path, body)) == (403, "forbidden")
    server.write(visibility="public")
    assert codes(server.ask("bob", "PUT", path, body)) == (403, "forbidden")
    assert server.ask("alice", "PUT", path, body).json()["archived"] is True
