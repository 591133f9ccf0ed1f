"""What the server counts for Prometheus, each app in a registry of its own.

Routes are labelled by template, never by path, so that no request makes a new label.
"""

import time
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS: Final = {"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"}
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class Metrics:
    """The counters of one app."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "starforge_http_requests",
            "Requests by route template, method and status.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "starforge_http_request_seconds",
            "Seconds until a response was sent whole, by route template and method.",
            ("route", "method"),
            registry=self.registry,
        )
        self.judged = Counter(
            "starforge_judged",
            "Rollouts that the server scored or could not score, by outcome.",
            ("outcome",),
            registry=self.registry,
        )

    def exposed(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)


class CountRequests:
    """ASGI middleware: every HTTP request is counted and timed once."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", "unmatched")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(route, method, status).inc()
            self._metrics.seconds.labels(route, method).observe(time.perf_counter() - began)
