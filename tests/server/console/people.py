"""People with a browser, a token and a registry; what their pages do is watched."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, Locator, Page

from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import Current, User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.registry.tokens import NewToken, Tokens
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.server.console.session import COOKIE, HOME
from tests.server.asking import BODY
from tests.server.live import Live

CRITERIA: list[dict[str, Any]] = BODY["criteria"]  # type: ignore[assignment]
"""Of the specification's rubric."""


@dataclass(frozen=True)
class Console:
    """A server and its database."""

    server: Live
    database: Database

    @property
    def url(self) -> str:
        return f"{self.server.url}/console"

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.database)


@dataclass
class Person:
    """Somebody at a page."""

    console: Console
    owner: str
    token: NewToken
    page: Page
    outside: list[str] = field(default_factory=list)
    """Requests to any other address."""
    mistakes: list[str] = field(default_factory=list)
    """Of the page's scripts, and what its policy refused."""

    @property
    def registry(self) -> Registry:
        return registry_of(self.console.database, User(owner=self.owner))

    def criteria(self, name: str = "answer-quality") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.current(name).rubric["criteria"]  # type: ignore[assignment]
        return found

    def go(self, path: str) -> int:
        """Opens a page, until its connection stands; its status."""
        answered = self.page.goto(self.console.url + path)
        assert answered is not None
        self.page.locator("#main").wait_for()
        self.page.wait_for_function("window.did_handshake === true")
        return answered.status

    def path(self, name: str = "answer-quality") -> str:
        return f"/rubrics/{self.owner}/{name}"

    def write(self, name: str = "answer-quality", **changes: Any) -> Ref:
        """A version of a rubric; its pinned reference."""
        body = Rubric.model_validate(BODY | changes)
        return self.registry.rubrics.put(Ref(owner=self.owner, name=name), body).ref

    def current(self, name: str = "answer-quality") -> Current:
        return self.registry.rubrics.show(Ref(owner=self.owner, name=name))

    def rest(self, name: str) -> dict[str, Any]:
        """A rubric as REST shows it."""
        path = f"{self.console.server.url}/api/rubrics/{self.owner}/{name}"
        headers = {"Authorization": f"Bearer {self.token.token}"}
        shown: dict[str, Any] = httpx.get(path, headers=headers).json()
        return shown

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Locator:
        return self.page.get_by_label(label, exact=True)

    def said(self) -> Locator:
        """What the page says of a success."""
        return self.page.get_by_role("status").locator("p")

    def alert(self) -> Locator:
        """The message of an editor or a page that something is wrong."""
        return self.page.locator(".sf-notice[role=alert] p")


@contextmanager
def tab_of(
    browser: Browser, console: Console, owner: str, *, width: int = 1280, admin: bool = False
) -> Iterator[Person]:
    """Somebody who is logged in; at the end, nothing went to another address or broke."""
    token, began = console.tokens.create(owner, admin=admin), len(console.server.log)
    context = browser.new_context(viewport={"width": width, "height": 860})
    context.set_default_timeout(20_000)
    secret = console.tokens.begin_session(token.token)
    context.add_cookies([{"name": COOKIE, "value": secret, "domain": "127.0.0.1", "path": HOME}])
    person = Person(console, owner, token, context.new_page())
    ours = urlsplit(console.url).netloc
    watch = person.page
    context.on(
        "request",
        lambda request: (
            None
            if urlsplit(request.url).netloc in (ours, "")
            else person.outside.append(request.url)
        ),
    )
    watch.on("pageerror", lambda error: person.mistakes.append(str(error)))
    watch.on(
        "console",
        lambda message: (
            person.mistakes.append(message.text)
            if "Content Security Policy" in message.text
            else None
        ),
    )
    try:
        yield person
        assert person.outside == []
        assert person.mistakes == []
        log = "".join(console.server.log[began:])
        assert "Traceback" not in log, log
    finally:
        context.close()
