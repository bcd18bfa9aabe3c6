"""Doubles: what a test says a task does, in place of its own body, and what was asked of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, Self

from rhythm.durations import duration_s
from rhythm.engine.payload import dump, load
from rhythm.engine.typed import Misfit, hints_of, kind_of
from rhythm.errors import InvalidPayload
from rhythm.record import Record
from rhythm.worker.handlers import Task, as_function

RUNS, RETURNS, RAISES, CALLS, HANGS, CRASHES = "runs returns raises calls hangs crashes".split()


class Step(Record):
    """What a task does once: one step of its script."""

    kind: str
    value: Any = None  # the result, the exception, or the function that is called
    takes_s: float = 0.0
    times: int = 1


OWN_BODY = Step(RUNS)


class Call:
    """One attempt at a task: what it got, and how it ended."""

    def __init__(self, task: str, id: str, inputs: Any, attempt: int, at: datetime) -> None:
        self.task = task  #: the name of the task
        self.id = id  #: the id of its execution, which all attempts share: the idempotency key
        self.inputs = inputs  #: what it got
        self.attempt = attempt  #: the number of the attempt, from 1
        self.at = at  #: when it began, on the clock of the test
        self.ended = False  #: whether it has ended
        self.result: Any = None  #: what it returned, as the workflow sees it
        self.error: dict[str, Any] | None = None  #: its error: code, message, data

    def end(self, result: Any, error: dict[str, Any] | None) -> None:
        """Notes how the attempt ended."""
        self.ended, self.result, self.error = True, result, error

    def __repr__(self) -> str:
        from rhythm.worker.narration import brief, called

        label = f"{called(self.task, self.inputs)}, attempt {self.attempt}"
        if not self.ended:
            return f"<{label}: not ended>"
        if self.error is not None:
            return f"<{label}: {self.error['code']}: {self.error['message']}>"
        return f"<{label} = {brief(self.result)}>"


class CallLog:
    """All attempts of a test, in the order in which they began."""

    def __init__(self) -> None:
        self.made: list[Call] = []

    def of(self, task: str) -> list[Call]:
        """Returns the attempts at one task."""
        return [call for call in self.made if call.task == task]


class TaskResult:
    """What a task returns by its hint: a double that returns something else tests nothing real."""

    def __init__(self, task: Task[..., Any]) -> None:
        self._name, self._hint = task.name, hints_of(task.function).get("return", Any)
        self._kind = kind_of(self._hint)

    def check(self, value: Any) -> None:
        """Raises `TypeError` if a value, as it is stored, is not what the hint asks for."""
        if self._kind is None:
            return
        try:
            self._kind.fit(load(dump(value, "result")))
        except InvalidPayload:
            return  # the attempt fails of it, as one of the real task would
        except Misfit as misfit:
            hint = inspect.formatannotation(self._hint)
            raise TypeError(
                f"the double of task `{self._name}` returns {value!r:.80}, and the task says "
                f"`-> {hint}`: `result{misfit.path}` {misfit.problem}"
            ) from None

    def checked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function, with a check of what it returns."""
        if self._kind is None:
            return function
        function = as_function(function)
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                value = await function(*args, **kwargs)
                self.check(value)
                return value

            return call_async

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            value = function(*args, **kwargs)
            self.check(value)
            return value

        return call


class Double:
    """A task in a test: what it shall do, and what was asked of it.

    What you say is done in order, each step once; the last one stays. So
    `env.task("charge").raises(ConnectionError, times=2).returns("ok")` fails twice, and then
    always succeeds. A task of which nothing was said runs its own body.

    `takes`, on each of them, is how long that takes on the clock of the test.
    """

    def __init__(self, name: str, calls: CallLog, result: TaskResult | None = None) -> None:
        self.name, self._calls, self._result = name, calls, result
        self._steps: list[Step] = []
        self._done = 0

    # what it shall do

    def returns(self, value: Any, *, times: int = 1, takes: float | str = 0) -> Self:
        """Makes it return this value. Raises `TypeError` if the task's return hint forbids it."""
        if self._result is not None:
            self._result.check(value)
        return self._then(RETURNS, value, times, takes)

    def raises(
        self,
        error: BaseException | type[BaseException],
        *,
        times: int = 1,
        takes: float | str = 0,
    ) -> Self:
        """Makes it raise this exception; it is tried again as the task's `retries` say."""
        is_class = isinstance(error, type) and issubclass(error, BaseException)
        if not is_class and not isinstance(error, BaseException):
            raise TypeError(f"raises(…) takes an exception or its class, not {error!r:.80}")
        return self._then(RAISES, error, times, takes)

    def calls(
        self, function: Callable[..., Any], *, times: int = 1, takes: float | str = 0
    ) -> Self:
        """Makes it call this function with its inputs, a plain one or an `async def`.

        The attempt fails if what that returns does not fit the task's return hint.
        """
        if not callable(function):
            raise TypeError(f"calls(…) takes a function, not {function!r:.80}; see returns(…)")
        checked = function if self._result is None else self._result.checked(function)
        return self._then(CALLS, checked, times, takes)

    def runs(self, *, times: int = 1, takes: float | str = 0) -> Self:
        """Makes it run its own body."""
        return self._then(RUNS, None, times, takes)

    def hangs(self, *, times: int = 1) -> Self:
        """Makes it never end: only its timeout or a cancellation ends the attempt."""
        return self._then(HANGS, None, times, 0)

    def crashes(self, *, times: int = 1) -> Self:
        """Makes the worker die when the task begins; another worker takes over."""
        return self._then(CRASHES, None, times, 0)

    # what was asked of it

    @property
    def attempts(self) -> list[Call]:
        """All attempts, in the order in which they began."""
        return self._calls.of(self.name)

    @property
    def called(self) -> int:
        """How often the task was begun, retries included."""
        return len(self.attempts)

    @property
    def inputs(self) -> list[Any]:
        """The inputs of each attempt, in the order in which they began."""
        return [call.inputs for call in self.attempts]

    @property
    def scripted(self) -> bool:
        """Whether the task never runs its own body."""
        return bool(self._steps) and all(step.kind != RUNS for step in self._steps)

    def __repr__(self) -> str:
        steps = ", ".join(step.kind for step in self._steps) or "its own body"
        return f"<task {self.name} in a test: {steps}; called {self.called} times>"

    # for the engine

    def next_step(self) -> Step:
        """Returns what to do now, and goes on in the script."""
        if not self._steps:
            return OWN_BODY
        done, self._done = self._done, self._done + 1
        for step in self._steps:
            if done < step.times:
                return step
            done -= step.times
        return self._steps[-1]

    def anew(self, calls: CallLog) -> Double:
        """Returns a double with the same script, from its beginning."""
        made = Double(self.name, calls, self._result)
        made._steps = list(self._steps)
        return made

    def _then(self, kind: str, value: Any, times: int, takes: float | str) -> Self:
        if isinstance(times, bool) or not isinstance(times, int) or times < 1:
            raise ValueError(f"times is a whole number from 1 on, not {times!r:.80}")
        takes_s = 0.0 if takes in (0, "0s") else duration_s(takes)
        self._steps.append(Step(kind, value, takes_s, times))
        return self


def order_of(calls: Sequence[Call]) -> list[str]:
    """Returns the names of the tasks in the order in which they were begun."""
    return [call.task for call in calls]
