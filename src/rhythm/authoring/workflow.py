"""`@rhythm.workflow`: a Python function as a workflow, compiled when it is decorated."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, TypeVar, overload

from rhythm.authoring.local import LOCAL
from rhythm.authoring.redefinition import is_defined_anew, place_of
from rhythm.durations import duration_s
from rhythm.engine.declared_inputs import declared_inputs
from rhythm.errors import DuplicateWorkflow, NotInWorkflow
from rhythm.ir.input_schema import check_inputs
from rhythm.ir.program import Program
from rhythm.lang.flow.rules.arguments import checked_name
from rhythm.lang.python.names import Callee
from rhythm.lang.report import Compilation
from rhythm.suggest import refuse_unknown

P = ParamSpec("P")
R = TypeVar("R")
OPTIONS = ("name", "queue", "timeout", "on", "schedule", "version")
NO_VALUE = "P020"  # a name without a value: it may be given one further down in the module


class Workflow(Generic[P, R]):
    """A function that was made a workflow.

    Start it with `app.start(workflow, …)`, await it in another workflow, or run its body in
    CPython with `local`.
    """

    def __init__(
        self,
        function: Callable[P, Coroutine[Any, Any, R]],
        name: str,
        options: Mapping[str, Any],
    ) -> None:
        self.function, self.name = function, name
        self.signature = inspect.signature(function)
        self.options = dict(options)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._compiled: Compilation | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Awaits the workflow inside another one. Elsewhere, raises `NotInWorkflow`."""
        if LOCAL.get() is None:
            raise NotInWorkflow(
                f"`{self.name}` is a workflow: start it with app.start({self.name}, …), or run its "
                f"body here, for debugging, with asyncio.run({self.name}.local(…))"
            )
        return self.local(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<workflow {self.name} at {self.place}>"

    @property
    def place(self) -> str:
        """The file and line where the function is defined."""
        return place_of(self.function)

    @property
    def file(self) -> str:
        """The file in which the function is defined."""
        return str(inspect.unwrap(self.function).__code__.co_filename)

    @property
    def compilation(self) -> Compilation:
        """The program, or everything that is wrong with the function."""
        if self._compiled is None:
            from rhythm.lang.python.compile import compile_function

            options = {**self.options, "inputs": self.inputs}
            self._compiled = compile_function(self.function, self.name, options)
        return self._compiled

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs that the parameters declare, as JSON Schema."""
        # An event may have more in its data than the workflow needs.
        return declared_inputs(self.function, self.signature, other_keys="on" in self.options)

    @property
    def program(self) -> Program:
        """The program. Raises `FlowError` with all problems if the function does not compile."""
        [program] = self.compilation.programs_or_raise()
        return program

    def check(self) -> None:
        """Raises `FlowError` if the function cannot be compiled.

        Raises `InvalidInputs` if one of its schedules has inputs that it does not take.

        If the body uses a name that has no value yet, such as a task further down in the module,
        nothing is raised here: the function is compiled when it is registered.
        """
        for schedule in self.options.get("schedule", ()):
            check_inputs(self.name, self.inputs, schedule.get("inputs"))
        if any(wrong.code == NO_VALUE for wrong in self.compilation.errors):
            self._compiled = None
        elif _collected.get() is None:
            self.compilation.programs_or_raise()

    async def local(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the body in CPython, with the real tasks, for debugging: nothing is stored."""
        token = LOCAL.set(LOCAL.get() or {})
        try:
            return await self.function(*args, **kwargs)
        finally:
            LOCAL.reset(token)

    def inputs_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns arguments as inputs by name. Raises `TypeError` if they do not fit."""
        try:
            return dict(self.signature.bind(*args, **kwargs).arguments)
        except TypeError as problem:
            raise TypeError(f"workflow `{self.name}`: {problem}") from None

    def __rhythm_callee__(self) -> Callee:
        from rhythm.engine.typed import hints_of

        hints = hints_of(self.function)
        result = hints.get("return", Any)
        return Callee("workflow", self.name, self.signature, result, hints=hints)


class PythonWorkflows(Mapping[str, Workflow[..., Any]]):
    """Python workflows by name. `count` grows with every one that is added."""

    def __init__(self) -> None:
        self._workflows: dict[str, Workflow[..., Any]] = {}
        self.count = 0

    def add(self, workflow: Workflow[..., Any]) -> None:
        """Adds a workflow. Raises `DuplicateWorkflow` if another function has its name.

        A function that is defined anew takes the place of the old one.
        """
        known = self._workflows.get(workflow.name)
        if known is not None and not is_defined_anew(known.function, workflow.function):
            raise DuplicateWorkflow(
                f"two workflows are called {workflow.name!r}:\n  {known.place}\n  "
                f"{workflow.place}\nGive one another name: @rhythm.workflow(name=…)"
            )
        # A new dictionary: other threads may be walking through the old one.
        self._workflows = {**self._workflows, workflow.name: workflow}
        self.count += 1

    def __getitem__(self, name: str) -> Workflow[..., Any]:
        return self._workflows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._workflows)

    def __len__(self) -> int:
        return len(self._workflows)


default_workflows = PythonWorkflows()
# Set while a module is imported: the workflows that it has decorated so far.
_collected: ContextVar[list[Workflow[..., Any]] | None] = ContextVar("collected", default=None)


@contextmanager
def collecting() -> Iterator[list[Workflow[..., Any]]]:
    """Yields a list that gets every workflow that is decorated in the block.

    One that does not compile raises nothing there: so the problems of all are found at once.
    """
    found: list[Workflow[..., Any]] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


@overload
def workflow(function: Callable[P, Coroutine[Any, Any, R]]) -> Workflow[P, R]: ...
@overload
def workflow(
    *,
    name: str | None = None,
    queue: str | None = None,
    timeout: float | str | None = None,
    on: str | Iterable[str] = (),
    schedule: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = (),
    version: str | None = None,
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Workflow[P, R]]: ...
def workflow(
    function: Callable[P, Coroutine[Any, Any, R]] | None = None,
    *,
    name: str | None = None,
    queue: str | None = None,
    timeout: float | str | None = None,
    on: str | Iterable[str] = (),
    schedule: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = (),
    version: str | None = None,
    **unknown: Any,
) -> Any:
    """Makes an `async def` a workflow: `@rhythm.workflow`, or `@rhythm.workflow(queue="orders")`.

    Its source is compiled, and CPython never runs the body on the engine: so there is no replay,
    and no rule about what may change. Raises `FlowError` with every problem at once.

    - `queue`: where its turns wait for a worker.
    - `timeout`: how long an execution may take.
    - `on`: types of events; each event of such a type starts an execution.
    - `schedule`: when it is started: cron text, or `{"cron": …, "tz": …, "overlap": …}`.
    - `version`: a label for people.

    A function that is defined anew, as a notebook's cell does that runs again, takes the place of
    the old one. Raises `DuplicateWorkflow` if another function is a workflow of the same name.
    """

    refuse_unknown("@rhythm.workflow", unknown, OPTIONS)

    def register(function: Callable[P, Coroutine[Any, Any, R]]) -> Workflow[P, R]:
        options = _options(queue, timeout, on, schedule, version)
        if not isinstance(inspect.unwrap(function), types.FunctionType):
            raise TypeError(f"@rhythm.workflow goes above an `async def`, not {function!r:.80}")
        called = checked_name(name or function.__name__, "the name of a workflow")
        made = Workflow(function, called, options)
        made.check()
        default_workflows.add(made)
        if (found := _collected.get()) is not None:
            found.append(made)
        return made

    return register if function is None else register(function)


def _options(
    queue: str | None, timeout: float | str | None, on: Any, schedule: Any, version: str | None
) -> dict[str, Any]:
    """Returns the options as annotations of `.flow` would set them."""
    from rhythm.lang.flow.rules.annotations import schedule_option

    options: dict[str, Any] = {}
    if queue is not None:
        options["queue"] = checked_name(queue, "the queue of a workflow")
    if timeout is not None:
        options["timeout"] = duration_s(timeout)
    if events := [on] if isinstance(on, str) else list(on):
        options["on"] = [checked_name(each, "the type of an event") for each in events]
    times = [schedule] if isinstance(schedule, str | Mapping) else list(schedule)
    if times:
        given = [{"cron": each} if isinstance(each, str) else dict(each) for each in times]
        options["schedule"] = [schedule_option(each.pop("cron"), each) for each in given]
    if version is not None:
        options["version"] = checked_name(version, "the version of a workflow")
    return options
