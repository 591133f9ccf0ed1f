from prometheus_client.parser import text_string_to_metric_families

from tests.server.asking import BODY, RUBRIC, Server

TEMPLATE = "/api/rubrics/{owner}/{name}"


def samples(server: Server, name: str) -> dict[tuple[str, ...], float]:
    """Values by their labels' values."""
    text = server.client.get("/metrics").text
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def test_requests_are_counted_by_template_method_and_status(server: Server) -> None:
    server.write()
    server.ask("alice", "GET", RUBRIC)
    server.ask("alice", "GET", RUBRIC + "-other")
    server.ask("alice", "HEAD", RUBRIC)
    server.ask("nobody", "GET", RUBRIC)
    server.ask("alice", "GET", "/api/made/up")
    server.client.request("BREW", "/api/made/up")
    counted = samples(server, "starforge_http_requests_total")
    assert counted == {
        ("PUT", TEMPLATE, "201"): 1,
        ("GET", TEMPLATE, "200"): 1,
        ("HEAD", TEMPLATE, "200"): 1,
        ("GET", TEMPLATE, "404"): 1,
        ("GET", TEMPLATE, "401"): 1,
        ("GET", "unmatched", "404"): 1,
        ("other", "unmatched", "404"): 1,
    }
    timed = samples(server, "starforge_http_request_seconds_count")
    assert timed["GET", TEMPLATE] == 3


def test_a_refused_size_is_counted_too(server: Server) -> None:
    server.ask("alice", "PUT", RUBRIC, content=b" " * 4_000_001)
    counted = samples(server, "starforge_http_requests_total")
    assert counted == {("PUT", "unmatched", "413"): 1}


def test_judged_rollouts_are_counted_by_outcome(server: Server) -> None:
    items = [{"prompt": "p", "response": response} for response in ("a", "b", "late")]
    server.ask("alice", "POST", "/api/judge/score", {"rubric": BODY, "items": items})
    assert samples(server, "starforge_judged_total") == {("scored",): 2, ("unscored",): 1}
