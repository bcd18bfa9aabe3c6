"""The parts of `rhythm dev`: its lines, the files that it watches, the commands that it suggests."""

from __future__ import annotations

import io
import logging
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rhythm.cli.dev import lines as module
from rhythm.cli.dev.examples import Startable, arguments, examples
from rhythm.cli.dev.lines import MAX_LINES, Flood, Lines, short_id
from rhythm.cli.dev.watching import FileChanges, Watched, loaded_files, walk
from rhythm.cli.inputs import read_inputs, read_pair
from rhythm.engine.declared_inputs import declared_inputs
from rhythm.ids import encode_id
from rhythm.ir.input_schema import check_inputs
from rhythm.worker.current import Current
from rhythm.worker.logs import EventLogger
from tests.cli.test_hostile import EVIL, harmless


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[EventLogger, io.StringIO, Clock]]:
    """A worker's log events, what is printed of them, and the clock of the lines."""
    clock, out = Clock(), io.StringIO()
    monkeypatch.setattr(module.time, "monotonic", clock)
    log = logging.getLogger("rhythm.worker")
    monkeypatch.setattr(log, "handlers", [Lines(out)])
    monkeypatch.setattr(log, "propagate", False)
    before = log.level
    log.setLevel(logging.DEBUG)
    yield EventLogger("dev-1"), out, clock
    log.setLevel(before)


def printed(out: io.StringIO) -> list[str]:
    """The lines without their times."""
    return [line[10:] for line in out.getvalue().splitlines()]


def test_step_of_a_child_is_indented_and_a_task_belongs_to_its_workflow(said: Any) -> None:
    log, out, _ = said
    log("start", "a", "order")
    log("task", "a.1", "charge()")
    log("start", "a.2", "child")
    log("task", "a.2.1", "ship()")
    log("completed", "a.2", "")
    log("completed", "a", "")
    assert printed(out) == [
        "a             ▶ order",
        "a             → charge()",
        "a.2             ▶ child",
        "a.2             → ship()",
        "a.2             ■ completed child",
        "a             ■ completed order",
    ]


def test_execution_that_is_woken_for_nothing_says_its_wait_once(said: Any) -> None:
    log, out, _ = said
    for _ in range(3):
        log("wait", "a", "signal go")
    log("signal", "a", "go = 1")
    log("wait", "a", "signal go")
    assert printed(out) == [
        "a             … waits for signal go  (rhythm signal a go)",
        "a             ✉ signal go = 1",
        "a             … waits for signal go  (rhythm signal a go)",
    ]


def test_failure_has_its_traceback_and_the_command_that_helps(said: Any) -> None:
    log, out, _ = said
    log("failure", "a.1", "charge(): ValueError: no\napp.py:3 in charge\napp.py:9 in inner")
    log("failed", "a", "task `charge` failed")
    log("failed", "b.1", "a child whose parent says it, too")
    assert [line.strip() for line in printed(out)] == [
        "a             ✗ charge(): ValueError: no",
        "app.py:3 in charge",
        "app.py:9 in inner",
        "a             ■ failed task `charge` failed  (rhythm why a)",
        "b.1             ■ failed a child whose parent says it, too",
    ]


