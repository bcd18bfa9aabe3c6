"""What has happened, in the order of time: page by page, at the same price however much it is."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.app import executions as executions_module
from rhythm.app.views import TraceStep, line_of, moment
from rhythm.engine.payload import load
from rhythm.ir.step_ids import steps_at
from rhythm.store import reading
from rhythm.store.lifecycle import TASK, WORKFLOW
from tests.app.conftest import MakeApp
from tests.app.test_operating import until
from tests.support.counting import counting
from tests.support.stores import rob, rows

WAIT = 30
FLOWS = """
workflow inner(inputs) {
  let x = await task("plus", { n: inputs.n })
  return x
}
workflow outer(inputs) {
  let some = await all([workflow("inner", { n: i }) for i in range(inputs.n)])
  await signal("go")
  try { await task("breaks") } catch (e) { log("so be it") }
  return some
}
workflow fan(inputs) {
  return await all([task("plus", { n: i }) for i in range(inputs.n)])
}
workflow big(inputs) {
  return await all([task("echo", { text: inputs.text }) for i in range(inputs.n)])
}
"""


def plus(n: int) -> int:
    return n + 1


def echo(text: str) -> str:
    return text


def breaks() -> None:
    raise ValueError("no")


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    return make_app(plus, echo, breaks, flows=(FLOWS,))


def told(app: Rhythm, id: str) -> list[TraceStep]:
    """What happened, gathered execution by execution: by another way, and without an order."""
    steps, waiting = list[TraceStep](), [app.store.reading.get([id])[id]]
    workers = dict(rows(app.store, "SELECT id, worker FROM executions"))
    for row in waiting:
        program = app.program(row.name, row.version) if row.type == WORKFLOW else None
        steps.append(
            TraceStep(moment(row.created_at), row.id, "started", row.name, detail=load(row.inputs))
        )
        if row.finished_at is not None:
            steps.append(
                TraceStep(
                    moment(row.finished_at),
                    row.id,
                    row.status,
                    row.name,
                    detail=load(row.result or row.error or "null"),
                    worker=workers[row.id] or "",
                    attempt=row.attempt,
                    took_s=None
                    if row.started_at is None
                    else (row.finished_at - row.started_at) / 1e6,
                )
            )
        steps += received(app, row.id, row.name) if row.type == WORKFLOW else []
        for each in app.store.reading.history(row.id):
            if row.finished_at is None or each.at < row.finished_at:
                line = None if row.type == TASK else line_of(program, each.statement)
                at_step = steps_at(program, each.statement)[0] if program else None
                detail = load(each.error) if each.error else None
                steps.append(
                    TraceStep(
                        moment(each.at),
                        row.id,
                        each.cause,
                        row.name,
                        line,
                        detail,
                        each.worker,
                        each.seq if row.type == TASK else 0,
                        None,
                        at_step,
                    )
                )
        for request in app.store.people.resumes(row.id):
            how = {
                "triggered_by": request.triggered_by,
                "triggered_by_id": request.triggered_by_id,
                "data": load(request.trigger_data),
            }
            steps.append(
                TraceStep(
                    moment(request.requested_at),
                    row.id,
                    "resumed",
                    row.name,
                    detail={**how, "reason": request.reason},
                )
            )
        waiting += app.store.reading.children(row.id)
    return steps


def received(app: Rhythm, id: str, name: str) -> list[TraceStep]:
    """The signals of a workflow."""
    signals = rows(
        app.store,
        f"SELECT received_at, name, payload FROM workflow_signals WHERE execution_id = '{id}'",
    )
    return [
        TraceStep(moment(at), id, "signal", name, detail={"name": what, "payload": load(data)})
        for at, what, data in signals
    ]


@pytest.fixture
def ran(app: Rhythm) -> str:
    """An execution with children and grandchildren, a pause, a failure and a signal."""
    handle = app.start_workflow("outer", {"n": 3})
    app.pause(handle.id)
    app.resume(handle.id, "go on", data={"x": 1})
    with app.worker():
        app.signal(handle.id, "go")
        assert handle.result(WAIT) == [1, 2, 3]
    return handle.id


def key(step: TraceStep) -> tuple[Any, ...]:
    return step.at, step.execution_id, step.what, step.line or 0, repr(step.detail), step.worker


def test_a_trace_tells_everything_that_happened_in_the_order_of_time(app: Rhythm, ran: str) -> None:
    steps = app.trace(ran)
    assert sorted(steps, key=key) == sorted(told(app, ran), key=key)
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert {"started", "completed", "failed", "turn", "resumed"} <= {step.what for step in steps}
    child = app.children(ran).items[0].id
    assert sorted(app.trace(child), key=key) == sorted(told(app, child), key=key)


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_pages_of_any_size_are_the_whole(app: Rhythm, ran: str, limit: int) -> None:
    steps, cursor = list[TraceStep](), None
    while True:
        page = app.trace_page(ran, limit, cursor)
        steps += page
        assert len(page) == limit or page.cursor is None
        if page.cursor is None:
            break
        assert page.cursor == page.cursors[-1]
        cursor = page.cursor
    assert steps == app.trace(ran)


def test_of_what_one_commit_did_children_end_then_the_workflow_turns_then_children_start(
    app: Rhythm,
) -> None:
    handle = app.start_workflow("outer", {"n": 1}, id="w")
    with app.worker():
        app.signal(handle.id, "go")
        handle.result(WAIT)
    rows(app.store, "UPDATE executions SET created_at = 10, finished_at = 40")
    rows(app.store, "UPDATE executions SET created_at = 5, finished_at = 40 WHERE id = 'w'")
    rows(app.store, "UPDATE executions SET created_at = 20, finished_at = 20 WHERE name = 'plus'")
    rows(app.store, "UPDATE history SET at = 10 WHERE execution_id = 'w' AND seq = 1")
    rows(app.store, "UPDATE history SET at = 50 WHERE execution_id <> 'w' OR seq > 1")
    first, *children = [child.id for child in app.children("w").items]
    steps = [step for step in app.trace("w") if step.what != "signal"]
    assert [(step.at.microsecond, step.execution_id, step.what) for step in steps] == [
        (5, "w", "started"),
        (10, "w", "turn"),
        (10, first, "started"),
        *((10, child, "started") for child in children),
        (20, f"{first}.1", "started"),
        (20, f"{first}.1", "completed"),
        (40, first, "completed"),
        *((40, child, "failed") for child in children),
        (40, "w", "completed"),
    ]


def cost(app: Rhythm, id: str, limit: int) -> tuple[int, int]:
    """Statements and rows of a page that is not the first."""
    cursor = app.trace_page(id, 3).cursor
    with counting(app.store) as asked:
        assert len(app.trace_page(id, limit, cursor)) == limit
    return len(asked.statements), asked.rows


def test_a_page_costs_the_same_however_many_children_there_are(app: Rhythm) -> None:
    """The execution itself, where everything stands, and what is on the page: three statements, and
    two rows for each step."""
    ids = [app.start_workflow("fan", {"n": n}).id for n in (10, 300)]
    with app.worker():
        for id in ids:
            app.result(id, WAIT)
    few, many = (cost(app, id, 5) for id in ids)
    assert few == many == (3, 1 + 6 + 6)


def test_programs_of_a_page_are_few(app: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that is loaded is a statement: a page that needs many ends early."""
    names = [f"w{n}" for n in range(6)]
    app.register(
        "\n".join(
            f'workflow {name}() {{\n  await task("plus", {{ n: 1 }})\n  return 1\n}}'
            for name in names
        )
    )
    app.register(
        (
            f"workflow all_of_them() {{\n  return await "
            f"all([{', '.join(f'workflow({name!r})' for name in names)}])\n}}"
        ).replace("'", '"')
    )
    handle = app.start_workflow("all_of_them")
    with app.worker():
        handle.result(WAIT)
    whole = app.trace(handle.id)
    monkeypatch.setattr(executions_module, "TRACED_PROGRAMS", 2)
    assert app.trace(handle.id) == whole
    assert len(app.trace_page(handle.id, 1000)) < len(whole)


