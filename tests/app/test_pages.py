"""A page of a list is a sequence of what is on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.app.views import PageOf
from tests.app.conftest import MakeApp
from tests.app.test_operating import until

ASKS = 'workflow main() {\n  log("one")\n  return await approval({ role: "manager" })\n}'
PAGES: dict[str, Callable[[Rhythm], PageOf[Any]]] = {
    "list": lambda app: app.list(),
    "children": lambda app: app.children("x0"),
    "approvals": lambda app: app.approvals(),
    "trace": lambda app: app.trace_page("x0"),
    "logs": lambda app: app.logs("x0"),
    "resumes": lambda app: app.resume_page("x0"),
    "audit": lambda app: app.audit(),
}


def test_every_page_is_tried() -> None:
    tried = {"Page", "ApprovalPage", "TracePage", "LogPage", "ResumePage", "AuditPage"}
    assert {cls.__name__ for cls in PageOf.__subclasses__()} == tried


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_a_sequence_of_its_items(make_app: MakeApp, name: str) -> None:
    app = make_app(flows=(ASKS,))
    with app.worker():
        handles = [app.start_workflow("main", id=f"x{i}") for i in range(3)]
        until(lambda: len(app.approvals()) == 3)
        app.approve(app.approvals()[-1].id, by="eve")
        handles[0].result(60)
        app.pause("x1", by="eve")
    page = PAGES[name](app)
    assert isinstance(page, Sequence)
    assert (list(page), len(page), bool(page)) == ([*page.items], len(page.items), bool(page.items))
    assert page[:2] == page.items[:2]
    assert list(reversed(page)) == [*reversed(page.items)]
    for i, item in enumerate(page):
        assert page[i] == page[i - len(page)] == item
        assert (item in page, page.index(item)) == (True, i)
    with pytest.raises(IndexError):
        page[len(page)]


def test_an_empty_page_is_false(make_app: MakeApp) -> None:
    page = make_app().list()
    assert (bool(page), len(page), page[:1], page.cursor) == (False, 0, (), None)