def test_what_a_task_logs_belongs_to_its_workflow(
    said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, _ = said
    log = logging.getLogger("rhythm.task.charge")
    monkeypatch.setattr(log, "handlers", logging.getLogger("rhythm.worker").handlers)
    monkeypatch.setattr(log, "propagate", False)
    Current("a.1", "charge", 1).log.warning("charging %s", 5)
    assert printed(out) == ["a             · charging 5"]


def test_problem_of_the_worker_is_shown_and_its_everyday_life_is_not(said: Any) -> None:
    log, out, _ = said
    log("worker_started", "", "it takes work")
    log("handler_missing", "a.1", "task `x` has no handler here")
    assert printed(out) == ["a.1             ! handler_missing: task `x` has no handler here"]


def test_nothing_that_a_terminal_obeys_is_printed(said: Any) -> None:
    log, out, _ = said
    for what in ("start", "task", "wait", "failure", "failed", "handler_missing"):
        log(what, EVIL, EVIL)
    assert harmless(out.getvalue())


def test_what_nobody_can_read_is_counted_and_problems_have_a_number_of_their_own(said: Any) -> None:
    log, out, clock = said
    for n in range(1000):
        log("task", f"a.{n}", "t()")
    log("retry", "a.1", "t(): again in 1s")
    assert len(printed(out)) == MAX_LINES + 1
    clock.now += 1.0
    log("done", "a.1", "t() = 1")
    assert printed(out)[-2:] == ["… 960 more: 960 tasks began", "a             ✓ t() = 1"]


def test_closed_terminal_is_noticed_and_disturbs_nobody() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    lines = Lines(Closed())
    lines.say("hello")
    assert lines.unread


def test_executions_that_wait_for_ever_are_forgotten(
    said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, _, _ = said
    monkeypatch.setattr(module, "MAX_REMEMBERED", 3)
    handlers = logging.getLogger("rhythm.worker").handlers  # with those of pytest
    lines = next(each for each in handlers if isinstance(each, Lines))
    for n in range(10):
        log("start", f"a{n}", "order")
        log("wait", f"a{n}", "signal go")
    assert (len(lines._labels), len(lines._waits)) == (3, 3)


def test_flood_says_nothing_before_its_second_is_over() -> None:
    clock = Clock()
    flood = Flood(clock)
    admitted = [flood.admits("task", False) for _ in range(MAX_LINES + 5)]
    assert (admitted.count(True), flood.over()) == (MAX_LINES, "")
    clock.now += 1.0
    assert (flood.over(), flood.over()) == ("5 more: 5 tasks began", "")
    assert flood.admits("task", False)


def test_id_is_short_where_rhythm_made_it() -> None:
    made = encode_id(1_700_000_000_000, 12345)
    assert short_id(f"{made}.3.1") == f"{made[-6:]}.3.1"
    assert short_id("my-own-id-which-is-long") == "my-own-id-which-is-long"


# watching


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("app.py", "flows/a.flow", "flows/b.steps.json", "flows/c.json", "lib/x.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    for name in (".hidden", "node_modules", "env"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_text("1")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_walk_leaves_out_what_is_not_the_projects_own(project: Path) -> None:
    found = sorted(walk(".", (".py", ".flow", ".steps.json")))
    assert found == ["app.py", "flows/a.flow", "flows/b.steps.json", "lib/x.py"]


def changed(changes: FileChanges) -> list[str]:
    """What has changed, and stays as it is."""
    return changes.changed() or changes.changed()


def save(name: str, text: str) -> None:
    before = os.stat(name).st_mtime_ns if os.path.exists(name) else 0
    Path(name).write_text(text)
    os.utime(name, ns=(before + 1, before + 1))


def test_changed_new_and_deleted_files_are_found_once_nobody_writes_to_them(project: Path) -> None:
    changes = FileChanges(Watched(("app.py",), ("flows",)))
    assert changed(changes) == []
    save("app.py", "2")
    assert changes.changed() == []  # it may be written just now
    assert changes.changed() == ["app.py"]
    save("flows/new.flow", "1")
    os.unlink("flows/a.flow")
    save("lib/x.py", "2")
    assert changed(changes) == ["flows/a.flow", "flows/new.flow"]
    assert changed(changes) == []


def test_change_is_not_lost_when_other_files_are_watched_meanwhile(project: Path) -> None:
    changes = FileChanges(Watched(("app.py",), ("flows",)))
    save("app.py", "2")
    save("flows/new.flow", "1")
    os.unlink("flows/a.flow")
    changes.watch(Watched(("app.py", "lib/x.py"), ("flows",)))
    assert changed(changes) == ["app.py", "flows/a.flow", "flows/new.flow"]
    save("lib/x.py", "2")
    assert changed(changes) == ["lib/x.py"]


def test_modules_of_the_project_are_watched_and_those_of_libraries_are_not(project: Path) -> None:
    import json

    class Module:
        def __init__(self, name: str) -> None:
            self.__file__ = str(project / name)

    modules = [Module("app.py"), Module("lib/x.py"), Module(".venv/lib/y.py"), json, module, None]
    assert loaded_files(["."], modules) == ["app.py", "lib/x.py"]


def test_module_that_is_a_link_to_a_file_elsewhere_is_watched(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    class Module:
        __file__ = str(project / "linked.py")

    elsewhere = tmp_path_factory.mktemp("elsewhere") / "linked.py"
    elsewhere.write_text("")
    (project / "linked.py").symlink_to(elsewhere)
    assert loaded_files(["."], [Module]) == ["linked.py"]


# commands to try


def declared(function: Any) -> Startable:
    import inspect

    return Startable(function.__name__, declared_inputs(function, inspect.signature(function)))


def taken(given: list[str]) -> Any:
    """The inputs that `rhythm start` makes of arguments."""
    from rhythm.cli.command import Arguments

    pairs = [read_pair(each, "-i") for each in given if each != "-i"]
    return pairs, Arguments(inputs=None, input=pairs)


def test_inputs_that_are_made_up_are_taken_by_their_workflow() -> None:
    from dataclasses import dataclass
    from datetime import date, datetime, timedelta
    from decimal import Decimal
    from enum import Enum
    from typing import Literal
    from uuid import UUID

    class Colour(Enum):
        RED = "red"

    @dataclass
    class Item:
        sku: str
        count: int

    def workflow(
        text: str,
        number: float,
        whole: int,
        yes: bool,
        items: list[Item],
        pair: tuple[int, str],
        colour: Colour,
        kind: Literal["a", "b"],
        day: date,
        at: datetime,
        length: timedelta,
        price: Decimal,
        id: UUID,
        either: int | None,
        anything: Any,
        left_out: str = "x",
    ) -> None: ...

    startable = declared(workflow)
    given = arguments(startable)
    assert given is not None
    assert startable.inputs is not None
    _, args = taken(given)
    check_inputs("workflow", startable.inputs, read_inputs(args, "workflow", startable.inputs))
    assert not [each for each in given if "left_out" in each]


def test_commands_start_see_and_list_with_an_id_that_is_free() -> None:
    def order(id: str, amount: float) -> None: ...

    found = examples([declared(order)], {"order-1"}, "sqlite:///my shop.db")
    assert [shlex.split(each) for each in found] == [
        ["rhythm", "start", "order", "--id", "order-2", "-i", "id=A1", "-i", "amount:=5", "--database", "sqlite:///my shop.db"],
        ["rhythm", "trace", "order-2", "--database", "sqlite:///my shop.db"],
        ["rhythm", "list", "--database", "sqlite:///my shop.db"],
    ]  # fmt: skip


def test_without_a_workflow_there_are_commands_to_see_that() -> None:
    assert examples([], ()) == ["rhythm workflows", "rhythm list", "rhythm workers"]


def test_name_with_a_dot_makes_an_id_without_one() -> None:
    assert examples([Startable("shop.order", None)], ())[1] == "rhythm trace shop-order-1"
