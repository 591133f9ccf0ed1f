"""The OpenAPI document is true, and whatever follows it, or just does not, breaks nothing."""

import re
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.asking import RUBRIC, Server

MOST = 30
"""Requests of each operation, in each mode."""
KNOWN = {"owner": "alice", "name": "known", "run_id": "known-run", "version": 1}
CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
API = {
    "/api/rubrics": {"get"},
    "/api/rubrics/resolve": {"get"},
    "/api/rubrics/{owner}/{name}": {"get", "put"},
    "/api/rubrics/{owner}/{name}/revisions": {"get"},
    "/api/rubrics/{owner}/{name}/revisions/{version}": {"get"},
    "/api/rubrics/{owner}/{name}/diff": {"get"},
    "/api/rubrics/{owner}/{name}/usage": {"get"},
    "/api/rubrics/{owner}/{name}/archived": {"put"},
    "/api/runs": {"get"},
    "/api/runs/{run_id}": {"get", "put"},
    "/api/runs/{run_id}/scores": {"get", "post"},
    "/api/runs/{run_id}/results": {"get", "post"},
    "/api/scores/find": {"post"},
    "/api/judge/score": {"post"},
    "/api/rewards/openrlhf/{environment}": {"post"},
    "/api/rewards/slime/{environment}": {"post"},
}


@pytest.fixture(scope="module")
def document(plain: Server) -> Any:
    return plain.client.get("/openapi.json").json()


def operations(document: Any) -> list[tuple[str, str, Any]]:
    return [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_document_has_every_route(document: Any) -> None:
    outside = {"/healthz", "/readyz", "/metrics"}
    assert {p: set(m) for p, m in document["paths"].items() if p not in outside} == API
    assert outside <= document["paths"].keys()


def test_every_operation_of_the_api_names_its_failures_and_its_token(document: Any) -> None:
    for path, method, operation in operations(document):
        if not path.startswith("/api/"):
            continue
        trainers = path.startswith("/api/rewards/")
        assert operation["security"] == [{"token_as_password" if trainers else "token": []}], path
        wanted = {"401", "422", "503"} | ({"413"} if "requestBody" in operation else set())
        assert wanted <= operation["responses"].keys(), (path, method)
        assert ("requestBody" in operation) == (method in ("put", "post"))
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorBody"}
    scheme = document["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_every_reference_in_the_document_points_at_something(document: Any) -> None:
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', str(document).replace("'", '"')))
    assert named <= document["components"]["schemas"].keys()
    assert {"Criterion", "ErrorBody"} <= document["components"]["schemas"].keys()
    assert "$defs" not in str(document)


def test_names_carry_their_grammar(document: Any) -> None:
    for path, _, operation in operations(document):
        for parameter in operation.get("parameters", []):
            if parameter["name"] in ("owner", "name"):
                assert parameter["schema"]["pattern"] == "^[A-Za-z0-9][A-Za-z0-9._-]*$", path
                assert parameter["schema"]["maxLength"] == 128


def test_the_example_of_a_write_is_accepted_as_it_is(plain: Server, document: Any) -> None:
    body = document["paths"]["/api/rubrics/{owner}/{name}"]["put"]["requestBody"]
    example = body["content"]["application/json"]["example"]
    assert plain.ask("alice", "PUT", RUBRIC, example).status_code == 201


def test_no_page_would_load_from_another_server(plain: Server) -> None:
    for path in ("/docs", "/redoc"):
        assert plain.client.get(path).status_code == 404


@pytest.fixture(scope="module")
def schema(plain: Server) -> Any:
    plain.write("/api/rubrics/alice/known")
    plain.ask("alice", "PUT", "/api/runs/known-run", {"role": "gate"})
    return schemathesis.openapi.from_asgi("/openapi.json", plain.app)


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize(
    ("path", "method"),
    [(path, method) for path, methods in API.items() for method in sorted(methods)],
)
def test_whatever_is_asked_gets_an_answer_that_the_document_has(
    schema: Any, plain: Server, path: str, method: str, mode: GenerationMode
) -> None:
    @settings(max_examples=MOST, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=schema[path][method.upper()].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        headers = {"Authorization": f"Bearer {plain.tokens['alice']}"}
        if mode is GenerationMode.POSITIVE:  # a random name would be another's, or absent
            named = case.path_parameters
            named.update({key: KNOWN[key] for key in KNOWN.keys() & named.keys()})
        case.call_and_validate(headers=headers, checks=CHECKS)

    ask()
