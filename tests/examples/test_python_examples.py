"""The workflows of examples/python end as people expect: in one process, on both databases, and
when the process dies in the middle."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bench.samples import SAMPLES, table

from rhythm.app import Rhythm
from rhythm.authoring.workflow import default_workflows
from rhythm.errors import ExecutionFailed
from rhythm.worker.handlers import Task, default_tasks
from tests.app.conftest import url
from tests.python.engine import run_in_process
from tests.python.interrupted import PythonWorld, deaths
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, sqlite_in_memory

__all__ = ["url"]

EXAMPLES = Path(__file__).parents[2] / "examples"
# The file, the inputs, the signals, and how it ends: the result, or the class and text raised.
RUNS: list[tuple[str, dict[str, Any], list[tuple[str, Any]], Any]] = [
    ("transfer", {"source": "a", "target": "b", "amount": 5, "reference": "r"}, [],
     "transfer complete: W-a-5-r-withdrawal, D-b-5-r-deposit"),
    ("transfer", {"source": "a", "target": "closed", "amount": 5, "reference": "r"}, [],
     "task `deposit` failed: InvalidAccount: there is no account closed"),
    ("trip", {"customer": "ada", "wanted": {"flight": "LH1", "car": "Rome"}}, [],
     ["flight", "car"]),
    ("trip", {"customer": "ada", "wanted": {"flight": "LH1", "hotel": "full"}}, [],
     "task `book` failed: SoldOut: this hotel is fully booked"),
    ("agent", {"question": "weather?"}, [], "In Lisbon it is sunny."),
    ("poll", {"job": "j"}, [], {"status": "done", "attempts": 3}),
    ("batch", {"page_size": 20, "window_size": 30, "parts": 2}, [], 90),
    ("batch", {"window_size": 1}, [], "the window cannot be smaller than the number of parts"),
    ("inbox", {"name": "cleaner", "task": "rm"}, [], "agent cleaner: expired"),
    ("reminders", {"email": "a@b"}, [],
     [f"to a@b: it has been one {time}" for time in ("minute", "day", "week", "month")]),
    ("etl", {"pages": 3, "per_page": 4}, [], 12),
    ("fan_out", {"n": 20}, [], {"completed": 19, "failed": 1}),
    ("checkout", {}, [("payment", "paid")], "dispatched"),
    ("checkout", {}, [("payment", "declined")], "cancelled"),
    ("checkout", {}, [], "cancelled"),
    ("billing", {"customer": "ada", "price": 5.0, "periods": 2}, [],
     {"status": "finished", "receipts": ["ada:5.00:0", "ada:5.00:1"]}),
    ("billing", {"customer": "broke", "price": 5.0}, [],
     {"status": "suspended: Declined", "receipts": []}),
    ("billing", {"customer": "ada", "price": 5.0, "periods": 2}, [("change", {"price": 6.0})],
     {"status": "finished", "receipts": ["ada:5.00:0", "ada:6.00:1"]}),
    ("billing", {"customer": "ada", "price": 5.0}, [("change", {"cancel": True})],
     {"status": "cancelled", "receipts": ["ada:5.00:0"]}),
]  # fmt: skip
Load = Callable[[str], ModuleType]


def file_of(name: str) -> Path:
    beside = EXAMPLES / "python" / f"{name}.py"
    return beside if beside.exists() else EXAMPLES / f"{name}.py"


@pytest.fixture
def load() -> Iterator[Load]:
    """Imports an example as `--app` would; its tasks and workflows are gone afterwards."""
    tasks, known = dict(default_tasks._tasks), dict(default_workflows._workflows)

    def imported(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, file_of(name))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    yield imported
    for name in {run[0] for run in RUNS} | {"newsletter"}:
        sys.modules.pop(name, None)
    default_tasks._tasks, default_workflows._workflows = tasks, known


@pytest.mark.parametrize(("name", "inputs", "signals", "end"), RUNS)
def test_example_ends_as_expected(
    load: Load, name: str, inputs: dict[str, Any], signals: list[tuple[str, Any]], end: Any
) -> None:
    module = load(name)
    try:
        ended = run_in_process(getattr(module, name), inputs, signals)
    except ExecutionFailed as failed:
        ended = failed.error["message"]
    assert ended == end


def _run_interrupted(
    fail_at: int, mode: str, make_store: MakeStore,
    name: str, inputs: dict[str, Any], signals: list[tuple[str, Any]], end: Any,
) -> PythonWorld:  # fmt: skip
    workflows, tasks = default_workflows.values(), default_tasks
    world = PythonWorld(workflows, tasks, fail_at, mode, make_store)
    world.start(name, inputs)
    for signal, payload in signals:
        world.signal(0.0, signal, payload)
    ended = world.run()
    value = json.loads(ended.result or "null") if ended.status == "completed" else None
    assert (json.loads(ended.error)["message"] if ended.error else value) == end, (fail_at, mode)
    return world


@sweep
@pytest.mark.parametrize(
    ("name", "inputs", "signals", "end"), [run for run in RUNS if run[0] != "inbox"]
)
def test_example_that_is_interrupted_ends_the_same(
    load: Load, make_store: MakeStore,
    name: str, inputs: dict[str, Any], signals: list[tuple[str, Any]], end: Any,
) -> None:  # fmt: skip
    run = (name, inputs, signals, end)
    module = load(name)
    fresh = _resetting(module)
    calls = _run_interrupted(0, "", make_store, *run).store.calls
    few = 3 if make_store is sqlite_in_memory else 1
    for at, mode in deaths(calls, sampled(few, 20)):
        fresh()
        _run_interrupted(at, mode, make_store, *run)


def _resetting(module: ModuleType) -> Callable[[], None]:
    """Puts the shop of `checkout` back as it was: a run must not see what another one left."""

    def reset() -> None:
        if hasattr(module, "stock"):
            module.stock.update(widget=50)
            module.orders.clear()

    reset()
    return reset


def test_newsletter_says_goodbye_when_it_is_cancelled(load: Load, url: str) -> None:
    module, sent = load("newsletter"), list[str]()

    def send_email(to: str, message: str, count: int) -> None:
        sent.append(message)

    task = Task(send_email, "send_email", None, 0, None, None)
    with _app(url, [task], [module.newsletter]) as app, app.worker():
        handle = app.start(module.newsletter, "a@b")
        while not sent:
            pass
        handle.cancel()
        with pytest.raises(ExecutionFailed, match="cancelled"):
            handle.result()
    assert sent == ["Welcome!", "Sorry to see you go"]


def test_inbox_goes_on_when_somebody_approves(load: Load, url: str) -> None:
    module = load("inbox")
    with _app(url, [], [module.inbox]) as app, app.worker():
        handle = app.start(module.inbox, "cleaner", task="rm")
        while not (asked := app.approvals().items):
            pass
        assert asked[0].reason == "Should I proceed with task: rm?"
        app.approve(asked[0].id, by="ann")
        assert handle.result() == "agent successful"


def _app(url: str, tasks: list[Task[..., Any]], workflows: list[Any]) -> Rhythm:
    return Rhythm(
        url, (), tasks=tasks, workflows=workflows, environment={}, worker_poll_interval="20ms"
    )


def test_table_of_the_readme_has_the_lines_of_the_examples() -> None:
    """`python -m bench.samples` prints it anew."""
    assert table() in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_every_example_is_in_the_readme_and_has_a_test() -> None:
    names = {path.stem for path in (EXAMPLES / "python").glob("*.py")}
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(python/(\w+)\.py\)", text)) == names
    assert {run[0] for run in RUNS} | {"newsletter"} == names | {"billing"}
    assert len(SAMPLES) >= 10
