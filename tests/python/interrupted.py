"""A worker that dies at a commit, with Python workflows and the tasks that they call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rhythm.authoring.workflow import Workflow
from rhythm.engine.definitions import definition_of
from rhythm.worker.handlers import Task
from tests.engine.driver import EPOCH_US, World
from tests.support.stores import MakeStore

MODES = ("before", "after", "lost")  # the call of the store that it dies at was made, or not


class PythonWorld(World):
    """A world with these workflows and tasks; its time jumps to the next timer."""

    def __init__(
        self,
        workflows: Iterable[Workflow[..., Any]],
        tasks: Mapping[str, Task[..., Any]],
        fail_at: int,
        mode: str,
        make_store: MakeStore,
    ) -> None:
        self.called = tasks
        super().__init__("workflow nothing { return null }", fail_at, mode, make_store)
        programs = [(each.program, each.compilation.source) for each in workflows]
        self.inner.definitions.register([definition_of(p, s.text) for p, s in programs])

    def _wait(self, wait_s: float) -> None:
        """Jumps to the next timer if nothing is left but timers: some are months away."""
        due = self.inner.maintenance.fire_timers(0)[1]
        if due is None or self.signals or self.handlers.agenda or not self._quiet():
            return super()._wait(wait_s)
        self.clock.seconds = max(self.clock.seconds + 0.001, (due - EPOCH_US) / 1e6)
        return None

    def _tasks(self) -> list[Task[..., Any]]:
        return [self._plain(task) for task in self.called.values()]

    def _plain(self, task: Task[..., Any]) -> Task[..., Any]:
        """The same task as a function that ends when it is called."""

        def call(**inputs: Any) -> Any:
            self.ran[task.name] += 1
            args, kwargs = task.arguments(inputs)
            made = task.handler(*args, **kwargs)
            return asyncio.run(made) if task.is_async else made

        backoff_s = task.backoff_s
        return Task(call, task.name, "default", task.retries, None, backoff_s, task.give_up_on)


def deaths(calls: int, most: int) -> Iterator[tuple[int, str]]:
    """At which calls of the store a worker dies, spread over all of them, and how."""
    every = max(calls // most, 1)
    for number, at in enumerate(range(1 + every // 2, calls + 1, every)):
        yield at, MODES[number % len(MODES)]
