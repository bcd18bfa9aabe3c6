"""Searches from Python: the same filter in lists, counts and acts on many, with the line of a source."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.filters import FilterError
from tests.app.conftest import MakeApp
from tests.app.test_operating import until

FIRST = """workflow order(inputs) {
  let a = await signal("first")
  return await signal("second")
}
"""
SECOND = FIRST.replace("{\n", "{\n  let more = 1\n", 1)


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    return make_app(flows=(FIRST,))


def ids(app: Rhythm, query: str, **more: Any) -> list[str]:
    return sorted(each.id for each in app.list(query=query, **more))


def test_line_is_where_an_execution_waits_in_its_version(app: Rhythm) -> None:
    app.start_workflow("order", id="a")
    app.start_workflow("order", id="b")
    app.signal("b", "first")
    with app.worker():
        until(lambda: app.count("status:suspended") == 2)
        until(lambda: ids(app, "workflow:order line:3") == ["b"])
        app.register(SECOND)
        app.start_workflow("order", id="c")
        until(lambda: app.count("status:suspended") == 3)
    assert ids(app, "workflow:order line:2") == ["a"]
    assert ids(app, "workflow:order line:3") == ["b", "c"]
    assert ids(app, "workflow:order line:3,2 id:a,c") == ["a", "c"]
    assert ids(app, "workflow:order line:4") == ids(app, "workflow:order line:99") == []
    assert ids(app, "workflow:nothing line:3") == []
    version = app.get("c").version
    assert ids(app, f"workflow:order version:{version} -queue:mail") == ["c"]


def test_conditions_beside_a_filter_are_terms(app: Rhythm) -> None:
    app.start_workflow("order", id="a", attributes={"customer": "acme"})
    app.start_workflow("order", id="b", attributes={"customer": "bolt"})
    assert ids(app, "attr.customer=acme,bolt", status="pending") == ["a", "b"]
    assert app.count("attr.customer=acme", workflow="order") == 1
    assert asyncio.run(app.aio.count("attr.customer=acme", status="failed")) == 0
    assert [each.id for each in asyncio.run(app.aio.list(query="attr.customer=bolt"))] == ["b"]
    with pytest.raises(ValueError, match="`workflow` is given twice, as workflow:order"):
        app.list("order", query="workflow:order")
    with pytest.raises(FilterError, match="did you mean `attr`"):
        app.list(query="attribute:acme")
    with pytest.raises(ValueError, match="status is one of"):
        app.count(status="nothing")


def test_act_on_many_takes_a_filter(app: Rhythm) -> None:
    for id, customer in (("a", "acme"), ("b", "bolt"), ("c", "acme")):
        app.start_workflow("order", id=id, attributes={"customer": customer, "n": 5})
    assert app.bulk("cancel", query="attr.customer=acme", dry_run=True).matched == 2
    assert app.bulk("pause", query="attr.customer=acme", status="pending").changed == 2
    assert app.bulk("resume", query="status:paused id:a").changed == 1
    assert app.bulk("cancel", query="queue:default -attr.customer=acme").matched == 1
    assert app.bulk("terminate", query="age<1h", limit=1).matched == 1
    with pytest.raises(ValueError, match="status is one of failed, cancelled to retry"):
        app.bulk("retry", query="status:completed")
    with pytest.raises(ValueError, match="say which executions are meant"):
        app.bulk("cancel", query="")
    with pytest.raises(FilterError):
        app.bulk("cancel", query="customer=acme")


def test_attributes_of_an_act_are_compared_as_what_they_are(app: Rhythm) -> None:
    app.start_workflow("order", id="a", attributes={"n": 5, "long": "x" * 2000})
    app.start_workflow("order", id="b", attributes={"n": "5"})
    assert ids(app, "attr.n=5") == ["a", "b"], "a filter compares texts"
    for attributes, matched in (
        ({"n": 5}, 1), ({"n": "5"}, 1), ({"n": 5.0}, 1), ({"n": 6}, 0),
        ({"long": "x" * 2000}, 1), ({"none": None}, 0),
    ):  # fmt: skip
        done = app.bulk("cancel", attributes=attributes, dry_run=True)
        assert done.matched == matched, attributes
