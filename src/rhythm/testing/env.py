"""`Env`: what a test talks to. It starts workflows, moves the clock, and plays the people."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never, ParamSpec, Self, TypeVar, overload

from rhythm.app import default
from rhythm.app.application import Rhythm
from rhythm.authoring.workflow import Workflow
from rhythm.durations import duration_s, show_duration
from rhythm.errors import ResultTimeout
from rhythm.suggest import nearest, some_of
from rhythm.testing.bodies import Stuck
from rhythm.testing.clock import SECOND_US, SimulatedClock
from rhythm.testing.databases import MEMORY, open_empty
from rhythm.testing.doubles import Call, CallLog, Double, TaskResult, order_of
from rhythm.testing.engine import Engine
from rhythm.testing.registry import KitTasks
from rhythm.testing.trial import Trial
from rhythm.worker.current import running_body
from rhythm.worker.handlers import Task
from rhythm.worker.stuck import why_stuck

if TYPE_CHECKING:
    from rhythm.app.actors import By
    from rhythm.app.approvals import ApprovalView
    from rhythm.app.handle import Id
    from rhythm.testing.aio import AsyncEnv
    from rhythm.testing.bodies import Order
    from rhythm.testing.crashes import CrashReport
    from rhythm.testing.faults import WatchedStore
    from rhythm.worker.narration import Observer

P = ParamSpec("P")
R = TypeVar("R")
IN_TESTS = {
    "signal": "env.signal(run, {name!r}, …)",
    "approval": "env.decide(run, 'approve', by=…)",
}
MAX_JUMPS = 100_000  # of the clock, while one result is waited for
# The default applications: the one outside of tests, then those of the environments that are open.
_DEFAULTS: list[Rhythm | None] = []
Decision = Literal["approve", "reject", "escalate"]


class TestsTurn:
    """A lock: one thread at a time drives the worker, and no body of a task may."""

    __test__ = False  # not a test of pytest's

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if (body := running_body()) is not None:
            raise Stuck(
                f"the body of `{body.task}` wants the test to go on, and the test waits for its "
                f"end: await it in the workflow instead, or replace the body by "
                f"env.task({body.task!r})"
            )
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class Env:
    """A test's own Rhythm: an empty database, a worker, and a clock that stands still.

    Everything you do runs until all executions wait; only `advance`, `run` and `result` let time
    pass. Bodies of tasks take no time on the clock, unless you say so with `env.task(…)`.

    - `database`: "memory", "sqlite" (a file), "postgresql" (at RHYTHM_TEST_DATABASE_URL), or a URL.
    - `workflow_paths`: files and folders of `.flow` workflows; else `./workflows`, if it exists.
    - `tasks`, `workflows`: instead of those of `@rhythm.task` and `@rhythm.workflow`.
    - `start`: what the clock shows first; else the real time.
    - `patience`: how long the body of a task may really run, since the clock stands still then.
    - Other settings are those of `Rhythm`.

    While it is open it is also the default application: `rhythm.start_workflow` starts here.
    """

    def __init__(
        self,
        database: str = MEMORY,
        *,
        workflow_paths: Iterable[str] | str | None = None,
        tasks: Mapping[str, Task[..., Any]] | Iterable[Task[..., Any]] | None = None,
        workflows: Iterable[Workflow[..., Any]] | None = None,
        start: datetime | None = None,
        patience: float | str = "60s",
        **settings: Any,
    ) -> None:
        self._clock, self._calls, self._lock = SimulatedClock(start), CallLog(), TestsTurn()
        if workflow_paths is not None and not isinstance(workflow_paths, str):
            workflow_paths = list(workflow_paths)  # a twin reads it, too
        self._made_with = dict(
            database=database,
            workflow_paths=workflow_paths,
            workflows=None if workflows is None else list(workflows),
            start=self._clock.now(),
            patience=patience,
            **settings,
        )
        self._doubles: dict[str, Double] = {}
        self._loaded: list[str] = []  # what `load` was given
        self._patience_s = duration_s(patience)
        self._tasks = KitTasks(tasks, self._doubles)
        self._database = open_empty(database, self._clock.us)
        try:
            self.app = Rhythm(
                None,
                workflow_paths,
                tasks=self._tasks,
                workflows=self._made_with["workflows"],
                store=self._database.store,
                auto_migrate=False,
                **settings,
            )
            self._engine = self._new_engine()
        except BaseException:
            self._database.close()
            raise
        self.app.changes.driver = self._drive
        if len(_DEFAULTS) <= 1:
            _DEFAULTS[:] = [default.made()]
        _DEFAULTS.append(self.app)
        default.use(self.app)

    def _new_engine(
        self,
        watched: WatchedStore | None = None,
        order: Order = lambda count: None,
        observe: Observer | None = None,
    ) -> Engine:
        return Engine(
            self.app,
            self._clock,
            self._calls,
            self._doubles,
            watched=watched,
            order=order,
            observe=observe,
            why_missing=self._why_missing,
            patience_s=self._patience_s,
        )

    def close(self) -> None:
        """Ends the worker, and removes the database. Closing it again does nothing."""
        if self.app not in _DEFAULTS:
            return
        _DEFAULTS.remove(self.app)
        if default.made() is self.app:
            default.use(_DEFAULTS[-1])
        self.app.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def aio(self) -> AsyncEnv:
        """The same methods as coroutines, for tests that are `async def`."""
        from rhythm.testing.aio import AsyncEnv

        return AsyncEnv(self)

    # starting

    @overload
    def start(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> Trial[R]: ...
    @overload
    def start(self, workflow: str, inputs: Any = None, **more: Any) -> Trial[Any]: ...
    def start(self, workflow: Any, *args: Any, **kwargs: Any) -> Trial[Any]:
        """Starts a workflow, and runs it until everything waits.

        A Python workflow takes its own arguments: `env.start(order, "A1", amount=5)`. One that is
        named takes its inputs, as an object or by name: `env.start("order", id="A1", amount=5)`.
        """
        if isinstance(workflow, Workflow):
            return self.start_workflow(workflow, workflow.inputs_of(args, kwargs))
        if len(args) > 1 or (args and kwargs):
            raise TypeError(
                f"env.start({workflow!r}, …) takes one object of inputs, or inputs by name"
            )
        return self.start_workflow(workflow, args[0] if args else kwargs or None)

    def start_workflow(
        self, workflow: str | Workflow[..., Any], inputs: Any = None, **options: Any
    ) -> Trial[Any]:
        """Starts a workflow with the options of `Rhythm.start_workflow`: `id`, `delay`, `by` …"""
        with self._lock:
            started = self.app.start_workflow(workflow, inputs, **options)
            self._engine.settle()
        return Trial(self, started.id, started.created)

    @overload
    def run(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def run(self, workflow: str, inputs: Any = None, **more: Any) -> Any: ...
    def run(self, workflow: Any, *args: Any, **kwargs: Any) -> Any:
        """Starts a workflow, moves the clock until it has ended, and returns its result."""
        __tracebackhide__ = True
        return self.start(workflow, *args, **kwargs).result()

    def load(self, *places: str) -> list[str]:
        """Registers workflows of files, folders or texts, and returns their names."""
        names = [*self.app.register(*places)]
        self._loaded += places
        return names

    # what comes from outside

    def signal(self, run: Id, name: str, payload: Any = None, *, by: By = None) -> None:
        """Sends a signal to an execution."""
        with self._lock:
            self.app.signal(run, name, payload, by=by)
            self._engine.settle()

    def publish(self, type: str, data: Any = None, *, by: By = None) -> None:
        """Publishes an event."""
        with self._lock:
            self.app.publish(type, data, by=by)
            self._engine.settle()

    def decide(
        self,
        run: Id,
        decision: Decision = "approve",
        *,
        by: Any = "somebody",
        role: str | None = None,
        comment: str = "",
    ) -> ApprovalView:
        """Decides the open approval of an execution, or of one below it; returns the approval.

        `by` is a name, or `rhythm.Actor(name, roles)` if its roles shall be checked. `role`: which
        approval, if several are open.
        """
        __tracebackhide__ = True
        acts = {
            "approve": self.app.approve,
            "reject": self.app.reject,
            "escalate": self.app.escalate,
        }
        if decision not in acts:
            raise ValueError(f"decide with one of {', '.join(acts)}, not {decision!r:.80}")
        with self._lock:
            self._engine.settle()
            asked = self._open_approval(str(run), role)
            decided = acts[decision](asked.id, by=by, comment=comment)
            self._engine.settle()
        return decided

    def cancel(self, run: Id, *, by: By = None) -> None:
        """Asks an execution to end; its `finally` blocks run."""
        with self._lock:
            self.app.cancel(run, by=by)
            self._engine.settle()

    def _open_approval(self, id: str, role: str | None) -> ApprovalView:
        __tracebackhide__ = True
        found = [
            each
            for each in self.app.approvals(role=role, limit=1000)
            if each.execution_id == id or each.execution_id.startswith(f"{id}.")
        ]
        if len(found) == 1:
            return found[0]
        of = f" for the role `{role}`" if role else ""
        if not found:
            waits = ", ".join(Trial[Any](self, id).waits_for) or "nothing"
            raise Stuck(f"{id} asks for no approval{of}: it waits for {waits}")
        roles = ", ".join(sorted(f"{each.role!r}" for each in found))
        raise ValueError(f"{id} asks for {len(found)} approvals{of}: name one by role= ({roles})")

    # time

    @property
    def now(self) -> datetime:
        """What the clock of the test shows, in UTC."""
        return self._clock.now()

    def advance(self, by: float | str) -> None:
        """Moves the clock by `"30d"`, `"1h30m"` or seconds; all that is due on the way happens."""
        with self._lock:
            until = self._clock.us() + int(duration_s(by) * SECOND_US)
            self._engine.settle()
            while (due := self._engine.due_us) is not None and due <= until:
                self._engine.jump(due)
            self._clock.move_to(until)
            self._engine.settle()

    def settle(self) -> None:
        """Does everything that can happen without time passing. The other methods do so, too."""
        with self._lock:
            self._engine.settle()

    def crash(self) -> None:
        """Ends the worker as a `kill -9` would; another one takes over."""
        with self._lock:
            self._engine.crash()
            self._engine.settle()

    def result(self, run: Id, timeout: float | str | None = None) -> Any:
        """Moves the clock until an execution has ended, and returns its result. See `Trial`."""
        __tracebackhide__ = True
        self._run_to_end(run, timeout)
        return self.app.get(run).value()

    def _drive(self, run: Id) -> None:
        """Runs an execution to its end: somebody waits for it with `app.result`.

        Raises `Stuck` in the body of a task: the engine waits for that body meanwhile.
        """
        self._run_to_end(run, None)

    def _run_to_end(self, run: Id, timeout: float | str | None) -> None:
        __tracebackhide__ = True
        with self._lock:
            limit = (
                None if timeout is None else self._clock.us() + int(duration_s(timeout) * SECOND_US)
            )
            self._engine.settle()
            for _ in range(MAX_JUMPS):
                if self.app.get(run).ended:
                    return
                due = self._engine.due_us
                if limit is not None and (due is None or due > limit):
                    self._clock.move_to(limit)
                    raise ResultTimeout(
                        f"{run} had not ended after {show_duration(duration_s(timeout or 0))}: "
                        f"it waits for {', '.join(Trial[Any](self, str(run)).waits_for)}"
                    )
                if due is None:
                    raise Stuck(self._why_stuck(str(run)))
                self._engine.jump(due)
        raise Stuck(
            f"{run} has not ended after {MAX_JUMPS:,} jumps of the clock, to {self.now}: does it "
            f"end at all? Use env.advance(…), and check what it does"
        )

    def _why_stuck(self, id: str) -> str:
        execution = self._database.store.reading.get([id])[id]
        why = why_stuck(self._database.store, execution, IN_TESTS)
        return f"{id} cannot end: {why}"

    # tasks

    def task(self, task: str | Task[..., Any]) -> Double:
        """Returns what a task does in this test, to change it and to see what was asked of it.

        Raises `LookupError` if there is no such task.
        """
        name = task.name if isinstance(task, Task) else task
        if name not in self._doubles:
            self._check_task(name)
            known = self._tasks.base.get(name)
            result = TaskResult(known) if known else None
            self._doubles[name] = Double(name, self._calls, result)
        return self._doubles[name]

    @property
    def calls(self) -> list[Call]:
        """All attempts at tasks, in the order in which they began."""
        return list(self._calls.made)

    @property
    def order(self) -> list[str]:
        """The names of the tasks in the order in which they were begun."""
        return order_of(self._calls.made)

    def _check_task(self, name: str) -> None:
        """Raises `LookupError` unless there is such a task, or some workflow calls one."""
        if name in self._tasks or any(f'"{name}"' in text for text in self._programs()):
            return
        near = nearest(name, self._tasks)
        help = f"did you mean `{near}`?" if near else f"there are {some_of(self._tasks)}"
        raise LookupError(
            f"there is no task `{name}`, and no workflow calls one; {help}"
            if len(self._tasks)
            else f"there is no task `{name}`, nor any other: import the module that has them"
        )

    def _programs(self) -> Iterator[str]:
        """Yields the stored programs of all workflows."""
        for listed in self.app.workflows():
            stored = self._database.store.definitions.program(listed.name, listed.version)
            yield stored or ""

    def _why_missing(self, name: str) -> str:
        near = nearest(name, self._tasks)
        help = f"did you mean `{near}`?" if near else "import the module that has it"
        return f"no task of this name is known to the test: {help}, or say env.task({name!r})"

    # crashes

    def crash_everywhere(
        self,
        /,
        workflow: str | Workflow[..., Any],
        inputs: Any = None,
        *,
        script: Callable[[Env, Trial[Any]], object] | None = None,
        reset: Callable[[], object] | None = None,
        effects: Callable[[], Any] | None = None,
        check: Callable[[Env, Trial[Any]], object] | None = None,
        same_result: bool = True,
        most: int = 1000,
        only: str | None = None,
        **unknown: Never,
    ) -> CrashReport:
        """Runs a workflow again and again, with a crash before and after every commit.

        Inputs are one object: `env.crash_everywhere(order, {"id": "A1", "amount": 5})`.
        Each run begins with an empty database and ends when the workflow has. Another worker takes
        over what the dead one had. Runs in which tasks end in another order are made, too. Raises
        `CrashFailure` with the smallest schedule of which the outcome differs from that without a
        crash.

        - `reset`: called before each run; put back what the tasks of the test change.
        - `effects`: called after each run; what it returns must be the same as without a crash.
        - `script`: called with `(env, run)` when the workflow was started, to send signals, decide
          and the like; else the clock just moves until it has ended.
        - `check`: called with `(env, run)` after each run; an assertion in it, or False, fails.
        - `same_result=False`: the result of the workflow may differ, as one with a random number.
        - `most`: the number of runs. If there are more schedules, those in which one thing goes
          wrong come first, and the others are sampled.
        - `only`: one schedule, as a failure names it, to debug it.
        """
        __tracebackhide__ = True
        from rhythm.testing.crashes import CrashPlan, crash_everywhere

        if unknown:
            raise TypeError(_inputs_are_one_object(workflow, inputs, unknown))
        plan = CrashPlan(workflow, inputs, script, reset, effects, check, same_result)
        return crash_everywhere(self, plan, most, only)

    def twin(self) -> Env:
        """Returns another environment as this one began: with its workflows, tasks and scripts.

        Nothing was started in it, and its clock shows what this one showed first.
        """
        made = Env(tasks=self._tasks.base, **self._made_with)
        made._doubles |= {name: each.anew(made._calls) for name, each in self._doubles.items()}
        made.load(*self._loaded)
        return made

    def interrupt(self, watched: WatchedStore, order: Order, observe: Observer) -> None:
        """Lets the worker see this store, and the order of its bodies; for `crash_everywhere`."""
        self._engine = self._new_engine(watched, order, observe)


def _inputs_are_one_object(
    workflow: str | Workflow[..., Any], inputs: Any, more: Mapping[str, Any]
) -> str:
    """Returns the message for inputs that were given by name, with the call to write instead."""
    name = workflow.name if isinstance(workflow, Workflow) else repr(workflow)
    before = ["…"] if inputs is not None else []
    shown = ", ".join([*before, *(f"{key!r}: …" for key in more)])
    return (
        f"env.crash_everywhere has no argument {next(iter(more))!r}; the inputs of the workflow "
        f"are one object: env.crash_everywhere({name}, {{{shown}}})"
    )
