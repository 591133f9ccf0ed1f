from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient

from starforge_rewards.errors import Unauthorized
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.server.app import create_app
from starforge_rewards.server.config import ServerConfig
from starforge_rewards.server.console import login
from starforge_rewards.server.console.guard import Guard
from starforge_rewards.server.console.session import COOKIE
from tests.server.asking import JUDGE
from tests.server.console.people import Console, Person

HOST = "http://testserver"
ORIGIN = {"origin": HOST}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Database]:
    with closing(Database.open(f"sqlite:///{tmp_path / 'registry.sqlite'}")) as opened:
        yield opened


@pytest.fixture
def client(registry: Database) -> Iterator[TestClient]:
    """The plain pages, without NiceGUI's."""
    app = create_app(ServerConfig(), registry, judge_config=JUDGE)
    app.include_router(login.router)
    app.add_middleware(Guard)
    with TestClient(app, follow_redirects=False) as one:
        yield one


@pytest.mark.browser
def test_a_token_opens_the_page_that_was_asked_for_and_is_kept_nowhere(
    console: Console, alice: Person
) -> None:
    page = alice.page
    page.context.clear_cookies()
    page.goto(f"{console.url}/runs?status=failed")
    expect(page).to_have_title("Log in · Starforge Rewards")
    page.get_by_label("Token").fill(f" {alice.token.token} ")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{console.url}/runs?status=failed")
    expect(page.get_by_text(alice.owner, exact=True)).to_be_visible()
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (COOKIE, True, "Strict")
    secret = alice.token.token.split("_", 2)[2]
    stored = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert secret not in stored + cookie["value"] + page.url + page.content()
    assert secret not in "".join(console.server.log)


@pytest.mark.browser
def test_logging_out_ends_the_session_in_every_tab(console: Console, alice: Person) -> None:
    alice.go("/rubrics")
    other = alice.page.context.new_page()
    other.goto(f"{console.url}/rubrics")
    (cookie,) = alice.page.context.cookies()
    alice.button("Log out").click()
    expect(alice.page).to_have_url(f"{console.url}/login")
    with pytest.raises(Unauthorized):
        console.tokens.session_user(cookie["value"])
    assert alice.page.context.cookies() == []
    other.get_by_label("Search").fill("anything")
    expect(other).to_have_url(f"{console.url}/login")


@pytest.mark.browser
def test_a_revoked_token_stops_at_once(console: Console, alice: Person) -> None:
    alice.go("/rubrics/new")
    alice.field(f"Name, under {alice.owner}/").fill("late")
    alice.field("Name").fill("Right")
    console.tokens.revoke(alice.token.id)
    alice.button("Save").click()
    expect(alice.page).to_have_url(f"{console.url}/login")
    alice.page.goto(f"{console.url}/rubrics")
    expect(alice.page).to_have_title("Log in · Starforge Rewards")


@pytest.mark.parametrize("token", ["", "sf_", "x" * 5000, "\x00", "é"])
def test_whatever_is_wrong_with_a_token_the_answer_is_the_same(
    token: str, client: TestClient, registry: Database
) -> None:
    revoked = Tokens(registry).create("alice")
    Tokens(registry).revoke(revoked.id)
    login.attempts.forget()
    refused = [
        client.post("/console/login", data={"token": each}, headers=ORIGIN)
        for each in (token, revoked.token)
    ]
    assert {one.status_code for one in refused} == {401}
    assert refused[0].text == refused[1].text
    assert 'role="alert"' in refused[0].text
    assert "set-cookie" not in refused[0].headers


def test_a_cookie_goes_over_https_only_where_the_page_did(
    client: TestClient, registry: Database
) -> None:
    token = Tokens(registry).create("alice").token
    plain = client.post("/console/login", data={"token": token}, headers=ORIGIN)
    safe = client.post("https://testserver/console/login", data={"token": token}, headers=ORIGIN)
    assert "secure" not in plain.headers["set-cookie"].lower()
    for part in ("secure", "httponly", "samesite=strict", "path=/console"):
        assert part in safe.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "asked",
    [
        "https://elsewhere/",
        "//elsewhere",
        "/console/\\elsewhere",
        "/api/rubrics",
        "/console/\r\nx: y",
    ],
)
def test_a_login_leads_to_no_other_address(
    asked: str, client: TestClient, registry: Database
) -> None:
    token = Tokens(registry).create("alice").token
    done = client.post("/console/login", data={"token": token, "next": asked}, headers=ORIGIN)
    assert (done.status_code, done.headers["location"]) == (303, "/console/rubrics")


def test_what_is_asked_for_is_no_markup_of_the_form(client: TestClient) -> None:
    shown = client.get("/console/login", params={"next": '/console/"><script>x</script>'})
    assert "<script" not in shown.text


def test_many_failures_of_one_address_are_refused_for_a_while(
    client: TestClient, registry: Database
) -> None:
    login.attempts.forget()
    for _ in range(20):
        client.post("/console/login", data={"token": "wrong"}, headers=ORIGIN)
    token = Tokens(registry).create("alice").token
    refused = client.post("/console/login", data={"token": token}, headers=ORIGIN)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 60
    login.attempts.forget()
    assert client.post("/console/login", data={"token": token}, headers=ORIGIN).status_code == 303


@pytest.mark.parametrize(
    "origin", [None, "null", "https://elsewhere", "http://testserver.elsewhere"]
)
@pytest.mark.parametrize("path", ["/console/login", "/console/logout"])
def test_a_form_of_another_site_is_refused(
    path: str, origin: str | None, client: TestClient
) -> None:
    headers = {} if origin is None else {"origin": origin}
    assert client.post(path, headers=headers).status_code == 403


def test_the_login_page_runs_no_script_and_is_kept_by_nobody(client: TestClient) -> None:
    shown = client.get("/console/login")
    assert "script-src" not in shown.headers["content-security-policy"]
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert shown.headers["cache-control"] == "no-store"
    assert shown.headers["x-frame-options"] == "DENY"
