"""What a Python program can do with executions, on every database."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm, Start
from rhythm.store.open import open_store
from tests.app.conftest import MakeApp

WAIT = "120s"
ADD = 'workflow add(inputs) {\n  let x = await task("plus", { a: inputs.a, b: 1 })\n  return x\n}'
HOLD = 'workflow hold(inputs) {\n  let go = await signal("go")\n  return go\n}'


def plus(a: int, b: int) -> int:
    return a + b


# opening and registering


def test_schema_is_not_touched_without_auto_migrate_and_the_command_is_named(url: str) -> None:
    store = open_store(url)
    if store.schema.version() == 0:  # the PostgreSQL schema of the tests has been migrated long ago
        with pytest.raises(
            rhythm.StoreError, match="has no tables of Rhythm yet: run `rhythm migrate`"
        ):
            Rhythm(url, (), environment={}, auto_migrate=False)
        store.schema.migrate()
    Rhythm(url, (), environment={}, auto_migrate=False).close()
    store.close()


@pytest.mark.parametrize("auto_migrate", [True, False])
def test_schema_of_a_newer_rhythm_is_refused(tmp_path: Path, auto_migrate: bool) -> None:
    url = f"sqlite:///{tmp_path / 'rhythm.db'}"
    store: Any = open_store(url)
    store.schema.migrate()
    store.db.connection.execute("INSERT INTO schema_version VALUES (99, 'later', 0)")
    store.close()
    with pytest.raises(rhythm.StoreError, match="the database has 99; upgrade Rhythm"):
        Rhythm(url, (), environment={}, auto_migrate=auto_migrate)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://x", "no database can be opened with `mysql://x`; possible are"),
        ("sqlite:///no/such/folder/x.db", "there is no folder no/such/folder"),
        ("postgresql://nobody@127.0.0.1:1/x", "the PostgreSQL database did not answer"),
    ],
)
def test_database_that_cannot_be_opened_is_said_clearly(url: str, message: str) -> None:
    with pytest.raises(rhythm.StoreError, match=message):
        Rhythm(url, (), environment={})


def test_environment_and_folder_say_what_the_arguments_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workflows" / "more").mkdir(parents=True)
    (tmp_path / "workflows" / "more" / "add.flow").write_text(ADD)
    (tmp_path / "workflows" / "hold.flow").write_text(HOLD)
    with Rhythm(environment={"RHYTHM_DATABASE_URL": "sqlite:///mine.db"}) as app:
        assert [workflow.name for workflow in app.workflows()] == ["add", "hold"]
        assert app.workflows()[0].file.endswith("add.flow")
    assert (tmp_path / "mine.db").exists()


def test_all_problems_of_all_files_are_shown_and_nothing_is_registered(
    make_app: MakeApp, tmp_path: Path
) -> None:
    (tmp_path / "a.flow").write_text("workflow a(inputs) {\n  retrun 1\n}")
    (tmp_path / "b.flow").write_text("workflow b(inputs) {\n  return nobody\n}")
    (tmp_path / "good.flow").write_text(ADD)
    app = make_app()
    with pytest.raises(rhythm.FlowError) as raised:
        app.register(tmp_path)
    assert "a.flow:2" in str(raised.value)
    assert "b.flow:2" in str(raised.value)
    assert len(raised.value.diagnostics) >= 2
    assert app.workflows() == []


def test_two_workflows_of_one_name_are_refused_with_both_places(
    make_app: MakeApp, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.flow").write_text(f"\n{ADD}" if name == "two" else ADD)
    with pytest.raises(
        rhythm.FlowError, match=r"two workflows are called `add`: .*one.flow:1 and .*two.flow:2"
    ):
        make_app().register(tmp_path / "one.flow", tmp_path / "two.flow")


@pytest.mark.parametrize(
    ("source", "message"),
    [("nowhere.flow", "there is no file or folder nowhere.flow"), ("tests", "")],
)
def test_path_without_workflows_says_so_or_registers_nothing(
    make_app: MakeApp, tmp_path: Path, source: str, message: str
) -> None:
    app = make_app()
    if message:
        with pytest.raises(rhythm.FlowError, match=message):
            app.register(source)
    else:
        assert app.register(tmp_path) == ()


# starting and results


def test_workflow_runs_in_a_worker_of_this_process_and_its_result_comes_back(
    make_app: MakeApp,
) -> None:
    app = make_app(plus, flows=(ADD,))
    with app.worker():
        handle = app.start_workflow("add", {"a": 1})
        assert (str(handle), handle.result(WAIT), handle.status()) == (handle.id, 2, "completed")
    assert app.run("add", {"a": 2}) == 3
    assert handle.get().inputs == {"a": 1}
    assert handle.get().as_json()["status"] == "completed"


def test_worker_takes_what_other_processes_start(make_app: MakeApp) -> None:
    here, there = make_app(plus, flows=(ADD,)), make_app()
    with here.worker():
        assert there.start_workflow("add", {"a": 1}).result(WAIT) == 2


def test_same_id_or_key_is_the_same_execution_whatever_the_inputs(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD, ADD))
    first = app.start_workflow("hold", 1, id="once", idempotency_key="k")
    for again in (
        app.start_workflow("hold", 2, id="once"),
        app.start_workflow("hold", 3, idempotency_key="k"),
    ):
        assert (again.id, again.created, again.get().inputs) == ("once", False, 1)
    assert first.created
    assert app.start_workflow("add", 3, idempotency_key="k").created  # a key is the workflow's own


def test_fail_starts_nothing_of_the_call_and_names_who_has_it(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    app.start_workflow("hold", id="once", idempotency_key="k")
    with pytest.raises(
        rhythm.Conflict, match="the id 'once' belongs to an execution that was started before: once"
    ):
        app.start_workflow("hold", id="once", on_conflict="fail")
    with pytest.raises(
        rhythm.Conflict, match="the idempotency key 'k' of `hold` belongs to"
    ) as raised:
        app.start_many("hold", [Start(id="new"), Start(idempotency_key="k")], on_conflict="fail")
    assert raised.value.id == "once"
    assert [execution.id for execution in app.list()] == ["once"]


@pytest.mark.parametrize("on_conflict", ["return", "fail", "replace"])
def test_id_of_another_workflow_is_always_a_conflict(make_app: MakeApp, on_conflict: Any) -> None:
    app = make_app(flows=(HOLD, ADD))
    app.start_workflow("hold", id="once")
    with pytest.raises(
        rhythm.Conflict, match="'once' is the id of an execution of something else than `add`"
    ):
        app.start_workflow("add", id="once", idempotency_key="k", on_conflict=on_conflict)


def test_replace_cancels_whoever_has_the_key_and_starts_anew(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    old = app.start_workflow("hold", 1, idempotency_key="k")
    new = app.start_workflow("hold", 2, idempotency_key="k", on_conflict="replace")
    assert (new.created, new.id != old.id) == (True, True)
    assert app.start_workflow("hold", 3, idempotency_key="k").id == new.id
    with app.worker():
        new.signal("go", "on")
        assert new.result(WAIT) == "on"
        with pytest.raises(rhythm.ExecutionFailed, match="cancelled"):
            old.result(WAIT)
    # one that has ended is left as it is
    assert app.start_workflow("hold", 4, idempotency_key="k", on_conflict="replace").created
    assert new.status() == "completed"


def test_of_many_who_replace_at_once_one_is_left(make_app: MakeApp) -> None:
    apps = [make_app(flows=(HOLD,)) for _ in range(4)]
    apps[0].start_workflow("hold", idempotency_key="k")
    start = threading.Barrier(len(apps))
    problems: list[BaseException] = []

    def replace(app: Rhythm) -> None:
        start.wait()
        try:
            for _ in range(5):
                app.start_workflow("hold", idempotency_key="k", on_conflict="replace")
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=replace, args=(app,)) for app in apps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(apps[0].list()) == 1 + 5 * len(apps)
    assert (
        len([execution for execution in apps[0].list() if execution.cancel_requested_at is None])
        == 1
    )


def test_many_are_started_in_one_transaction(make_app: MakeApp) -> None:
    app = make_app(plus, flows=(ADD,))
    handles = app.start_many("add", [{"a": 1}, Start({"a": 2}, id="two", priority=5), {"a": 3}])
    assert handles[1].id == "two"
    with app.worker():
        assert [handle.result(WAIT) for handle in handles] == [2, 3, 4]
    with pytest.raises(rhythm.InvalidPayload):
        app.start_many("add", [{"a": 1}, {"a": object()}])
    assert len(app.list()) == 3


def test_ten_thousand_starts_are_a_handful_of_statements(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app: Any = make_app(flows=(HOLD,))
    counted: list[int] = []
    # PostgreSQL: on SQLite no statement is a way to somewhere else
    if hasattr(app.store.db, "query"):
        ask = app.store.db.query
        monkeypatch.setattr(app.store.db, "query", lambda *args: counted.append(1) or ask(*args))
    assert len(app.start_many("hold", range(10_000))) == 10_000
    assert len(app.queue_many("plus", range(10_000))) == 10_000
    assert len(counted) < 15


def test_many_tasks_are_queued_in_one_transaction_all_or_none(make_app: MakeApp) -> None:
    app = make_app(plus)
    handles = app.queue_many(
        "plus",
        [{"a": 1, "b": 1}, Start({"a": 2, "b": 1}, id="two", queue="other"), {"a": 3, "b": 1}],
        retries=4,
        timeout="1m",
    )
    assert [handle.get().max_attempts for handle in handles] == [5, 5, 5]
    assert [handle.get().queue for handle in handles] == ["default", "other", "default"]
    with app.worker(queues=["default", "other"]):
        assert [handle.result(WAIT) for handle in handles] == [2, 3, 4]
    with pytest.raises(rhythm.InvalidPayload):
        app.queue_many("plus", [{"a": 1, "b": 1}, {"a": object()}])
    with pytest.raises(rhythm.Conflict, match="the id 'two' belongs to"):
        app.queue_many(
            "plus", [{"a": 1, "b": 1}, Start({"a": 2, "b": 1}, id="two")], on_conflict="fail"
        )
    assert len(app.list()) == 3


def test_delay_queue_priority_and_attributes_are_kept(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    handle = app.start_workflow(
        "hold", queue="slow", priority=3, delay="1h", attributes={"customer": "A1"}
    )
    assert (handle.get().queue, handle.get().attributes) == ("slow", {"customer": "A1"})
    assert app.store.claims.claim("w", ["slow"], 10, 10.0) == []


def test_task_on_its_own_is_queued_and_run(make_app: MakeApp) -> None:
    tries: list[int] = []

    def unsteady(x: int) -> int:
        tries.append(x)
        if len(tries) < 3:
            raise ConnectionError("no answer")
        return x * 2

    app = make_app(unsteady)
    with app.worker():
        handle = app.queue_task("unsteady", {"x": 4}, retries=2, idempotency_key="k")
        assert (
            app.queue_task("unsteady", {"x": 5}, idempotency_key="k").id,
            handle.get().type,
        ) == (handle.id, "task")
        assert handle.result(WAIT) == 8
    assert (tries, handle.get().attempt) == ([4, 4, 4], 3)


# asking and changing


def test_pages_follow_each_other_without_gap_also_for_ids_of_ones_own(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD, ADD))
    started = [app.start_workflow("hold", id=id).id for id in ("m", "z", "a", "k", "b")]
    app.start_workflow("add", id="other")
    seen, cursor = list[str](), None
    while True:
        page = app.list(workflow="hold", limit=2, cursor=cursor)
        seen += [execution.id for execution in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == started[::-1]
    assert [execution.id for execution in app.list(status="pending", limit=1)] == ["other"]


def test_signal_is_sent_once_for_each_signal_id_of_an_execution(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    one, two = app.start_workflow("hold"), app.start_workflow("hold")
    assert (
        one.signal("go", 1, signal_id="s"),
        one.signal("go", 2, signal_id="s"),
        two.signal("go", 3, signal_id="s"),
    ) == (
        True,
        False,
        True,
    )
    with app.worker():
        assert (one.result(WAIT), two.result(WAIT)) == (1, 3)
    with pytest.raises(rhythm.NotDelivered, match="it has ended"):
        one.signal("go")


def test_paused_workflow_waits_and_goes_on_and_a_cancelled_one_ends(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    handle, other = app.start_workflow("hold"), app.start_workflow("hold")
    assert app.pause(handle.id, reason="lunch")
    handle.signal("go", 1)
    with app.worker():
        assert other.cancel()
        with pytest.raises(rhythm.ExecutionFailed, match="cancelled"):
            other.result(WAIT)
        with pytest.raises(rhythm.ResultTimeout, match="it is paused; `resume` lets it go on"):
            handle.result(0.001)
        assert app.resume(handle.id)
        assert handle.result(WAIT) == 1
    assert (app.pause(handle.id), app.resume(handle.id), app.cancel(handle.id)) == (
        False,
        False,
        False,
    )


def test_result_that_does_not_come_in_time_says_why(make_app: MakeApp) -> None:
    handle = make_app(flows=(HOLD,)).start_workflow("hold", id="mine")
    with pytest.raises(
        TimeoutError,
        match=(
            r"mine \(`hold`\) had not ended after 1ms: it is pending; does a worker serve the "
            r"queue 'default'\?"
        ),
    ):
        handle.result(timeout="1ms")


def test_trace_tells_what_happened_below_too_in_the_order_of_time(make_app: MakeApp) -> None:
    outer = 'workflow outer(inputs) {\n  let x = await workflow("add", { a: 4 })\n  return x\n}'
    app = make_app(plus, flows=(ADD, outer))
    with app.worker():
        handle = app.start_workflow("outer")
        assert handle.result(WAIT) == 5
    steps = app.trace(handle.id)
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    told = [(step.what, step.name) for step in steps]
    assert told[0] == ("started", "outer")
    assert told[-1] == ("completed", "outer")
    assert {
        ("started", "plus"),
        ("completed", "plus"),
        ("started", "add"),
        ("completed", "add"),
    } <= set(told)
    assert [step.detail for step in steps if step.what == "completed"] == [5, 5, 5]
    assert {step.line for step in steps if step.what == "turn"} == {2}


def test_whatever_gives_work_wakes_the_workers_of_this_process(make_app: MakeApp) -> None:
    app: Any = make_app(flows=(HOLD,))
    handle = app.start_workflow("hold")
    ended = app.queue_task("nobody")
    ended.cancel()
    acts = (
        lambda: app.start_workflow("hold"),
        lambda: app.queue_task("nobody"),
        lambda: handle.signal("go"),
        lambda: app.pause(handle.id),
        lambda: app.resume(handle.id),
        lambda: handle.cancel(),
        lambda: app.retry(ended.id),
        lambda: app.resume_queue("default"),
    )
    for number, act in enumerate(acts):
        woken: list[int] = []
        app.running[:] = [
            SimpleNamespace(wake=lambda woken=woken: woken.append(1), stop=lambda: None)
        ]
        act()
        assert woken == [1], number


# wrong calls


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (
            lambda app: app.start_workflow("hodl"),
            rhythm.UnknownWorkflow,
            r"there is no workflow `hodl`; did you mean `hold`\?",
        ),
        (
            lambda app: app.start_workflow("something_else"),
            rhythm.UnknownWorkflow,
            "registered are hold",
        ),
        (lambda app: app.start_workflow("hold", object()), rhythm.InvalidPayload, "inputs"),
        (
            lambda app: app.start_workflow("hold", id="a.b"),
            rhythm.InvalidId,
            "'a.b' cannot be an id: an id contains no dot",
        ),
        (
            lambda app: app.start_workflow("hold", id=5),
            rhythm.InvalidId,
            "5 cannot be an id: an id is a text",
        ),
        (
            lambda app: app.start_workflow("hold", idempotency_key=""),
            ValueError,
            "an idempotency_key is a text of 1 to 200",
        ),
        (lambda app: app.start_workflow("hold", delay="soon"), ValueError, "is not a duration"),
        (
            lambda app: app.start_workflow("hold", priority=1.5),
            ValueError,
            "priority is a whole number",
        ),
        (
            lambda app: app.start_workflow("hold", on_conflict="perhaps"),
            ValueError,
            "on_conflict is one of return, fail, replace",
        ),
        (
            lambda app: app.start_workflow("hold", on_conflict="replace"),
            ValueError,
            "needs an idempotency_key",
        ),
        (lambda app: app.list(status="odd"), ValueError, "status is one of pending"),
        (lambda app: app.list(limit=0), ValueError, "limit is a whole number from 1 on"),
        (lambda app: app.list(cursor="x"), ValueError, "'x' is not the cursor of a page"),
        (lambda app: app.get("nobody"), rhythm.UnknownExecution, "there is no execution 'nobody'"),
        (
            lambda app: app.result("nobody"),
            rhythm.UnknownExecution,
            "there is no execution 'nobody'",
        ),
        (
            lambda app: app.signal("nobody", "go"),
            rhythm.UnknownExecution,
            "there is no execution 'nobody'",
        ),
        (
            lambda app: app.cancel("nobody"),
            rhythm.UnknownExecution,
            "there is no execution 'nobody'",
        ),
        (
            lambda app: app.pause("nobody"),
            rhythm.UnknownExecution,
            "there is no execution 'nobody'",
        ),
        (
            lambda app: app.trace("nobody"),
            rhythm.UnknownExecution,
            "there is no execution 'nobody'",
        ),
        (lambda app: app.queue_task("", {}), ValueError, "a task's name is a text"),
    ],
)
def test_wrong_call_says_what_is_wrong(act: Any, error: type[Exception], message: str) -> None:
    with Rhythm("sqlite://:memory:", (), tasks={}, environment={}) as app:
        app.register(HOLD)
        with pytest.raises(error, match=message):
            act(app)


def test_long_list_of_what_is_registered_says_how_many_more_there_are() -> None:
    with Rhythm("sqlite://:memory:", (), tasks={}, environment={}) as app:
        app.register(*(f"workflow w{n:02}(inputs) {{ return 1 }}" for n in range(12)))
        with pytest.raises(
            rhythm.UnknownWorkflow, match=r"registered are w00, .*, w09 and 2 more$"
        ):
            app.start_workflow("something_else")


def test_log_and_progress_of_a_workflow_are_in_the_log_of_its_worker(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(
        flows=(
            (
                'workflow tells(inputs) {\n  log("half of it", { n: 1 })\n  progress(0.5, "so '
                'far")\n  return 1\n}'
            ),
        )
    )
    with caplog.at_level("DEBUG", "rhythm.worker"), app.worker():
        app.start_workflow("tells").result(WAIT)
    told = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == "rhythm.worker"
    ]
    assert any(
        level == "DEBUG" and message.startswith("log ") and "half of it" in message
        for level, message in told
    )
    assert any(
        level == "DEBUG" and message.startswith("progress ") and "50% so far" in message
        for level, message in told
    )


def set_patience(*stores: Any, milliseconds: int) -> None:
    for store in stores:
        with store.db.lock:
            store.db.connection.execute(f"PRAGMA busy_timeout = {milliseconds}")


def test_worker_outlives_a_database_that_does_not_answer_for_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app: Any = Rhythm(
        f"sqlite:///{tmp_path / 'a.db'}", (), tasks={}, environment={}, worker_poll_interval="1ms"
    )
    app.register("workflow quick(inputs) {\n  return inputs\n}")
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    with app:
        handle, worker = app.start_workflow("quick", 1), app.worker()
        set_patience(app.store, worker._store, milliseconds=1)
        other.execute("BEGIN IMMEDIATE")
        worker.start()
        with pytest.raises(
            rhythm.StoreError,
            match=(
                r"did not answer: database is locked; another process or connection .* "
                r"`connection=`"
            ),
        ):
            app.start_workflow("quick", 2)
        while "database is locked" not in caplog.text:
            pass
        other.execute("ROLLBACK")
        other.close()
        set_patience(app.store, worker._store, milliseconds=30_000)
        assert (handle.result(WAIT), app.start_workflow("quick", 3).result(WAIT)) == (1, 3)
        worker.stop()


def test_worker_that_meets_a_bug_says_so_when_it_is_left(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app()

    def break_it() -> None:
        with app.worker() as worker:
            worker._services.run = lambda busy: 1 / 0  # type: ignore[assignment, method-assign, return-value]  # a bug, for once
            worker._thread.join()

    with pytest.raises(ZeroDivisionError):
        break_it()
    assert "the worker has stopped" in caplog.text


def test_what_ended_longer_ago_than_the_retention_goes(make_app: MakeApp) -> None:
    app = make_app(flows=("workflow quick { return 1 }",))
    with app.worker():
        app.start_workflow("quick").result(WAIT)
    later = make_app(retention="1ms")
    with later.worker():  # the first pass of its services
        while later.list():
            pass


def test_task_cannot_be_paused(make_app: MakeApp) -> None:
    app = make_app()
    task = app.queue_task("later", {})
    for act in (app.pause, app.resume):
        with pytest.raises(ValueError, match=r"is a task: only workflows are (paused|resumed)"):
            act(task.id)


def test_what_a_worker_holds_is_given_back_before_anything_else_ends(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be cut short at any moment from then on."""
    begun, may_end = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        may_end.wait()

    app = make_app(wait)
    worker, done = app.worker(), []
    parts: list[tuple[Any, str]] = [
        (worker._store.claims, "release"),
        (worker._store.workers, "leave"),
        (worker._services, "close"),
        (worker._handlers, "close"),
        (worker._store, "close"),
    ]
    for owner, name in parts:
        monkeypatch.setattr(
            owner, name, _noted(getattr(owner, name), f"{type(owner).__name__}.{name}", done)
        )
    worker.start()
    app.queue_task("wait")
    assert begun.wait(120)
    worker.stop(grace=0)
    may_end.set()
    assert (done[0].endswith("Claims.release"), len(done)) == (True, len(parts))


def _noted(call: Callable[..., Any], name: str, done: list[str]) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        done.append(name)
        return call(*args, **kwargs)

    return noted
