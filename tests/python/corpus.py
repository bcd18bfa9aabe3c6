"""Loads `tests/python/programs`, and runs what is there: in CPython, and on the engine in several
ways. Each returns how a run has ended, as a value to be compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import importlib
import io
import json
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

from rhythm.authoring.workflow import Workflow, default_workflows
from rhythm.engine.payload import dump
from rhythm.errors import UnknownWorkflow
from rhythm.ir.instructions import Const
from rhythm.ir.locals import nodes
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.interfaces.store import Store
from rhythm.worker.ended import ended_by
from rhythm.worker.handlers import Task, default_tasks
from rhythm.worker.runner import Clock, InProcessRunner
from tests.python.given import GIVEN
from tests.support.world import TaskError, World

PROGRAMS = Path(__file__).parent / "programs"


class Ended(Record):
    """A result as JSON text, in which 1, 1.0 and true differ; or the class and message raised."""

    result: str = "null"
    raised: str | None = None
    message: str = ""


class Corpus(Record):
    """All programs, with the tasks that they call."""

    workflows: Mapping[str, Workflow[..., Any]]
    tasks: Mapping[str, Task[..., Any]]

    def register(self) -> None:
        """Makes these the tasks and workflows that are known by name."""
        default_workflows._workflows = dict(self.workflows)
        default_tasks._tasks = dict(self.tasks)

    def family(self, name: str) -> list[Program]:
        """The program of this name, and those that it may start, and so on."""
        found, work = dict[str, Program](), [name]
        while work:
            name = work.pop()
            if name not in found:
                found[name] = self.program(name)
                work += {*_texts(found[name])} & self.workflows.keys()
        return list(found.values())

    def program(self, name: str) -> Program:
        if name not in self.workflows:
            raise UnknownWorkflow(f"there is no workflow `{name}`")
        return self.workflows[name].program


def _texts(program: Program) -> Iterator[str]:
    """The constants of a program that are text: the name of whatever it starts is one of them."""
    for instruction in program.code:
        for node, _ in nodes(instruction):
            if isinstance(node, Const) and isinstance(node.value, str):
                yield node.value


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Forgets the tasks and workflows that were defined inside: other tests must not have them."""
    workflows, tasks = dict(default_workflows._workflows), dict(default_tasks._tasks)
    count = default_workflows.count
    try:
        yield
    finally:
        default_workflows._workflows, default_tasks._tasks = workflows, tasks
        default_workflows.count = count


@functools.cache  # a module is imported once, whoever asks
def load() -> Corpus:
    """The corpus, from all files."""
    with contained():
        for path in sorted(PROGRAMS.glob("[!_]*.py")):
            importlib.import_module(f"tests.python.programs.{path.stem}")
        return corpus_now()


def corpus_now() -> Corpus:
    """The corpus of what is defined now."""
    return Corpus(dict(default_workflows._workflows), dict(default_tasks._tasks))


class _Jumping(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer instead of waiting for it."""

    skipped_s = 0.0

    def time(self) -> float:
        return super().time() + self.skipped_s

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]  # of the base class
            due = self._scheduled[0].when()  # type: ignore[attr-defined]
            self.skipped_s += max(due - self.time(), 0.0)
        super()._run_once()  # type: ignore[misc]


def in_jumping_time(run: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine to its end, without waiting for any timer."""
    with asyncio.Runner(loop_factory=_Jumping) as runner:
        return runner.run(run)


def normal(value: Any) -> Any:
    """The value as JSON keeps it."""
    return json.loads(dump(value, "the value"))


def completed(value: Any) -> Ended:
    """The end of a run that gave this value."""
    return Ended(json.dumps(normal(value), ensure_ascii=False))


def local(corpus: Corpus, name: str, inputs: dict[str, Any]) -> Ended:
    """How CPython runs the body, with the real tasks."""
    logging.disable()
    try:
        with contained(), contextlib.redirect_stdout(io.StringIO()):
            corpus.register()
            # A body may change its inputs; the engine gets the same as it.
            run = corpus.workflows[name].local(**copy.deepcopy(inputs))
            return completed(in_jumping_time(run))
    except Exception as problem:
        return Ended(raised=type(problem).__name__, message=str(problem))
    finally:
        logging.disable(logging.NOTSET)


def failed(error: dict[str, Any]) -> Ended:
    """The error of an execution as Python would have raised it."""
    from rhythm.vm.python.caught import CAUGHT

    name, text = (CAUGHT["error"](None, error, what) for what in ("name", "text"))
    return Ended(raised=name, message=text)


def in_process(
    corpus: Corpus, make_store: Callable[..., Store], name: str, inputs: dict[str, Any]
) -> Ended:
    """How `rhythm run` runs it, on a store of its own and a clock that jumps."""
    runner = InProcessRunner(
        make_store, corpus.program, corpus.tasks, lambda task: f"no task {task}", Clock(True)
    )
    run = runner.run(name, normal(inputs))
    return completed(run.value) if run.status == "completed" else failed(run.value)


def in_world(
    corpus: Corpus,
    name: str,
    inputs: dict[str, Any],
    *,
    through_json: bool,
    shuffle: int | None = None,
) -> Ended:
    """How the interpreter runs it; `through_json`: every snapshot and value becomes JSON."""
    world = World(
        corpus.family(name),
        through_json=through_json,
        shuffle=shuffle,
        tasks={task.name: _as_function(task) for task in corpus.tasks.values()},
    )
    run = world.run(name, normal(inputs))
    return completed(run.value) if run.status == "completed" else failed(run.value)


def _as_function(task: Task[..., Any]) -> Callable[[dict[str, Any]], Any]:
    """A task as the world calls it."""

    def call(inputs: dict[str, Any]) -> Any:
        args, kwargs = task.arguments(inputs)

        def handled() -> Any:
            made = task.handler(*args, **kwargs)
            return in_jumping_time(made) if task.is_async else made

        ended = ended_by(task, handled)
        if ended.error is not None:
            error = ended.error
            raise TaskError(error["code"], error["message"], error.get("data"))
        return json.loads(ended.result)

    return call


def calls() -> list[tuple[str, int]]:
    """Every call of every program: its name, and which of its inputs."""
    return [(name, i) for name, each in GIVEN.items() for i in range(len(each))]
