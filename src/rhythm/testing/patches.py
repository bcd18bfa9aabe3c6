"""Notices when a test puts something in the place of a task in a module, as `monkeypatch` does.

The engine calls tasks by their names, so a module whose `charge` was replaced would change nothing,
silently. Here the replacement is found, and called in place of the task.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rhythm.worker.handlers import Task, default_tasks


def note_tasks() -> None:
    """Notes where modules have the tasks of `@rhythm.task`, and finds what a test puts there."""
    default_tasks.applied = None  # what the last test has put there is gone
    tasks = default_tasks.values()
    workflows = sys.modules.get("rhythm.authoring.workflow")
    written = [*tasks, *(workflows.default_workflows.values() if workflows else ())]
    patches = Patches()
    patches.note(tasks, [each.function.__module__ for each in written])
    default_tasks.applied = patches.applied


class PatchRefused(BaseException):
    """A test put something in the place of a task that cannot be called.

    It is no `Exception`, so that the worker does not take it for a failure of its own.
    """


class Patches:
    """What the modules had in the places of tasks when the test began."""

    def __init__(self) -> None:
        self._places: dict[str, list[tuple[Any, str, object]]] = {}  # by the name of the task

    def note(self, tasks: Iterable[Task[..., Any]], modules: Iterable[str]) -> None:
        """Notes where these modules have the tasks: before the test changes anything."""
        names = {id(each): task.name for task in tasks for each in (task, task.function)}
        self._places = {}
        for module in filter(None, map(sys.modules.get, sorted({*modules}))):
            for attribute, value in list(vars(module).items()):
                if (name := names.get(id(value))) is not None:
                    self._places.setdefault(name, []).append((module, attribute, value))

    def applied(self, task: Task[..., Any]) -> Task[..., Any]:
        """Returns the task, with the body that the test has put in its place, if it has.

        Raises `PatchRefused` if that cannot be called.
        """
        for place, found in self._replaced(task):
            if isinstance(found, Task):
                return task.with_body(found.function)
            if not callable(found):
                raise PatchRefused(
                    f"the test replaced {place}, a task, by {found!r:.60}, which cannot be "
                    f"called: give a function, or say env.task({task.name!r}).returns(…)"
                )
            return task.with_body(found)
        patched: object = task.function  # `mock.patch.object(charge, "function")`
        return task if patched is task.__wrapped__ else task.with_body(task.function)

    def _replaced(self, task: Task[..., Any]) -> Iterator[tuple[str, Any]]:
        places = self._places.get(task.name)
        for module, attribute, value in _own_place(task) if places is None else places:
            found = vars(module).get(attribute, value)
            if found is not value:
                yield f"{module.__name__}.{attribute}", found


def _own_place(task: Task[..., Any]) -> Iterator[tuple[Any, str, object]]:
    """Yields where a module has a task that was imported only after the test began."""
    function = inspect.unwrap(task.function)
    module = sys.modules.get(getattr(function, "__module__", ""))
    name = getattr(function, "__qualname__", "")
    found = vars(module).get(name) if module else None
    its_own = found is None or any(each is task or each is task.function for each in _layers(found))
    if not its_own:
        yield module, name, task


def _layers(found: Any) -> Iterator[Any]:
    """Yields an object, and what it says that it wraps: a task may be decorated further."""
    while found is not None:
        yield found
        found = vars(found).get("__wrapped__") if hasattr(found, "__dict__") else None
