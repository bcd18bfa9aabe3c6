"""What workflows declare, over HTTP: in their views, in the OpenAPI document of whoever may see them,
and in the refusals of starts and schedules."""

from __future__ import annotations

import json

import httpx
import jsonschema_rs
import pytest
import schemathesis

from rhythm.app import Rhythm
from rhythm.http.api import written
from tests.http.conftest import Client, MakeClient

TYPED = """
workflow order(id: text, items: [{ sku: text, qty: integer = 1 }] = [], wait: duration = "1h") { return id }
workflow refund(id: text, why: "lost" | "late"?) { return id }
workflow secret_payroll(amount: number) { return amount }
"""
START = "/api/v1/executions"


@pytest.fixture
def typed(app: Rhythm) -> Rhythm:
    app.register(TYPED)
    return app


def test_workflow_and_list_have_the_schema_of_the_inputs(typed: Rhythm, admin: Client) -> None:
    shown = admin.get("/api/v1/workflows/refund").json()["inputs"]
    assert shown == typed.workflow("refund").inputs
    assert shown["properties"]["id"] == {"type": "string"}
    listed = {each["name"]: each for each in admin.get("/api/v1/workflows").json()["items"]}
    assert listed["refund"]["inputs"] == shown
    assert listed["add"]["inputs"] is None


@pytest.mark.parametrize("route", ["start", "schedule"])
def test_inputs_that_do_not_fit_are_refused_with_the_field(
    typed: Rhythm, admin: Client, route: str
) -> None:
    inputs = {"id": "A", "items": [{"sku": 5}]}
    answer = (
        admin.post(START, json={"workflow": "order", "inputs": inputs})
        if route == "start"
        else admin.post(
            "/api/v1/schedules",
            json={"name": "x", "workflow": "order", "cron": "0 3 * * *", "inputs": inputs},
        )
    )
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "invalid_inputs"
    assert answer.json()["detail"] == (
        "the input `items[0].sku` of workflow `order` must be text, not a number"
    )


def test_document_without_a_token_names_no_workflow(typed: Rhythm, base: str) -> None:
    assert httpx.get(f"{base}/api/v1/openapi.json").json() == json.loads(written())


def test_document_has_the_inputs_of_the_workflows_that_the_token_may_see(
    typed: Rhythm, client: MakeClient
) -> None:
    document = client("viewer").get("/api/v1/openapi.json").json()
    schemas = document["components"]["schemas"]
    declared = {name for name in schemas if name.startswith("Inputs.")}
    assert declared == {"Inputs.order", "Inputs.refund", "Inputs.secret_payroll"}
    assert all(
        found.ok() for found in schemathesis.openapi.from_dict(document).get_all_operations()
    )
    body = document["paths"][START]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["anyOf"][-1] == {"$ref": "#/components/schemas/NewExecution"}
    assert {each["properties"]["workflow"]["const"] for each in body["anyOf"][:-1]} == {
        "order",
        "refund",
        "secret_payroll",
    }
    limited = client("viewer:re*").get("/api/v1/openapi.json")
    assert "payroll" not in limited.text
    assert "Inputs.refund" in limited.json()["components"]["schemas"]


def test_document_names_nothing_to_a_token_that_may_read_nothing(
    typed: Rhythm, client: MakeClient
) -> None:
    nobody = client("viewer:nothing_is_called_so")
    assert nobody.get("/api/v1/openapi.json").json() == json.loads(written())


def test_token_that_is_not_valid_gets_no_document(typed: Rhythm, base: str) -> None:
    given = {"Authorization": "Bearer rhythm_nobody_0000"}
    assert httpx.get(f"{base}/api/v1/openapi.json", headers=given).status_code == 401


def test_names_that_no_component_can_have_are_told_apart(app: Rhythm, admin: Client) -> None:
    import rhythm
    from rhythm.authoring.workflow import Workflow

    async def one(n: int) -> int:
        return n

    workflows = [Workflow(one, name, {}) for name in ("a b", "a/b", "a_b")]
    with rhythm.Rhythm(app.settings.database_url, environment={}, workflows=workflows):
        schemas = admin.get("/api/v1/openapi.json").json()["components"]["schemas"]
    assert {name for name in schemas if name.startswith("Inputs.a")} == {
        "Inputs.a_b",
        "Inputs.a_b.2",
        "Inputs.a_b.3",
    }


def test_schema_means_to_others_what_it_means_here(typed: Rhythm) -> None:
    """JSON Schema's own validator agrees about inputs that need no conversion."""
    schema = typed.workflow("order").inputs
    assert schema is not None
    check = jsonschema_rs.validator_for(schema).is_valid
    assert check({"id": "A", "items": [{"sku": "x", "qty": 2}], "wait": 5})
    assert not check({"id": 5})
    assert not check({"id": "A", "other": 1})
    assert not check({"items": []})
    assert not check({"id": "A", "items": [{"qty": 1}]})


def test_document_stays_small_however_much_workflows_declare(app: Rhythm, admin: Client) -> None:
    choices = " | ".join(f'"{i}{"x" * 230}"' for i in range(900))
    for i in range(25):
        app.register(f"workflow w{i:02}(a: {choices}) {{ return a }}")
    answer = admin.get("/api/v1/openapi.json")
    described = [key for key in answer.json()["components"]["schemas"] if key.startswith("Inputs.")]
    assert 10 < len(described) < 25
    assert len(answer.content) < 5 * 1024 * 1024
