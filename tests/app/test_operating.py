"""What operators do to executions, on every database: terminate, the second cancel, one act for
many, and why one does not go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.app.bulk import AT_ONCE, BulkView
from rhythm.engine.doctor import examine
from rhythm.store.interfaces.workers import Beat
from tests.app.conftest import MakeApp
from tests.support.stores import rows

WAIT = "120s"
HOLD = 'workflow hold(inputs) {\n  let answer = await signal("go")\n  return answer\n}'
CLEAN = 'workflow clean() {\n  try { await signal("go") } finally { await signal("clean") }\n}'
FAIL = 'workflow fail(inputs) {\n  if (inputs == "now") { throw "no" }\n  await task("broken")\n}'
BEAT = Beat("box-1", "box", 71, ("default",), 20, 3, False, "0.1")


def until(met: Callable[[], Any]) -> Any:
    """What `met` returns, once it is something."""
    for _ in range(12_000):
        if found := met():
            return found
        threading.Event().wait(0.01)
    raise AssertionError("it never came to that")


def suspended(app: Rhythm, *ids: str) -> None:
    for id in ids:
        until(lambda id=id: app.get(id).status == "suspended")


def statuses(app: Rhythm, *ids: str) -> list[str]:
    return [app.get(id).status for id in ids]


def broken() -> None:
    raise rhythm.TaskFailed("out of order", code="Broken")


# terminate, and the second cancel


def test_terminated_execution_ends_without_its_finally_block_and_its_running_task_is_told(
    make_app: MakeApp,
) -> None:
    begun, told = threading.Event(), threading.Event()

    def busy() -> None:
        begun.set()
        while True:
            try:
                rhythm.current().heartbeat()
            except rhythm.TaskCancelled:
                told.set()
                raise
            threading.Event().wait(0.01)

    flow = 'workflow main() {\n  try { await task("busy") } finally { await signal("clean") }\n}'
    app = make_app(busy, flows=(flow,), heartbeat_interval="50ms")
    with app.worker():
        handle = app.start_workflow("main", id="m")
        assert begun.wait(120)
        assert app.terminate("m", by="ada")
        with pytest.raises(rhythm.ExecutionFailed, match="Terminated: it was terminated"):
            handle.result(WAIT)
        assert told.wait(120)
        assert not app.terminate("m")
    assert app.get("m").status == "cancelled"
    assert examine(app.store, 0.0) == []


def test_a_second_cancel_ends_at_once_what_the_first_let_clean_up(make_app: MakeApp) -> None:
    app = make_app(flows=(CLEAN,))
    with app.worker():
        app.start_workflow("clean", id="c")
        suspended(app, "c")
        assert app.cancel("c")
        until(
            lambda: [leaf for leaf in [app.get("c").awaiting] if leaf and leaf["name"] == "clean"]
        )
        assert app.cancel("c")
        assert app.get("c").error == {
            "code": "Terminated",
            "message": "it was terminated",
            "data": None,
        }
        assert not app.cancel("c")
    assert examine(app.store, 0.0) == []


def test_a_start_that_replaces_lets_one_that_was_cancelled_clean_up(make_app: MakeApp) -> None:
    app = make_app(flows=(CLEAN,))
    app.start_workflow("clean", id="c", idempotency_key="k")
    app.cancel("c")
    app.start_workflow("clean", id="d", idempotency_key="k", on_conflict="replace")
    assert statuses(app, "c") == ["pending"]


def test_what_does_not_exist_cannot_be_ended_or_explained(make_app: MakeApp) -> None:
    app = make_app()
    for act in (app.terminate, app.cancel, app.why):
        with pytest.raises(rhythm.UnknownExecution):
            act("nobody")


# one act for many


def test_many_are_paused_resumed_cancelled_and_terminated_and_a_dry_run_only_counts(
    make_app: MakeApp,
) -> None:
    app = make_app(flows=(HOLD, CLEAN))
    app.start_many("hold", [rhythm.Start(n, id=f"h{n}") for n in range(5)])
    app.start_workflow("clean", id="c")
    for action, before, after in (("pause", "pending", "paused"), ("resume", "paused", "pending")):
        assert app.bulk(action, workflow="hold", dry_run=True) == BulkView(5)
        assert statuses(app, "h0", "h4", "c") == [before, before, "pending"]
        assert app.bulk(action, workflow="hold", limit=3, reason="x", by="ada") == BulkView(3, 3)
        assert statuses(app, "h0", "h2", "h3", "c") == [after, after, before, "pending"]
        assert (app.bulk(action, workflow="hold"), app.bulk(action, workflow="hold")) == (
            BulkView(2, 2),
            BulkView(0),
        )
    assert app.bulk("cancel", workflow="hold") == BulkView(5, 5)
    assert app.bulk("cancel", all=True) == BulkView(1, 1)
    assert app.bulk("cancel", all=True) == BulkView(0)  # to ask again would end them at once
    assert statuses(app, "h0", "c") == ["pending", "pending"]
    assert app.bulk("terminate", workflow="hold") == BulkView(5, 5)
    assert statuses(app, "h0", "h4", "c") == ["cancelled", "cancelled", "pending"]
    assert examine(app.store, 0.0) == []


def test_every_page_is_done_and_nothing_twice(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    app.start_many("hold", range(2 * AT_ONCE + 7))
    assert app.bulk("pause", all=True, limit=AT_ONCE + 1) == BulkView(AT_ONCE + 1, AT_ONCE + 1)
    told: list[tuple[int, int]] = []
    done = app.bulk("pause", all=True, on_progress=lambda done, of: told.append((done, of)))
    assert done == BulkView(AT_ONCE + 6, AT_ONCE + 6)
    assert told == [(AT_ONCE, AT_ONCE + 6), (AT_ONCE + 6, AT_ONCE + 6)]
    assert app.bulk("terminate", status="paused") == BulkView(2 * AT_ONCE + 7, 2 * AT_ONCE + 7)
    assert rows(app.store, "SELECT count(*) FROM ready") == [(0,)]


def test_many_are_retried_but_not_those_that_were_or_would_fail_again(make_app: MakeApp) -> None:
    app = make_app(broken, flows=(FAIL,))
    with app.worker():
        for handle in app.start_many(
            "fail",
            [
                rhythm.Start("later", id="a"),
                rhythm.Start("later", id="b"),
                rhythm.Start("now", id="c"),
            ],
        ):
            with pytest.raises(rhythm.ExecutionFailed):
                handle.result(WAIT)
    done = app.bulk("retry", workflow="fail")
    assert (done.matched, done.changed, done.refused, list(done.reasons)) == (3, 2, 1, ["c"])
    assert "--from-start" in done.reasons["c"] or "from_start" in done.reasons["c"]
    assert app.bulk("retry", workflow="fail") == BulkView(1, 0, 1, done.reasons)


def population(make_app: MakeApp) -> Rhythm:
    """Executions of every kind: some can be paused, some resumed, retried and so on."""
    app = make_app(broken, flows=(HOLD, CLEAN, FAIL))
    with app.worker():
        for id, how in (("later", "later"), ("now", "now"), ("again", "later")):
            with pytest.raises(rhythm.ExecutionFailed):
                app.start_workflow("fail", how, id=id).result(WAIT)
        with pytest.raises(rhythm.ExecutionFailed):
            app.retry("again").result(WAIT)
        app.start_workflow("clean", id="cleaned")
        suspended(app, "cleaned")
        app.cancel("cleaned")
        until(lambda: "clean" in str(app.get("cleaned").awaiting))
        app.signal("cleaned", "clean")
        with pytest.raises(rhythm.ExecutionFailed):
            app.result("cleaned", WAIT)
        app.start_workflow("hold", id="done").signal("go")
        app.result("done", WAIT)
        app.start_workflow("hold", id="suspended")
        suspended(app, "suspended")
    app.start_many("hold", [rhythm.Start(id=id) for id in ("a", "paused", "asked", "ended")])
    app.queue_task("broken", id="task")
    app.queue_task("broken", id="ended-task")
    app.pause("paused")
    app.cancel("asked")
    app.terminate("ended")
    app.cancel("ended-task")
    return app


@pytest.mark.parametrize(
    ("action", "from_start", "changed"),
    [
        ("pause", False, {"a", "asked", "suspended"}),
        ("resume", False, {"paused"}),
        ("cancel", False, {"a", "paused", "suspended", "task"}),
        ("terminate", False, {"a", "asked", "paused", "suspended", "task"}),
        ("retry", False, {"later", "RETRY", "ended", "ended-task"}),
        ("retry", True, {"later", "now", "RETRY", "cleaned", "ended", "ended-task"}),
    ],
)
def test_a_dry_run_promises_what_then_happens(
    make_app: MakeApp, action: Any, from_start: bool, changed: set[str]
) -> None:
    app = population(make_app)
    asked = dict(all=True, from_start=from_start)
    before = {each.id: each for each in app.list(limit=100)}
    promised = app.bulk(action, dry_run=True, **asked)
    assert {each.id: each for each in app.list(limit=100)} == before
    done = app.bulk(action, **asked)
    assert done.changed == len(changed)
    assert promised == done.replace(changed=0)
    after = {each.id: each for each in app.list(limit=100)}
    made = {each.retry_of for id, each in after.items() if id not in before}
    touched = made or {id for id, each in after.items() if each != before[id]}
    (again,) = (id for id, each in before.items() if each.retry_of == "again")
    assert touched == {again if id == "RETRY" else id for id in changed}
    assert examine(app.store, 0.0) == []


def test_many_begin_at_the_beginning_in_the_corrected_text(make_app: MakeApp) -> None:
    app = make_app(flows=('workflow fix() {\n  throw "no"\n}',))
    with app.worker():
        for handle in app.start_many("fix", [1, 2]):
            with pytest.raises(rhythm.ExecutionFailed):
                handle.result(WAIT)
        app.register("workflow fix() {\n  return 2\n}")
        assert app.bulk("retry", all=True, from_start=True) == BulkView(2, 2)
        retries = [each for each in app.list() if each.retry_of]
        assert [app.result(each, WAIT) for each in retries] == [2, 2]
    assert app.bulk("retry", all=True, from_start=True) == BulkView(0)


def test_filters_choose(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD, CLEAN))
    queued = dict(queue="q", attributes={"customer": "ada", "vip": True, "size": 2, "note": None})
    app.start_workflow("hold", id="a", **queued)
    app.start_workflow("hold", id="b", attributes={"customer": "ada", "size": 2.5, "vip": 1})
    app.start_workflow("clean", id="c", queue="q")
    app.queue_task("somewhere", id="t")
    rows(app.store, "UPDATE executions SET created_at = created_at - 7200000000 WHERE id = 'b'")
    hour_ago = datetime.now(UTC) - timedelta(hours=1)

    def meant(**given: Any) -> int:
        return app.bulk("terminate", all=True, dry_run=True, **given).matched

    assert (
        meant(),
        meant(workflow="hold"),
        meant(queue="q"),
        meant(workflow="hold", queue="q"),
    ) == (4, 2, 2, 1)
    assert (
        meant(status="pending"),
        meant(status="paused"),
        meant(created_before=hour_ago),
        meant(created_after=hour_ago),
    ) == (4, 0, 1, 3)
    assert meant(created_after=hour_ago.isoformat(), workflow="hold") == 1
    found = [
        meant(attributes=wanted)
        for wanted in (
            {"customer": "ada"},
            {"vip": True},
            {"vip": 1},
            {"size": 2.0},
            {"note": None},
        )
    ]
    assert found == [2, 1, 1, 1, 1]
    assert [
        meant(attributes=wanted)
        for wanted in ({"customer": "ada", "vip": True}, {"gone": None}, {"customer": None})
    ] == [1, 0, 0]
    assert app.bulk("pause", all=True, dry_run=True).matched == 3  # a task is not paused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            dict(action="delete"),
            "the action is one of pause, resume, cancel, terminate, retry, not 'delete'",
        ),
        (dict(action="pause", from_start=True), "from_start is for retry, not for pause"),
        (dict(action="retry", status="completed"), "status is one of failed, cancelled to retry"),
        (
            dict(action="cancel", created_before="yesterday"),
            "created_before is a time with its zone",
        ),
        (
            dict(action="cancel", created_after=datetime(2026, 1, 1)),
            "created_after is a time with its zone",
        ),
        (
            dict(action="cancel", attributes={"a": [1]}),
            "attributes are compared with texts, numbers",
        ),
        (dict(action="cancel", attributes={"a": float("nan")}), "NaN"),
        (dict(action="cancel", limit=0), "limit is a whole number from 1 on"),
        (dict(action="cancel", workflow=""), "a workflow's name is a text"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    make_app: MakeApp, given: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, rhythm.InvalidPayload), match=message):
        make_app().bulk(**given)


# why


def why(app: Rhythm, id: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(reason.what, reason.commands) for reason in app.why(id).reasons]


def test_why_names_nobody_of_a_queue_out_of_scope(make_app: MakeApp) -> None:
    """Whoever starts something may name any queue: by that they learn no more of it than that
    nothing goes on there."""
    app = make_app(flows=(HOLD,))
    app.start_workflow("hold", id="h", queue="payroll")

    def told(*scope: str) -> list[tuple[str, tuple[str, ...]]]:
        return [(reason.what, reason.commands) for reason in app.why("h", scope=scope).reasons]

    assert told("order*")[0][0] == "it is ready, and no worker serves the queue `payroll`"
    app.store.workers.beat(BEAT.replace(queues=("payroll",)), {}, 60)
    assert told("order*") == [("it is ready in the queue `payroll`", ())]
    assert (
        told("order*", "pay*")
        == why(app, "h")
        == [("it is ready in the queue `payroll`; one worker serves it", ())]
    )
    app.pause_queue("payroll", "salaries are wrong", "ada")
    assert told("order*") == [("it is in the queue `payroll`, which was paused", ())]
    assert "ada: salaries are wrong" in told("pay*")[0][0]
    app.resume_queue("payroll")
    assert [claim.id for claim in app.store.claims.claim(BEAT.worker, ["payroll"], 1, 60.0)] == [
        "h"
    ]
    assert (told("order*"), told("pay*")) == (
        [("it is with a worker", ())],
        [(f"it is with worker {BEAT.worker}", ())],
    )


def test_why_says_that_no_worker_has_the_task(make_app: MakeApp) -> None:
    flow = 'workflow call(inputs) {\n  return await task("renamed", {})\n}\n'
    app = make_app(flows=(flow,))
    app.start_workflow("call", id="c")
    with app.worker():
        told = until(lambda: [each for each in why(app, "c") if "was put back" in each[0]])
    what = "task `renamed` (c.1) is not known to the worker that took it"
    commands = ("rhythm dev", "rhythm worker --app FILE")
    assert told == [(f"{what}: it was put back, and is tried again", commands)]


def test_why_says_that_nobody_serves_a_queue_or_that_it_is_paused(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    app.start_workflow("hold", id="h", queue="slow")
    app.start_workflow("hold", id="d", delay="1h")
    nobody = (
        "it is ready, and no worker serves the queue `slow`",
        ("rhythm worker --app FILE --queues slow",),
    )
    assert why(app, "h") == [nobody]
    app.store.workers.beat(BEAT.replace(queues=("slow",)), {}, 60)
    assert why(app, "h") == [("it is ready in the queue `slow`; one worker serves it", ())]
    app.pause_queue("slow", "the bank is down", "ada")
    paused = "it is in the queue `slow`, which was paused by ada: the bank is down"
    assert why(app, "h") == [(paused, ("rhythm queue resume slow",))]
    (delayed,) = app.why("d").reasons
    assert (delayed.what, delayed.at is not None) == ("it is to begin later", True)
    assert app.why("h").place == ""


def test_why_says_what_is_waited_for_and_shows_the_line(make_app: MakeApp) -> None:
    flow = """