def test_a_page_ends_when_it_is_large_and_what_is_not_on_it_is_not_read(app: Rhythm) -> None:
    handle = app.start_workflow("big", {"n": 20, "text": "x" * 10_000})
    with app.worker():
        handle.result(WAIT)
    with counting(app.store) as asked:
        page = app.trace_page(handle.id, 1000, most_bytes=50_000)
    assert 4 <= len(page) <= 8
    assert page.cursor is not None
    assert asked.largest < 100_000 or asked.rows < 1000, "places are short, details are cut"
    steps, pages = [*page], 1
    while page.cursor is not None:
        page, pages = app.trace_page(handle.id, 1000, page.cursor, most_bytes=50_000), pages + 1
        steps += page
    assert steps == app.trace(handle.id)
    assert pages >= 9
    assert len(app.trace_page(handle.id, 1000, most_bytes=1)) == 1, "at least one"


def test_a_trace_has_its_limits(app: Rhythm, ran: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from rhythm.store.postgres import reading as postgres
    from rhythm.store.sqlite import reading as sqlite

    for module in (postgres, sqlite):
        monkeypatch.setattr(module, "MAX_TRACED_EXECUTIONS", 2)
        monkeypatch.setattr(module, "MAX_TRACED_TURNS", 1)
    steps = app.trace(ran)
    assert len({step.execution_id for step in steps}) == 3
    assert [step.what for step in steps].count("turn") <= 1
    assert reading.MAX_TRACED_EXECUTIONS == 10_000


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "1:2",
        "1:1:1:1:1:1:",
        "1:1:1:1:1:1:a\nb",
        "9" * 30 + ":1:1:1:0:0:w",
        "1:1:1:1:1:x:w",
        "-1:1:1:1:1:1:w",
    ],
)
def test_a_cursor_that_is_none_is_refused(app: Rhythm, ran: str, cursor: str) -> None:
    with pytest.raises(ValueError, match="is not the cursor of a page"):
        app.trace_page(ran, 10, cursor)


