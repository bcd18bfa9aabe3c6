"""Searches over HTTP: a filter means the same as everywhere, shows nobody what is not theirs, and what a
path does not know is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.http.routes import ROUTES, V1
from tests.app.conftest import MakeApp
from tests.http.conftest import Client, MakeClient, until

FLOWS = """
workflow order(inputs) {
  if (inputs.bad) { throw { code: "PaymentDeclined", message: "no" } }
  return await signal("go")
}
workflow order_eu(inputs) { return 1 }
workflow payment(inputs) { return await signal("go") }
"""
PATHS = [route.path for route in ROUTES if route.method == "GET"]
EVIL = "\x1b[31m\u202eevil\x07"


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    """Three executions of each workflow, of two customers."""
    app = make_app(flows=(FLOWS,))
    for name in ("order", "order_eu", "payment"):
        for n in range(3):
            attributes = {"customer": "acme" if n else EVIL, "n": n}
            inputs = {"bad": n == 2}
            app.start_workflow(name, inputs, id=f"{name}-{n}", attributes=attributes)
    with app.worker():
        until(lambda: app.count("status:suspended") == 5)
    return app


@pytest.fixture
def viewer(client: MakeClient) -> Iterator[Client]:
    with client("viewer") as viewer:
        yield viewer


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def find(who: Client, q: str, **more: Any) -> list[str]:
    return ids(who.get(f"{V1}/executions", params={"q": q, **more}))


def count(who: Client, q: str, **more: Any) -> int:
    answer = who.get(f"{V1}/execution-count", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["count"])


def test_filter_finds_and_counts(viewer: Client) -> None:
    assert find(viewer, "error:PaymentDeclined attr.customer=acme") == ["order-2"]
    assert find(viewer, "workflow:order,payment attr.n=1") == ["payment-1", "order-1"]
    assert find(viewer, "attr.n=1", workflow="payment") == ["payment-1"]
    assert count(viewer, "status:completed") == 3
    assert count(viewer, "status:completed", workflow="order") == 0
    assert count(viewer, "") == 9
    assert find(viewer, f'attr.customer="{EVIL}" workflow:order') == ["order-0"]


@pytest.mark.parametrize("q", ["attr.customer=acme", "finished:2020-01-01..", "-status:failed"])
def test_pages_of_a_filter_follow_each_other(viewer: Client, q: str) -> None:
    everything, found, cursor = find(viewer, q), list[str](), None
    while True:
        params = {"q": q, "limit": 2, **({"cursor": cursor} if cursor else {})}
        page = viewer.get(f"{V1}/executions", params=params)
        found, cursor = found + ids(page), page.json()["cursor"]
        if cursor is None:
            break
    assert found == everything
    assert len(set(found)) == len(found) > 2


def test_filter_that_is_wrong_is_refused_with_its_place(viewer: Client) -> None:
    for path in ("executions", "execution-count"):
        refused = viewer.get(f"{V1}/{path}", params={"q": "workflow:order stauts:failed"})
        assert refused.status_code == 422
        problem = refused.json()
        assert (problem["code"], problem["at"]) == ("invalid_request", 15)
        assert "did you mean `status`" in problem["detail"]
        twice = viewer.get(f"{V1}/{path}", params={"q": "status:failed", "status": "failed"})
        assert "`status` is given twice" in twice.json()["detail"]
        alone = viewer.get(f"{V1}/{path}", params={"q": "queue:mail"})
        assert "would read every execution" in alone.json()["detail"]


def test_nobody_learns_of_what_is_not_theirs(app: Rhythm, client: MakeClient) -> None:
    mine = client("viewer:order*")
    assert count(mine, "") == 6
    assert count(mine, "attr.customer=acme") == len(find(mine, "attr.customer=acme")) == 4
    for q in (
        "workflow:payment",
        "id:payment",
        "workflow:payment line:7",
        "-workflow:order,order_eu status:suspended",
    ):
        assert (find(mine, q), count(mine, q)) == ([], 0), q
    said = mine.get(f"{V1}/execution-count", params={"q": "workflow:payment line:7"}).text
    assert said == mine.get(f"{V1}/execution-count", params={"q": "workflow:none line:7"}).text
    nothing = client("viewer:none")
    assert (find(nothing, "status:suspended"), count(nothing, "")) == ([], 0)


def test_bulk_act_takes_a_filter_in_scope(app: Rhythm, client: MakeClient) -> None:
    mine = client("operator:order*")
    wanted = {"q": "attr.customer=acme"}
    done = mine.post(f"{V1}/executions/cancel", json=wanted | {"dry_run": True}).json()
    assert done["matched"] == 1
    assert mine.post(f"{V1}/executions/cancel", json=wanted).json()["changed"] == 1
    assert app.get("payment-1").cancel_requested_at is None
    refused = mine.post(f"{V1}/executions/cancel", json={"q": "satus:x"})
    assert refused.status_code == 422
    assert mine.post(f"{V1}/executions/cancel", json={}).json()["code"] == "selection_missing"


@pytest.mark.parametrize("route", [route for route in ROUTES if route.method == "GET"], ids=PATHS)
def test_query_parameter_that_a_path_does_not_know_is_refused(
    client: MakeClient, route: Any
) -> None:
    admin = client("admin")
    path = route.path.replace("{id}", "order-0").replace("{name}", "order")
    path = path.replace("{name:path}", "order")
    answer = admin.get(path, params={"attribute": "customer:c1"})
    assert (answer.status_code, answer.json()["code"]) in (
        (422, "unknown_parameter"),
        (404, "unknown_schedule"),  # of what does not exist nothing else is said
        (404, "unknown_approval"),
    )


def test_parameter_that_was_meant_is_said(viewer: Client) -> None:
    def refusal(query: str) -> str:
        answer = viewer.get(f"{V1}/executions?{query}")
        assert (answer.status_code, answer.json()["code"]) == (422, "unknown_parameter")
        return str(answer.json()["detail"])

    assert "no query parameter `stauts` here; did you mean `status`?" in refusal("stauts=failed")
    assert "takes q, workflow, status, whole, limit, cursor" in refusal("attribute=customer:c1")
    assert "`status` is given twice" in refusal("status=failed&status=paused")
    assert "at most 100 parameters" in refusal("&".join("a=1" for _ in range(101)))
    assert "no query parameter `" in refusal("=x")
    assert len(refusal("x" * 5000 + "=1")) < 500


def test_acts_take_no_query_parameters(client: MakeClient) -> None:
    operator = client("operator")
    answer = operator.post(f"{V1}/executions/order-0/cancel?reason=x")
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_parameter")
    assert "this path takes none" in answer.json()["detail"]
    assert operator.get(f"{V1}/executions/order-0").json()["cancel_requested_at"] is None
