"""Tasks: the user's Python functions, which workflows call by name.

A decorated function stays a plain function: calling it runs it, so it can be unit-tested without a
worker.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from rhythm.authoring.local import LOCAL, TASKS, call_task
from rhythm.authoring.redefinition import is_defined_anew, place_of
from rhythm.durations import duration_s
from rhythm.engine.typed import TypedInputs, hints_of
from rhythm.errors import DuplicateTask, NotInWorkflow
from rhythm.ir.options import whole_problem
from rhythm.lang.flow.rules.arguments import checked_name
from rhythm.lang.flow.rules.surroundings import TaskShape
from rhythm.lang.hint_shapes import task_shape
from rhythm.lang.python.names import Callee
from rhythm.suggest import refuse_unknown

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Length = float | str | None  # a length of time: seconds, text such as "1h30m", or none


class Task(Generic[P, R]):
    """A function that was made a task, with the settings of its decorator.

    Calling it calls the function.
    """

    def __init__(
        self,
        function: Callable[P, R],
        name: str,
        queue: str | None = None,
        retries: int = 0,
        timeout_s: float | None = None,
        backoff_s: float | None = None,
        give_up_on: tuple[type[BaseException], ...] = (),
        transactional: bool = False,
    ) -> None:
        self.function = function
        self.name = name
        self.queue = queue
        self.retries = retries
        self.timeout_s = timeout_s
        self.backoff_s = backoff_s
        self.give_up_on = give_up_on
        self.transactional = transactional
        self.is_async = inspect.iscoroutinefunction(function)
        self.signature = inspect.signature(function)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.is_async and LOCAL.get() is not None:
            # A workflow's body runs in CPython: it sees failures as on the engine.
            return cast(R, call_task(self.name, self.function, *args, **kwargs))
        return self.function(*args, **kwargs)

    @overload
    def run(
        self: Task[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def run(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Awaits the task in a Python workflow, also one that is a plain `def`."""
        if LOCAL.get() is None:
            raise NotInWorkflow(
                f"`{self.name}.run` is for workflows; call {self.name}(…) itself to run it here"
            )
        return call_task(self.name, self.function, *args, **kwargs)

    def options(
        self,
        *,
        retries: int | None = None,
        backoff: Any = None,
        timeout: Length = None,
        queue: str | None = None,
        priority: int | None = None,
    ) -> Task[P, R]:
        """Gives a call in a Python workflow its own options: `charge.options(retries=5)(…)`."""
        return self

    def with_body(self, function: Callable[..., Any]) -> Task[..., Any]:
        """Returns this task with another body, for tests: it has no transaction."""
        return Task(
            as_function(function),
            self.name,
            self.queue,
            self.retries,
            self.timeout_s,
            self.backoff_s,
            self.give_up_on,
        )

    def __rhythm_callee__(self) -> Callee:
        hints = hints_of(self.function)
        result = hints.get("return", Any)
        return Callee("task", self.name, self.signature, result, self.is_async, hints)

    def __repr__(self) -> str:
        return f"<task {self.name} at {self.place}>"

    @property
    def place(self) -> str:
        """The file and line where the function is defined."""
        return place_of(self.function)

    @cached_property
    def handler(self) -> Callable[..., Any]:
        """The function as a worker calls it: its inputs are converted to the types of its hints.

        It raises `Misfit` where an input does not fit its hint.
        """
        function, inputs = self.function, TypedInputs(self.function, self.signature)
        if not inputs:
            return function
        if not self.is_async:

            def run(*args: Any, **kwargs: Any) -> Any:
                args, kwargs = inputs.fit(args, kwargs)
                return function(*args, **kwargs)

            return run

        async def run_async(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = inputs.fit(args, kwargs)
            return await function(*args, **kwargs)  # type: ignore[misc]  # it is async

        return run_async

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of all inputs that can be passed by name, and of those that have no default."""
        params = self.signature.parameters.values()
        named = [p for p in params if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        needed = [
            p.name
            for p in params
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        return frozenset(p.name for p in named), frozenset(needed)

    def problem_with(self, inputs: Any) -> str:
        """Returns why the function cannot be called with these inputs; empty if it can be."""
        takes_all, needs = self._names
        if type(inputs) is dict and needs <= inputs.keys() <= takes_all:
            return ""
        try:
            self.signature.bind(*self.arguments(inputs)[0], **self.arguments(inputs)[1])
        except TypeError as problem:
            takes = ", ".join(self.signature.parameters) or "no inputs"
            return f"{problem}; it takes {takes}"
        return ""

    @staticmethod
    def arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the positional and the named arguments that these inputs become.

        The keys of an object become named arguments, null becomes no argument, and anything else
        becomes the only argument.
        """
        if inputs is None:
            return (), {}
        return ((), inputs) if isinstance(inputs, dict) else ((inputs,), {})

    def shape(self) -> TaskShape:
        """Returns the inputs of the task as `rhythm check` compares them with a call."""
        return task_shape(self.signature, hints_of(self.function))


class Tasks(Mapping[str, Task[..., Any]]):
    """The tasks of one application, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[..., Any]] = {}
        # What a test has put in the place of a task, if it has. See `rhythm.testing.patches`.
        self.applied: Callable[[Task[..., Any]], Task[..., Any]] | None = None

    def add(self, task: Task[..., Any]) -> None:
        """Adds a task. Raises `DuplicateTask` if another function has its name.

        A function that is defined anew takes the place of the old one, also on workers that run.
        """
        known = self._tasks.get(task.name)
        if known is not None and not is_defined_anew(known.function, task.function):
            raise DuplicateTask(
                f"two tasks are called {task.name!r}:\n  {known.place}\n  "
                f"{task.place}\nGive one another name: @rhythm.task(name=…)"
            )
        # A new dictionary: the thread of a worker may be walking through the old one.
        self._tasks = {**self._tasks, task.name: task}
        TASKS[task.name] = task.function

    def __getitem__(self, name: str) -> Task[..., Any]:
        task = self._tasks[name]
        return task if self.applied is None else self.applied(task)

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the task of this name, or the default. A worker asks several times a step."""
        task = self._tasks.get(name)
        if task is None:
            return default
        return task if self.applied is None else self.applied(task)

    def has(self, task: Task[..., Any]) -> bool:
        """Returns whether this very task is one of them."""
        return self._tasks.get(task.name) is task

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def shapes(self) -> dict[str, TaskShape]:
        """Returns the shapes of all tasks, by name, for `rhythm check`."""
        return {name: task.shape() for name, task in self._tasks.items()}


default_tasks = Tasks()
OPTIONS = ("name", "queue", "retries", "timeout", "backoff", "give_up_on", "transactional")


@overload
def task(function: Callable[P, R]) -> Task[P, R]: ...
@overload
def task(
    *,
    name: str | None = None,
    queue: str | None = None,
    retries: int = 0,
    timeout: Length = None,
    backoff: Length = None,
    give_up_on: type[BaseException] | tuple[type[BaseException], ...] = (),
    transactional: bool = False,
) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def task(
    function: Callable[P, R] | None = None,
    *,
    name: str | None = None,
    queue: str | None = None,
    retries: int = 0,
    timeout: Length = None,
    backoff: Length = None,
    give_up_on: type[BaseException] | tuple[type[BaseException], ...] = (),
    transactional: bool = False,
    **unknown: Any,
) -> Any:
    """Makes a function a task: `@rhythm.task`, or `@rhythm.task(retries=3, timeout="30s")`.

    Workflows call it by the name of the function, or by `name`.

    - `retries`: after a failure the task is tried again up to this many times.
    - `backoff`: the delay before the first retry; it doubles with each further retry, up to 300 s.
      If it is longer than that itself, it stays as it is. Without `backoff`, the delay is random:
      up to one second, then up to two, four and so on. So tasks that failed together are not tried
      again together.
    - `timeout`: how long one attempt may take.
    - `give_up_on`: exceptions of these types are not retried.
    - `queue`: where the task waits for a worker. Without it, the task goes to the queue of its
      workflow.
    - `transactional`: what the task writes on `rhythm.current().connection` is committed together
      with its end, or not at all. It needs PostgreSQL and a plain `def`.

    The options of a call win over these. A function that is defined anew, as a notebook's cell does
    that runs again, takes the place of the old one. Raises `DuplicateTask` if another function is a
    task of the same name.
    """
    refuse_unknown("@rhythm.task", unknown, OPTIONS)
    if problem := whole_problem("retries", retries):
        raise ValueError(problem)
    if queue is not None:
        checked_name(queue, "the queue of a task")

    def register(function: Callable[P, R]) -> Task[P, R]:
        _refuse_no_function(function, name)
        timeout_s = None if timeout is None else duration_s(timeout)
        backoff_s = None if backoff is None else duration_s(backoff)
        kinds = give_up_on if isinstance(give_up_on, tuple) else (give_up_on,)
        made = Task(
            function,
            checked_name(name or function.__name__, "the name of a task"),
            queue,
            retries,
            timeout_s,
            backoff_s,
            kinds,
            transactional,
        )
        if transactional and made.is_async:
            raise ValueError(
                f"task {made.name!r} is transactional, so it must be a plain `def`: its "
                f"connection blocks"
            )
        default_tasks.add(made)
        return made

    return register if function is None else register(function)


def as_function(given: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a body as a function that says whether it is `async`, and what it takes."""
    call = type(given).__call__
    if inspect.iscoroutinefunction(call) and not inspect.iscoroutinefunction(given):
        return call.__get__(given)  # type: ignore[no-any-return]  # a bound method
    try:
        inspect.signature(given)
    except ValueError:  # some classes of Python's own have none
        return lambda *args, **kwargs: given(*args, **kwargs)
    return given


def _refuse_no_function(given: Any, name: str | None) -> None:
    """Raises `TypeError` if what is decorated is no function, or has no name to be called by."""
    if isinstance(given, str):
        raise TypeError(f"the name of a task is given as name=: @rhythm.task(name={given!r:.80})")
    if not callable(given):
        raise TypeError(f"@rhythm.task goes above a function, not {given!r:.80}")
    if not name and not hasattr(given, "__name__"):
        raise TypeError(f"{given!r:.80} has no name: write rhythm.task(name=…)(…)")
