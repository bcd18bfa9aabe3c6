"""Those who look at an execution, or retry it, do not read what everything below it was given and
has brought."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.app.explain import MAX_ASKED_EXECUTIONS
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces.executions import Reach
from rhythm.store.interfaces.messages import NewSignal
from tests.app.conftest import MakeApp
from tests.app.test_operating import until
from tests.support.stores import ready_rows

CHILDREN, SIZE = 40, 200_000
GIVEN = {"text": "x" * SIZE}
ONE = "workflow one(inputs) {\n  return inputs\n}"
BOOM = '  throw { code: "Odd", message: "odd" }\n'
FAILS = f"""workflow main(inputs) {{
  for (i in range({CHILDREN})) {{
    await workflow("one", inputs)
  }}
  await task("late")
}}"""
REPEATS = FAILS.replace('  await task("late")\n', f'  await sleep("1ms")\n{BOOM}')
WAITS = f"""workflow main(inputs) {{
  await all([all([workflow("one", inputs) for i in range({CHILDREN})]), signal("go")])
}}"""
TREE = """workflow main(inputs) {
  if (inputs > 0) {
    await all([workflow("main", inputs - 1) for i in range(4)])
  } else {
    await signal("go")
  }
}"""


def peak(call: Callable[[], Any]) -> int:
    """The bytes that a call takes, at most at once, once everything is there that it loads."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def late(ctx: rhythm.TaskContext) -> None:
    raise rhythm.TaskFailed("late", code="Late")


def ended(make_app: MakeApp, flow: str, **settings: Any) -> Rhythm:
    app = make_app(late, flows=(ONE, flow), **settings)
    with app.worker():
        app.start_workflow("main", GIVEN, id="x")
        until(lambda: app.get("x").finished_at)
    return app


@pytest.mark.parametrize(
    ("flow", "commands"),
    [(FAILS, ("rhythm retry x",)), (REPEATS, ("rhythm retry x --from-start",))],
)
def test_why_reads_no_payloads_of_a_family(
    make_app: MakeApp, flow: str, commands: tuple[str, ...]
) -> None:
    app = ended(make_app, flow)
    assert app.why("x").reasons[0].commands == commands
    assert peak(lambda: app.why("x")) < 20 * SIZE  # there are 80 of that size, and a few of its own


def test_why_reads_no_results_of_what_was_awaited_and_has_come(make_app: MakeApp) -> None:
    app = make_app(flows=(ONE, WAITS))
    with app.worker():
        app.start_workflow("main", GIVEN, id="x")
        until(
            lambda: (
                app.get("x").status == "suspended"
                and len(app.store.reading.children("x")) == CHILDREN
                and ready_rows(app.store) == []
            )
        )
    # a worker would look, and find nothing to do
    app.store.messages.signal(NewSignal("noise", "x", "noise", "null"), 100)
    whats = [reason.what for reason in app.why("x").reasons]
    assert whats == ["it waits for the signal `go`"]
    assert peak(lambda: app.why("x")) < 20 * SIZE


def test_why_asks_a_bounded_number_of_a_tree(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rhythm.app.explain.MAX_ASKED_EXECUTIONS", 10)
    app = make_app(flows=(TREE,))
    with app.worker():
        app.start_workflow("main", 3, id="x")
        until(
            lambda: (
                len(app.store.executions.family("x", Reach.by(DEFAULT_LIMITS)).executions) == 85
                and ready_rows(app.store) == []
            )
        )
    asked = list[str]()
    standing = app.store.operating.standing
    monkeypatch.setattr(
        app.store.operating, "standing", lambda ids: asked.extend(ids) or standing(ids)
    )
    assert len(app.why("x").reasons) < 10 * 5
    assert len(asked) < 10 * 6
    assert MAX_ASKED_EXECUTIONS == 100


def test_retry_reads_no_payloads_and_has_them(make_app: MakeApp) -> None:
    app = ended(make_app, FAILS)
    made = list[str]()

    def retry() -> None:
        id = app.retry(made[-1] if made else "x").id
        app.terminate(id)
        made.append(id)

    assert peak(retry) < 20 * SIZE
    children = app.store.reading.children(made[-1])
    assert [child.result for child in children[:CHILDREN]] == [
        child.result for child in app.store.reading.children("x")[:CHILDREN]
    ]
    assert {len(child.inputs) for child in children[:CHILDREN]} == {
        len(app.store.reading.get(["x"])["x"].inputs)
    }


def test_retry_of_a_family_that_is_too_large_is_refused_and_one_from_the_start_is_not(
    make_app: MakeApp,
) -> None:
    app = ended(make_app, FAILS)
    app.store.limits = DEFAULT_LIMITS.replace(retry_rows=CHILDREN)
    with pytest.raises(
        rhythm.NotRetryable,
        match=r"more below it than a retry may read.*`rhythm retry x --from-start`",
    ):
        app.retry("x")
    assert app.retry("x", from_start=True).created
