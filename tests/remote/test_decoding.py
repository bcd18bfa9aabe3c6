"""From JSON to views: what the server sends is what the application returns, and what it does not
fit is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.app.approvals import ApprovalView, DecisionView
from rhythm.app.audit import AuditCheck, AuditView
from rhythm.app.bulk import BulkView
from rhythm.app.details import ExecutionDetails
from rhythm.app.explain import WhyView
from rhythm.app.schedules import ScheduleView
from rhythm.app.views import (
    ExecutionView,
    QueueView,
    SourceView,
    TraceStep,
    WorkerView,
    WorkflowView,
)
from rhythm.http.answers import document
from rhythm.record import Record
from rhythm.remote.decoding import MOST_NESTED, NotUnderstood, decoded, field, parsed

VIEWS: list[type[Record]] = [
    ApprovalView, AuditCheck, AuditView, BulkView, ExecutionDetails, ExecutionView, QueueView,
    ScheduleView, SourceView, TraceStep, WhyView, WorkerView, WorkflowView,
]  # fmt: skip
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=5,
)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
TEXT = st.text(st.characters(codec="utf-8"))
for kind, values in {
    datetime: TIMES,
    str: TEXT,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    dict: st.dictionaries(TEXT, JSON, max_size=2),
    Mapping: st.dictionaries(TEXT, TEXT, max_size=2),
}.items():
    st.register_type_strategy(kind, values)  # type: ignore[arg-type]  # each of its own type


def views(kind: type[Record]) -> st.SearchStrategy[Record]:
    """Any view of a kind, made by its hints."""
    import typing

    hints = {name: typing.get_type_hints(kind)[name] for name in kind._fields}
    fields = {name: _of_hint(hint) for name, hint in hints.items()}
    return st.builds(kind, **fields)


def _of_hint(hint: Any) -> st.SearchStrategy[Any]:
    import typing

    args = typing.get_args(hint)
    if hint is Any:
        return JSON
    if isinstance(hint, type) and issubclass(hint, Record):
        return views(hint)
    if typing.get_origin(hint) is tuple:
        return st.lists(_of_hint(args[0]), max_size=2).map(tuple)
    if typing.get_origin(hint) is not None and type(None) in args:
        return st.one_of(*[_of_hint(each) for each in args])
    return st.from_type(hint)


@pytest.mark.parametrize("kind", VIEWS, ids=lambda kind: kind.__name__)
def test_view_that_the_server_sends_is_read_as_the_same_view(kind: type[Record]) -> None:
    @given(views(kind))
    def read(view: Record) -> None:
        assert decoded(kind, parsed(document(view))) == view

    read()


DECISION = {"actor": "a", "role": "b", "decision": "c", "comment": "", "at": "2026-01-01T00:00:00Z"}


def test_field_that_is_new_is_left_out_and_one_with_a_default_may_be_missing() -> None:
    assert decoded(DecisionView, {**DECISION, "later": 1}).actor == "a"
    assert decoded(BulkView, {"matched": 3}) == BulkView(3)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"actor": 1}, "DecisionView.actor: 1 does not fit"),
        ({"actor": None}, "DecisionView.actor: None does not fit"),
        ({"actor": {"x": "y" * 999}}, "DecisionView.actor: an object does not fit"),
        ({"at": "yesterday"}, "DecisionView.at: 'yesterday' does not fit"),
        ({"at": "2026-01-01T00:00:00"}, "does not fit"),
        ({"at": 5}, "does not fit"),
    ],
)
def test_field_of_another_type_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(NotUnderstood, match=why):
        decoded(DecisionView, {**DECISION, **changes})


def test_what_is_no_object_or_lacks_a_field_is_refused() -> None:
    with pytest.raises(NotUnderstood, match="DecisionView is a list, not an object"):
        decoded(DecisionView, [1])
    with pytest.raises(NotUnderstood, match="DecisionView has no field actor"):
        decoded(DecisionView, {})
    with pytest.raises(NotUnderstood, match="it has no field id"):
        field({}, "id", str)
    with pytest.raises(NotUnderstood, match="id: True does not fit"):
        field({"id": True}, "id", int)
    with pytest.raises(NotUnderstood, match="does not fit"):
        field({"oldest_s": 10**400}, "oldest_s", float)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b"\xff",
        b'{"a": NaN}',
        b"[" * 100_000,
        b"[" * (MOST_NESTED + 2) + b"]" * (MOST_NESTED + 2),
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b"1" * 10_000,
    ],
)
def test_what_is_no_json_that_can_be_shown_is_refused(data: bytes) -> None:
    with pytest.raises(NotUnderstood) as refused:
        parsed(data)
    assert len(str(refused.value)) < 300


def test_json_as_deep_as_what_can_be_stored_is_read() -> None:
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    assert parsed(json.dumps({"items": [{"inputs": deep}]}).encode())["items"][0]["inputs"] == deep
