"""The OpenAPI document: what is checked in is what is served, and the server keeps to it whatever
it is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rhythm.app import Rhythm
from rhythm.http.api import document, written
from rhythm.http.routes import ROUTES
from tests.http.conftest import until
from tests.support.length import sampled, sweep

CHECKED_IN = Path(__file__).parents[2] / "docs" / "openapi.json"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
FLOW = (
    'workflow asks() {\n  return await approval({ role: "finance", reason: "x", escalate: { '
    'role: "board" } })\n}'
)
EXAMPLES = settings(
    max_examples=sampled(1, 6),
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_the_document_that_is_checked_in_is_the_one_that_is_served(base: str) -> None:
    assert CHECKED_IN.read_text(encoding="utf-8") == written(), (
        "the HTTP interface has changed: run `make openapi`, and look at the difference"
    )
    assert httpx.get(f"{base}/api/v1/openapi.json").json() == json.loads(written())


def test_the_document_says_of_every_route_what_it_does_and_needs() -> None:
    for route in ROUTES:
        operation = document()["paths"][route.path.replace(":path}", "}")][route.method.lower()]
        assert operation["description"].endswith(
            f"Needs the permission `{route.permission}`." if route.permission else "Public."
        )
        assert bool(operation["security"]) == (route.permission is not None)


def test_every_route_has_a_summary_of_its_own_that_fits_a_line() -> None:
    operations = [one for methods in document()["paths"].values() for one in methods.values()]
    summaries = [operation["summary"] for operation in operations]
    assert len(set(summaries)) == len(summaries) == len(ROUTES)
    # one sentence that says what it does: `Lists the workflows`, not `Find`
    assert [one for one in summaries if not re.fullmatch(r"[A-Z][a-z]+s [^.;]{5,72}", one)] == []


@pytest.fixture
def known(app: Rhythm) -> dict[str, list[str]]:
    """Ids and names that exist: of executions in every state, of approvals, of others."""
    app.register(FLOW)
    app.schedule("nightly", "wait", cron="0 3 * * *")
    ids = [
        app.start_workflow(name, {"a": 1, "b": 2}, by="Otto").id
        for name in ("wait", "add", "asks", "asks", "fan")
    ]
    with app.worker():
        until(lambda: len(app.approvals().items) == 2 and app.get(ids[1]).ended)
    return {
        "executions": ids,
        "approvals": [view.id for view in app.approvals()],
        "workflows": ["wait", "asks"],
        "queues": ["default", "system"],
        "schedules": ["nightly"],
    }


@pytest.mark.parametrize("role", ["viewer", "operator", "operator:w*", "admin"])
@sweep
def test_whatever_is_asked_the_answer_is_in_the_document(
    app: Rhythm, base: str, known: dict[str, list[str]], role: str
) -> None:
    secret = app.create_token(role, roles=[role], business_roles=["finance"]).secret
    schema = schemathesis.openapi.from_dict(document())
    for found in schema.get_all_operations():
        operation = found.ok()
        part = operation.path.removeprefix("/api/v1/").partition("/")[0]
        ids = (
            known.get(part, [])
            if not operation.path.endswith("/stream")
            else known["executions"][1:2]
        )

        @EXAMPLES
        @given(case=operation.as_strategy(), id=st.sampled_from([None, *ids]))
        def ask(case: schemathesis.Case, id: str | None) -> None:
            if id is not None:
                case.path_parameters = dict.fromkeys(case.path_parameters or (), id)
            answer = case.call(base_url=base, headers={"Authorization": f"Bearer {secret}"})
            case.validate_response(answer, checks=CHECKS)

        ask()