def test_what_there_is_many_times_is_left_out_and_counted(app: Rhythm) -> None:
    handle = app.start_workflow("fan", {"n": 12})
    other = app.start_workflow("outer", {"n": 3})
    with app.worker():
        app.signal(other.id, "go")
        handle.result(WAIT)
        other.result(WAIT)
    full = app.trace(handle.id)
    for most, left in ((12, len(full)), (11, len(full) - 24), (1, len(full) - 24)):
        page = app.trace_page(handle.id, 1000, most_alike=most)
        assert len(page) == left
        assert [*page] == [
            step for step in full if left == len(full) or step.execution_id == handle.id
        ]
    assert app.details.alike(handle.id, 12) == []
    (some,) = app.details.alike(handle.id, 11)
    tasks = {child.id: child for child in app.children(handle.id)}
    assert (some.name, some.type, some.depth) == ("plus", "task", 1)
    assert (some.count, some.completed, some.failed, some.ended) == (12, 12, 0, 12)
    assert (some.first_failed, some.first_at) == (
        None,
        min(child.created_at for child in tasks.values()),
    )
    slowest = tasks[some.slowest_id]
    assert slowest.finished_at is not None
    assert (
        some.slowest_s
        == (slowest.finished_at - (slowest.started_at or slowest.created_at)).total_seconds()
    )
    deep = {(each.name, each.depth, each.count) for each in app.details.alike(other.id, 2)}
    assert deep == {("inner", 1, 3), ("plus", 2, 3)}


def test_failures_among_many_are_counted(make_app: MakeApp) -> None:
    def odd(n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n

    flow = """workflow some() {
      for (r in completed([task("odd", { n: i }) for i in range(6)])) { log("one") }
    }"""
    app = make_app(odd, flows=(flow,))
    handle = app.start_workflow("some")
    with app.worker():
        handle.result(WAIT)
    (some,) = app.details.alike(handle.id, 5)
    assert (some.count, some.completed, some.failed) == (6, 3, 3)
    assert some.first_failed is not None
    assert app.get(some.first_failed).status == "failed"


def test_votes_that_do_not_end_their_approval_are_told(make_app: MakeApp) -> None:
    flow = """workflow asks() {
      return await approval({ role: "boss", quorum: 2 })
    }"""
    app = make_app(flows=(flow,))
    handle = app.start_workflow("asks")
    with app.worker():
        until(lambda: app.approvals().items)
        id = app.approvals().items[0].id
        app.approve(id, by="ann", comment="fine")
        app.approve(id, by="bob")
        handle.result(WAIT)
    steps = {step.what: step for step in app.trace(handle.id)}
    assert steps["vote"].detail == {
        "approval": id,
        "decision": "approve",
        "by": "ann",
        "comment": "fine",
    }
    assert steps["resumed"].detail["data"]["by"] == ["ann", "bob"]


def test_an_attempt_whose_worker_died_is_told_with_what_it_has_logged(make_app: MakeApp) -> None:
    stay, begun = threading.Event(), threading.Event()

    def slow() -> int:
        now = rhythm.current()
        now.log.info("attempt %d", now.attempt)
        begun.set()
        if now.attempt == 1:
            stay.wait(WAIT)
        return now.attempt

    app = make_app(slow)
    handle = app.queue_task("slow")
    with app.worker("first") as first:
        assert begun.wait(WAIT)
        until(lambda: app.logs(handle.id).items)
        rob(app.store, first.name)  # as if it were dead: the attempt goes on, and is worth nothing
        with app.worker("second"):
            assert handle.result(WAIT) == 2
        stay.set()
    lines = [(line.message, line.attempt) for line in app.logs(handle.id)]
    assert lines == [("attempt 1", 1), ("attempt 2", 2)]
    steps = {step.what: step for step in app.trace(handle.id)}
    assert (steps["attempt crashed"].worker, steps["attempt crashed"].attempt) == (first.name, 1)
    assert steps["completed"].attempt == 2
    assert list(app.store.operating.check(0.0, lambda evidence: ())) == []
