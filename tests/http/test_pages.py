"""Every list ends its page when it is large, whatever is in it, and says how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.http import Server
from rhythm.http.routes import ROUTES
from tests.app.conftest import MakeApp
from tests.http.conftest import Client, until
from tests.support.counting import counting
from tests.support.serving import serving

TEXT, MOST = "x" * 900, 3000
FLOWS = """
workflow main() {
  for (r in completed([task("nap") for i in range(8)])) { log(join(["x" for i in range(900)], "")) }
  return await signal("go")
}
workflow asks(inputs) {
  return await approval({ role: "finance", reason: inputs.text, data: inputs.text })
}
"""
OF_ONE = ("resume-requests", "trace", "logs", "children")
LISTS = [
    route.path
    for route in ROUTES
    if any(getattr(form, "__name__", "").endswith("Page") for form in route.answers.values())
]


def nap() -> str:
    raise ValueError(TEXT)


def on(n: int) -> str:
    return f'@on("e{n}{"x" * 180}")\n'


@pytest.fixture
def full(make_app: MakeApp) -> Rhythm:
    """There is more of everything than fits on a page."""
    app = make_app(
        nap,
        flows=(
            FLOWS,
            *(f"{on(n)}workflow w{n}{'x' * 180}() {{\n  return 1\n}}" for n in range(12)),
        ),
        server_page_bytes=MOST,
    )
    app.start_workflow("main", id="w")
    for n in range(8):
        app.start_workflow("asks", {"text": TEXT}, attributes={"note": TEXT})
        app.pause_queue(f"q{n}", TEXT)
        app.schedule(f"s{n}", "main", cron="0 3 * * *")
        app.pause_schedule(f"s{n}", TEXT)
    with app.worker():
        until(
            lambda: (
                len(app.approvals().items) == 8
                and [one.ended for one in app.children("w")] == [True] * 8
            )
        )
    for _ in range(8):
        app.pause("w", TEXT)
        app.resume("w", TEXT, data={"text": TEXT})
    return app


@pytest.fixture
def me(full: Rhythm) -> Iterator[Client]:
    with (
        serving(Server(full)) as base,
        Client(base, full.create_token("Ada", roles=["admin"]).secret) as me,
    ):
        yield me


def pages(me: Client, path: str) -> Iterator[tuple[int, list[Any]]]:
    """The bytes and the items of each page."""
    cursor = chosen(path)
    while True:
        answer = me.get(path, params={"limit": 1000, **cursor})
        assert answer.status_code == 200, answer.text
        yield len(answer.content), answer.json()["items"]
        if answer.json()["cursor"] is None:
            return
        cursor |= {"cursor": answer.json()["cursor"]}


def chosen(path: str) -> dict[str, Any]:
    """What a list must be asked with."""
    return {"id": ["w", *(f"w.{n}" for n in range(1, 12))]} if path.endswith("/members") else {}


def test_there_are_lists() -> None:
    assert len(LISTS) == 13, LISTS


def test_every_list_ends_its_page_when_it_is_large(full: Rhythm, me: Client) -> None:
    with full.worker():
        for path in LISTS:
            found = list(pages(me, path.replace("{id}", "w")))
            items = [item for _, each in found for item in each]
            largest = max(len(str(item)) for item in items) + 500
            assert all(each for _, each in found), path
            assert max(size for size, _ in found) <= MOST + largest, path
            assert len({str(item) for item in items}) == len(items), path
            if path != "/api/v1/workers":  # there is one
                assert len(found) > 1, path


def test_pages_together_are_what_one_large_page_is(full: Rhythm, me: Client) -> None:
    small = {
        path: [item for _, items in pages(me, path.replace("{id}", "w")) for item in items]
        for path in LISTS
    }
    full.settings = full.settings.replace(server_page_bytes=100_000_000)
    for path, items in small.items():
        ((_, whole),) = pages(me, path.replace("{id}", "w"))
        assert [lasting(item) for item in whole] == [lasting(item) for item in items], path


def lasting(item: dict[str, Any]) -> dict[str, Any]:
    """Without what depends on when it is asked for."""
    return {name: value for name, value in item.items() if name not in ("oldest_s", "silent_s")}


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in LISTS
        if path.rpartition("/")[2] in ("executions", "approvals", "audit", *OF_ONE)
    ],
)
def test_what_is_not_on_a_page_is_not_read(full: Rhythm, me: Client, path: str) -> None:
    """No more rows with what is large than the page has, and one: the places of a trace are
    short, and so are the ids of a list of executions."""
    me.get(path.replace("{id}", "w"))
    with counting(full.store) as asked:
        items = me.get(path.replace("{id}", "w"), params={"limit": 1000}).json()["items"]
    assert asked.largest < 4 * MOST
    rows = {"trace": len(full.trace("w")), "executions": full.count()}.get(
        path.rpartition("/")[2], 0
    )
    assert asked.rows <= 2 * len(items) + 5 + rows


def test_a_page_has_at_least_one_item(full: Rhythm, me: Client) -> None:
    full.settings = full.settings.replace(server_page_bytes=1)
    for path in LISTS:
        items = me.get(path.replace("{id}", "w"), params={"limit": 5, **chosen(path)}).json()[
            "items"
        ]
        assert len(items) == 1 or path == "/api/v1/workers", path