workflow inner() { await event("paid", { where: { "order.id": 7 }, timeout: "1h" }) }
workflow main() {
  await all([signal("go"), sleep("2h"), workflow("inner"), task("nowhere", {}, { queue: "far" })])
}"""
    app = make_app(flows=(flow, HOLD))
    with app.worker():
        app.start_workflow("main", id="m")
        app.start_workflow("hold", id="h")
        suspended(app, "m", "h")
        until(lambda: app.get("m.4").awaiting)
    found = app.why("m")
    assert found.place.splitlines()[1:] == [
        (
            '4 │   await all([signal("go"), sleep("2h"), workflow("inner"), task("nowhere", '
            '{}, { queue: "far" })])'
        ),
        "  │         ^",
    ]
    assert found.status == "suspended"
    said = {reason.what: reason for reason in found.reasons}
    assert said["it waits for the signal `go`"].commands == ("rhythm signal m go JSON",)
    assert said["it sleeps"].until is not None
    assert said["it waits for inner (m.4), which is paused"].commands == ("rhythm why m.4",)
    event = said['it waits for the event `paid` with {"order.id":7}']
    assert (event.commands, event.until is not None) == (("rhythm publish paid JSON",), True)
    assert said["task `nowhere` (m.5) is ready, and no worker serves the queue `far`"].commands == (
        "rhythm worker --app FILE --queues far",
    )
    assert all(reason.since is not None for reason in found.reasons)
    assert why(app, "h") == [("it waits for the signal `go`", ("rhythm signal h go JSON",))]


def test_why_names_who_is_to_decide(make_app: MakeApp) -> None:
    app = make_app(
        flows=(
            'workflow ask() { await approval({ role: "boss", reason: "Order 7", timeout: "1d" }) }',
        )
    )
    with app.worker():
        app.start_workflow("ask", id="a")
        (reason,) = until(
            lambda: [reason for reason in app.why("a").reasons if "decide" in reason.what]
        )
    assert reason.what == "it waits for somebody with the role `boss` to decide: Order 7"
    assert (reason.commands, reason.until is not None) == (
        ("rhythm approve a.1 --by NAME", "rhythm reject a.1 --by NAME"),
        True,
    )


def test_why_tells_of_pauses_cancels_retries_and_ends(make_app: MakeApp) -> None:
    def flaky() -> None:
        raise ConnectionError("no route")

    app = make_app(
        flaky,
        flows=(
            HOLD,
            CLEAN,
            'workflow tries() { await task("flaky", {}, { retries: 5, backoff: 3600 }) }',
        ),
    )
    with app.worker():
        app.start_workflow("hold", id="h")
        app.start_workflow("clean", id="c")
        app.start_workflow("tries", id="t")
        suspended(app, "h", "c", "t")
        app.pause("h", "a break", "ada")
        app.cancel("c")
        until(
            lambda: [plan for plan in [app.get("c").awaiting] if plan and plan["name"] == "clean"]
        )
        assert why(app, "h")[0] == ("it was paused by ada: a break", ("rhythm resume h",))
        assert [what for what, _ in why(app, "c")] == [
            "it was asked to end, and has not finished that",
            "it waits for the signal `clean`",
        ]
        assert why(app, "c")[0][1] == ("rhythm terminate c",)
        (retry,) = until(lambda: [r for r in app.why("t").reasons if "tried again" in r.what])
        assert (retry.what, retry.until, retry.at is not None) == (
            "task `flaky` (t.1) failed in attempt 1 of 6 (ConnectionError: no route), and is tried "
            "again",
            None,
            True,
        )
        app.terminate("h")
    assert why(app, "h") == [
        ("it has ended: it was cancelled: it was terminated", ("rhythm retry h",))
    ]


def test_why_shows_where_a_body_failed_and_the_retry_that_works(make_app: MakeApp) -> None:
    app = make_app(broken, flows=(FAIL,))
    with app.worker():
        for id, inputs in (("body", "now"), ("task", None)):
            with pytest.raises(rhythm.ExecutionFailed):
                app.start_workflow("fail", inputs, id=id).result(WAIT)
    body, task = app.why("body"), app.why("task")
    assert body.place.splitlines()[1:] == [
        '2 │   if (inputs == "now") { throw "no" }',
        "  │                          ^",
    ]
    assert body.reasons[0].commands == ("rhythm retry body --from-start",)
    assert task.place.splitlines()[1] == '3 │   await task("broken")'
    assert task.reasons[0].commands == ("rhythm retry task",)


def test_why_names_the_worker_that_has_it(make_app: MakeApp) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go.wait(120)

    app = make_app(slow, flows=('workflow main() { await task("slow") }',))
    with app.worker("box"):
        app.start_workflow("main", id="m")
        assert begun.wait(120)
        found = until(
            lambda: [reason.what for reason in app.why("m").reasons if "box" in reason.what]
        )
        assert found[0].startswith(
            ("task `slow` is run by worker box", "task `slow` (m.1) is with worker box")
        )
        go.set()


def test_why_says_when_the_worker_that_has_it_is_dead_or_gone(make_app: MakeApp) -> None:
    app = make_app()
    app.queue_task("somewhere", id="t", retries=2)
    app.store.workers.beat(BEAT, {}, 60)
    app.store.claims.claim("box-1", ["default"], 1, 60)
    assert why(app, "t") == [("it is with worker box-1, attempt 1 of 3", ())]
    rows(app.store, "UPDATE worker_heartbeats SET beat_at = beat_at - 100000000")
    (dead,) = app.why("t").reasons
    assert dead.what.startswith(
        "it is with worker box-1, which has not been heard of for 100 s: others take over"
    )
    rows(app.store, "DELETE FROM worker_heartbeats")
    (gone,) = app.why("t").reasons
    assert gone.what.startswith(
        "it is with worker box-1, which has left; others take over when its claim expires"
    )
