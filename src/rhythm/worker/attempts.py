"""Tasks, attempt by attempt: the handler is run, and every way it can end becomes one `Ended`.

What a given-up attempt answers later is nobody's.
"""

from __future__ import annotations

import json
import queue
import random
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from rhythm.durations import show_duration
from rhythm.engine.retry import backoff_of
from rhythm.lang.source import nearest
from rhythm.vm.commands import StartTask
from rhythm.worker.clock import Action, Clock
from rhythm.worker.current import Current
from rhythm.worker.ended import Ended, task_error
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task

MAX_RUNNING = 200  # handlers at once


class Job:
    """A task that an execution asked for, through all its attempts."""

    def __init__(
        self, command: StartTask, end: Callable[[str, Any], None], wanted: Callable[[], bool], tell: Callable[[str, str], None]
    ) -> None:
        self.command, self.end, self.wanted, self.tell = command, end, wanted, tell
        self.attempt = 1
        self.label = called(command.name, command.inputs)
        self.stop: Action = lambda: None  # gives the running attempt up

    def reason(self, ended: Ended) -> str:
        return ended.reason.removeprefix(f"task `{self.command.name}` ").removeprefix("failed: ")


class Attempts:
    """Runs jobs with their timeouts and retries, `MAX_RUNNING` at once; answers arrive in `inbox`."""

    def __init__(self, tasks: Mapping[str, Task[..., Any]], clock: Clock) -> None:
        self.tasks, self.clock = tasks, clock
        self.inbox: queue.SimpleQueue[Action] = queue.SimpleQueue()
        self.running = 0
        self._handlers = Handlers()
        self._backlog: deque[Job] = deque()  # for which there was no room

    def close(self) -> None:
        self._handlers.close()

    def start(self, job: Job) -> None:
        """The next attempt at the job, or its failure if it cannot even be tried."""
        if not job.wanted():
            return self._start_waiting()
        name, task = job.command.name, self.tasks.get(job.command.name)
        problem = self._missing(name) if task is None else task.problem_with(job.command.inputs)
        if problem or task is None:
            job.tell("failure", f"{job.label}: {problem}")
            return job.end("failed", task_error(name, problem))
        if self.running >= MAX_RUNNING:
            return self._backlog.append(job)
        return self._run(job, task)

    def _missing(self, name: str) -> str:
        near = nearest(name, self.tasks)
        known = f"did you mean `{near}`?" if near else "registered are " + ", ".join(sorted(self.tasks)[:10])
        return f"no task of this name is registered; {known if self.tasks else 'pass the file that defines it with --app'}"

    def _run(self, job: Job, task: Task[..., Any]) -> None:
        self.running += 1
        began, over = self.clock.now(), threading.Event()
        job.tell("task", job.label if job.attempt == 1 else f"{job.label} attempt {job.attempt}")

        def finish(ended: Ended) -> None:
            if not over.is_set():
                over.set()
                self.running -= 1
                self._finished(job, task, ended, self.clock.now() - began)

        cancel = self._handlers.start(
            task, job.command.inputs, Current("", task.name, job.attempt), lambda ended: self.inbox.put(lambda: finish(ended))
        )

        def give_up(because: Ended) -> None:
            cancel()
            finish(because)

        job.stop = lambda: give_up(Ended(error=task_error(task.name, "cancelled")))
        timeout_s = job.command.options.get("timeout_s", task.timeout_s)
        if timeout_s is not None:
            late = {"code": "Timeout", "message": f"task `{task.name}` took longer than {show_duration(timeout_s)}", "data": None}
            self.clock.after(timeout_s, lambda: give_up(Ended(error=late, retry=True)), lambda: not over.is_set())

    def _finished(self, job: Job, task: Task[..., Any], ended: Ended, took_s: float) -> None:
        if not job.wanted():
            job.tell("cancelled", job.label)
        elif ended.error is None:
            job.tell("done", f"{job.label} = {brief(ended.value)} in {took_s * 1000:,.0f} ms")
            job.end("completed", ended.value)
        elif ended.delay_s is not None:
            self.clock.after(ended.delay_s, lambda: self.start(job), job.wanted)
        elif ended.retry and job.attempt <= job.command.options.get("retries", task.retries):
            delay_s = backoff_of(job.command.options, task.backoff_s).delay_s(job.attempt, random.random())
            job.tell("retry", f"{job.label}: {job.reason(ended)}; again in {show_duration(round(delay_s, 3))}")
            job.attempt += 1
            self.clock.after(delay_s, lambda: self.start(job), job.wanted)
        else:
            job.tell("failure", "\n".join((f"{job.label}: {job.reason(ended)}", *ended.frames)))
            job.end("failed", ended.error)
        self._start_waiting()

    def _start_waiting(self) -> None:
        if self._backlog:
            self.start(self._backlog.popleft())


def brief(value: Any, width: int = 44) -> str:
    """A value on one line, cut to a width."""
    return _cut(json.dumps(value, ensure_ascii=False), width)


def called(name: str, inputs: Any) -> str:
    """A call as one would write it in Python, cut to a width."""
    args = ", ".join(f"{key}={brief(value)}" for key, value in inputs.items()) if isinstance(inputs, dict) else brief(inputs)
    return f"{name}({'' if inputs is None else _cut(args)})"


def _cut(text: str, width: int = 44) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
