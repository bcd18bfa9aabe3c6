"""What executions say, found again: by Python, from the root, in pages, in every test kit."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.errors import UnknownExecution
from tests.app.conftest import MakeApp
from tests.app.test_operating import until

EVIL = "\x1b[31m\x9b\u202e <b>" + "x" * 1_000_000
FLOW = """
workflow main(inputs) {
  log("begin", { order: 7 })
  let a = await task("work", { n: 1 })
  progress(0.5, "half")
  let b = await workflow("inner", { n: 2 })
  log("end", { level: "warning" })
  return [a, b]
}
workflow inner(inputs) {
  log("inside")
  return await task("work", { n: inputs.n })
}
"""


def work(n: int) -> int:
    now = rhythm.current()
    now.log.info("working on %d", n, extra={"n": n})
    now.heartbeat({"done": n})
    print("printed", n)
    return n


def said(app: Rhythm, id: str, **how: Any) -> list[str]:
    return [f"{line.name}: {line.in_words()}" for line in app.logs(id, **how)]


def run(app: Rhythm, inputs: Any = None, name: str = "main") -> str:
    handle = app.start_workflow(name, inputs)
    with app.worker():
        handle.result(30)
    return handle.id


def test_everything_that_was_said_is_found_from_the_root(make_app: MakeApp) -> None:
    app = make_app(work, flows=(FLOW,))
    id = run(app)
    # A worker that was stopped has written everything.
    assert said(app, id) == [
        "main: begin", "work: working on 1", "work: ", "main: 50% half",
        "inner: inside", "work: working on 2", "work: ", "main: end",
    ]  # fmt: skip
    assert said(app, id, level="warning") == ["main: end"]
    assert said(app, f"{id}.2") == ["inner: inside", "work: working on 2", "work: "]
    first, *_ = app.logs(id)
    assert (first.kind, first.level, first.fields, first.attempt) == (
        "log",
        "info",
        {"order": 7},
        0,
    )
    beat = app.logs(id)[2]
    assert (beat.kind, beat.fields, beat.attempt) == ("heartbeat", {"done": 1}, 1)
    progress = app.details.progress(id)
    assert progress is not None
    assert progress.fields == {"done": 2}
    assert app.details.progress(f"{id}.1") == beat


def test_pages_go_on_after_a_position(make_app: MakeApp) -> None:
    app = make_app(work, flows=(FLOW,))
    id = run(app)
    all_of_them, pages, after = list(app.logs(id)), [], None
    while True:
        page = app.logs(id, after, 3)
        pages += [*page]
        after = page.cursor
        if after is None:
            break
    assert pages == all_of_them
    assert list(app.logs(id, all_of_them[4].position)) == all_of_them[5:]
    for wrong in (-1, "x", "1" * 30):
        with pytest.raises(ValueError, match="is not the cursor"):
            app.logs(id, wrong)
    with pytest.raises(ValueError, match="level is one of"):
        app.logs(id, level="loud")
    with pytest.raises(UnknownExecution):
        app.logs("nobody")
    assert asyncio.run(app.aio.logs(id, limit=1)).items == tuple(all_of_them[:1])


@pytest.mark.parametrize(
    ("settings", "count"), [({"log_level": "off"}, 0), ({"log_level": "error"}, 3)]
)
def test_level_decides_what_is_kept(
    make_app: MakeApp, settings: dict[str, Any], count: int
) -> None:
    app = make_app(work, flows=(FLOW,), **settings)
    assert len(app.logs(run(app))) == count  # progress is kept unless it is off


def test_prints_are_kept_if_asked_for(
    make_app: MakeApp, capsys: pytest.CaptureFixture[str]
) -> None:
    app = make_app(work, flows=(FLOW,), log_prints=True)
    assert "work: printed 1" in said(app, run(app))
    assert "printed 1" in capsys.readouterr().out


def test_lines_are_there_while_the_task_still_runs_and_after_its_worker_was_cut_off(
    make_app: MakeApp,
) -> None:
    go = threading.Event()

    def slow() -> None:
        rhythm.current().log.warning("here")
        assert go.wait(30)

    app = make_app(slow, flows=('workflow waits() {\n  await task("slow")\n}',))
    handle = app.start_workflow("waits")
    with app.worker():
        until(lambda: len(app.logs(handle.id)) == 1)
        go.set()
        handle.result(30)
    assert said(app, handle.id) == ["slow: here"]


def test_hostile_lines_are_kept_as_text_that_was_cut(make_app: MakeApp) -> None:
    def evil(text: str) -> None:
        rhythm.current().log.error(text, extra={text[:9]: text})

    flow = 'workflow main(inputs) {\n  log(inputs.t, { t: inputs.t })\n  await task("evil", { text: inputs.t })\n}'
    app = make_app(evil, flows=(flow,))
    id = run(app, {"t": EVIL[:100_000]})
    mine, tasks = app.logs(id)
    assert mine.message.startswith("\x1b[31m\x9b\u202e <b>xxx")
    assert mine.message.endswith("xxx… (100,000 characters)")
    assert mine.fields == {"…": "100,016 bytes"}
    assert tasks.message == mine.message


def test_run_without_a_worker_keeps_lines_too(make_app: MakeApp) -> None:
    app = make_app(work, flows=(FLOW,))
    app.run("main", id="w")
    assert len(app.logs("w")) == 8


def test_no_line_needs_no_connection_and_no_row(make_app: MakeApp) -> None:
    app = make_app(work, flows=("workflow silent() {\n  return 1\n}",))
    handle = app.start_workflow("silent")
    with app.worker() as worker:
        handle.result(30)
        assert worker._line_writer is not None
        assert worker._line_writer._store is None
    assert app.logs(handle.id).items == ()


def counts() -> str:
    """The first attempt counts until it is killed; the next one says three lines, and ends."""
    now = rhythm.current()
    for n in itertools.count():
        now.log.info("%d", n)
        now.heartbeat({"n": n})
        if now.attempt > 1 and n == 2:
            return "done"
        threading.Event().wait(0.002)
    raise AssertionError("it counts until it is killed")


WORKER = """
import sys, threading
from rhythm.app import Rhythm
from rhythm.worker.handlers import Task
from tests.app.test_logs import counts
app = Rhythm(sys.argv[1], (), tasks=[Task(counts, "counts", "default")], environment={})
with app.worker():
    threading.Event().wait(120)
"""


def test_killed_worker_leaves_what_it_has_written_in_order_and_nothing_twice(
    make_app: MakeApp, url: str
) -> None:
    app = make_app(counts)
    handle = app.queue_task("counts")
    worker = subprocess.Popen([sys.executable, "-c", WORKER, url], cwd=Path(__file__).parents[2])
    try:
        until(lambda: len(app.logs(handle.id)) > 60)
    finally:
        worker.kill()
        worker.wait()
    with app.worker():
        assert handle.result(60) == "done"
    lines = app.logs(handle.id, limit=1000)
    logged = [(line.attempt, int(line.message)) for line in lines if line.kind == "log"]
    first = [n for attempt, n in logged if attempt == 1]
    assert len(first) > 20
    assert logged == [*((1, n) for n in range(len(first))), (2, 0), (2, 1), (2, 2)]
    assert len({line.worker for line in lines}) == 2
    beats = [line.fields["n"] for line in lines if line.kind == "heartbeat" and line.attempt == 2]
    assert beats == [0, 2]
    assert list(app.store.operating.check(0.0, lambda evidence: ())) == []
