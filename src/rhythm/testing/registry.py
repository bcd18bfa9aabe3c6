"""The tasks that a test can call: the application's own, and those that only the test knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rhythm.testing.doubles import Double
from rhythm.worker.handlers import Task, Tasks, default_tasks

Given = Mapping[str, Task[..., Any]] | Iterable[Task[..., Any]] | None


class KitTasks(Mapping[str, Task[..., Any]]):
    """The tasks of `base`, as they are when they are asked for, and those with a double."""

    def __init__(self, given: Given, doubles: Mapping[str, Double]) -> None:
        self.base, self._doubles = _tasks(given), doubles

    def __getitem__(self, name: str) -> Task[..., Any]:
        double = self._doubles.get(name)
        if double is None:
            return self._patched(self.base[name])
        if name not in self.base:
            return Task(_no_body(name), name)
        task = self.base[name]
        # A script needs no connection, so it may run on any database.
        return task.with_body(task.function) if task.transactional and double.scripted else task

    def _patched(self, task: Task[..., Any]) -> Task[..., Any]:
        """Returns a task of `@rhythm.task` as a test has patched it, also if it was given."""
        if default_tasks.applied is None or not default_tasks.has(task):
            return task  # `default_tasks` itself has done so already
        return default_tasks.applied(task)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.base, *self._doubles)))

    def __len__(self) -> int:
        return len(self.base.keys() | self._doubles.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.base or name in self._doubles


def _tasks(given: Given) -> Mapping[str, Task[..., Any]]:
    if given is None or isinstance(given, Mapping):
        return default_tasks if given is None else given
    tasks = Tasks()
    for task in given:
        tasks.add(task)
    return tasks


def _no_body(name: str) -> Any:
    def body(*args: Any, **kwargs: Any) -> Any:
        raise LookupError(f"there is no task `{name}`: say env.task({name!r}).returns(…)")

    return body
