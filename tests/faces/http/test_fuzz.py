"""OpenAPI is complete and true: generated requests find no 5xx and no undeclared answer."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from danlu.engines.memory_script import Script
from danlu.faces.http.app import FACES
from tests.faces.http.live import Live, live

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]

UNSUPPORTED = "Not supported yet"
FOLLOWS = "/danlu/v1/{project_id}/jobs/{job_id}/tasks/{task}/log"


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("fuzz")) as server:
        yield server


@pytest.fixture(scope="module")
def token(fuzzed: Live) -> str:
    made = f"dlu_{secrets.token_hex(16)}"
    records = fuzzed.running.platform.records
    now = fuzzed.running.platform.clock.now()
    digest = hashlib.sha256(made.encode()).hexdigest()
    records.add_token(digest, fuzzed.running.admin.user.id, now + 10**7).result()
    return made


@pytest.fixture(scope="module")
def known(fuzzed: Live) -> dict[str, str]:
    """Path parameters that name something."""
    fuzzed.script("ended", Script(output=((0.0, b"hello\n"),)))
    job_id = fuzzed.submit("ended")
    fuzzed.until(job_id, "succeeded")
    return {
        "project_id": fuzzed.project,
        "training_job_id": job_id,
        "job_id": job_id,
        "task_id": "worker-0",
        "task": "worker-0",
    }


@pytest.fixture(scope="module")
def api(fuzzed: Live) -> Any:
    """The server's own description. Long polls do not wait here."""
    document = fuzzed.send("GET", "/openapi.json", {"Host": fuzzed.host}).json
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "timeout_s":
                    parameter["schema"]["maximum"] = 0
    loaded = schemathesis.openapi.from_dict(_without_unsupported(document))
    loaded.config.update(base_url=f"http://{fuzzed.host}")
    loaded.config.generation.update(with_security_parameters=False)
    return loaded


def _without_unsupported(part: Any) -> Any:
    """Fields that must be empty hide the others: nothing would ever be accepted."""
    if isinstance(part, dict):
        return {
            name: _without_unsupported(item)
            for name, item in part.items()
            if not (isinstance(item, dict) and str(item.get("description")).startswith(UNSUPPORTED))
        }
    return [_without_unsupported(item) for item in part] if isinstance(part, list) else part


EXAMPLES = settings(
    max_examples=15,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


CASES = [
    (mode, method, path)
    for face in FACES
    for method, path, _, _, about, _ in face.routes.declared
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    # Odd paths have tests of their own; there must be something else that can be wrong.
    if mode is GenerationMode.POSITIVE
    or about.body
    or any(parameter.place == "query" for parameter in about.parameters)
]


@pytest.mark.parametrize(("mode", "method", "path"), CASES)
def test_no_generated_request_breaks_the_server(
    api: Any, known: dict[str, str], token: str, mode: GenerationMode, method: str, path: str
) -> None:
    operation = api[path][method]
    kept = {"project_id"} if method == "DELETE" else set(known)

    @EXAMPLES
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        headers = {"X-Auth-Token": token}
        if path == FOLLOWS:
            headers["Accept"] = "application/octet-stream"
        case.path_parameters.update(
            {name: known[name] for name in kept & set(case.path_parameters)}
        )
        body = case.meta.components.get(ParameterLocation.BODY)
        wrong = body is not None and body.mode is GenerationMode.NEGATIVE
        response = case.call(headers=headers, timeout=30)
        checks = [*CHECKS, negative_data_rejection] if wrong else CHECKS
        case.validate_response(response, checks=checks)
        assert response.headers["x-request-id"]

    run()


def test_the_description_names_every_route(fuzzed: Live) -> None:
    document = fuzzed.send("GET", "/openapi.json", {"Host": fuzzed.host}).json
    app = fuzzed.server.config.loaded_app
    while not hasattr(app, "router"):
        app = app.app
    routes = {(route.path, route.method.lower()) for route in app.router.routes}
    described = {
        (path, method) for path, operations in document["paths"].items() for method in operations
    }
    assert described == routes
    ids = [one["operationId"] for ops in document["paths"].values() for one in ops.values()]
    assert len(ids) == len(set(ids))
    assert document["openapi"].startswith("3.1")
