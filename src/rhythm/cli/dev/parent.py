"""The parent of the generations: forks them, replaces them when files change, and ends them.

It has one thread and none of the user's code, so that it can fork at any moment and cannot be taken
down by that code.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rhythm.cli.dev.generation import Plan, run_generation
from rhythm.cli.dev.lines import Lines
from rhythm.cli.dev.pipes import Pipes
from rhythm.cli.dev.watching import FileChanges, Watched
from rhythm.cli.supervisor import AGAIN_S, PASSED_ON, REFUSED, Process
from rhythm.suggest import some_of

POLL_INTERVAL_S = 0.1  # between two checks for changes and signals
SLOW_S = 5.0  # after which it is said that loading takes long
KILL_S = 5.0  # after the second signal: then generations are killed
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EVERYTHING = Watched((), (".",))
# what is said behind the names of what is gone, by kind
STILL_NEEDED = {
    "tasks": " (running executions may still call them: keep a task until those have ended)",
    "workflows": "",
}


class Generation:
    """A generation as its parent sees it: its process, and how far it is."""

    def __init__(self, process: Process) -> None:
        self.process, self.pipes = process, Pipes()
        self.loaded = self.begun = self.asked = self.drains = self.slow = False

    def begin(self, plan: Plan, others: list[Generation]) -> None:
        """Forks the process. It gets rid of what it inherits of the other generations."""

        def work(number: int, ready: Callable[[], None]) -> int:
            self.pipes.keep_of_generation()
            for other in others:
                other.pipes.close()
            return run_generation(plan, self.pipes)

        self.process.begin(work, lambda: None)
        self.pipes.keep_of_parent()

    def let_begin(self) -> None:
        """Lets it begin to work, once."""
        if not self.begun:
            self.begun = True
            self.pipes.let_begin()

    def send(self, number: int) -> None:
        """Sends it a signal."""
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def drain(self) -> None:
        """Asks it to end when its tasks have ended."""
        if not self.asked:
            self.asked = True
            self.send(signal.SIGTERM)

    def exit_code(self) -> int | None:
        """Returns the exit code if the process has ended, else None."""
        pid, status = os.waitpid(self.process.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None


class Parent:
    """Runs generations until a signal comes.

    `current` is the one that works, `next` the one that is being loaded, and `old` are those that
    wait for the end of their tasks.
    """

    def __init__(self, plan: Plan, lines: Lines) -> None:
        self.plan, self.lines = plan, lines
        self.current: Generation | None = None
        self.next: Generation | None = None
        self.old: list[Generation] = []
        self.changes = FileChanges(EVERYTHING)
        self.again_at = float("inf")  # when a generation is begun in place of one that died
        self.signals: list[int] = []
        self.introduced = False
        self.has: dict[str, list[str]] = {}  # the names of what the last one had, by kind
        self.died: Process | None = None  # in whose place the next one begins
        self.refused = 0  # the exit code, if nothing can ever run

    def run(self) -> int:
        """Runs until it is stopped, and returns the exit code."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup does
                signal.signal(number, lambda number, frame: self.signals.append(number))
        self._begin()
        while not self.signals and not self.refused and not self.lines.unread:
            self._wait()
            self._hear()
            self._reap()
            self._go_on()
        return self.refused or self._stop()

    @property
    def all(self) -> list[Generation]:
        """All generations that have a process."""
        return [each for each in (self.current, self.next, *self.old) if each is not None]

    def _begin(self, process: Process | None = None) -> None:
        """Begins the next generation; in the place of one that died, if its process is given."""
        self.again_at = float("inf")
        others, self.next = self.all, Generation(process or Process(0))
        plan = self.plan.replace(introduces=not self.introduced)
        self.next.begin(plan, others)

    def _wait(self) -> None:
        select.select([each.pipes.reads for each in self.all], [], [], POLL_INTERVAL_S)

    # what generations send

    def _hear(self) -> None:
        for generation in self.all:
            for said in generation.pipes.received():
                for what, value in said.items():
                    HEARD[what](self, generation, value)

    def _loaded(self, generation: Generation, watched: dict[str, list[str]]) -> None:
        generation.loaded = True
        self._watched(generation, watched)

    def _watched(self, generation: Generation, watched: dict[str, list[str]]) -> None:
        if generation not in self.old:
            self.changes.watch(Watched(tuple(watched["files"]), tuple(watched["folders"])))

    def _ready(self, generation: Generation, has: dict[str, list[str]]) -> None:
        before = self.current
        if self.introduced:
            self.lines.say(_loaded_again(has, self.has))
        self.has, self.introduced = has, True
        self.old += [before] if before else []
        self.current, self.next = generation, None

    def _draining(self, generation: Generation, running: int) -> None:
        generation.drains = True
        if running and not self.signals:
            self.lines.say(f"{_tasks(running)} of the old code may end first")
        elif running:
            self.lines.say(f"stopping: {_tasks(running)} may end first; Ctrl-C again to stop now")

    # what becomes of generations

    def _reap(self) -> None:
        for generation in self.all:
            code = generation.exit_code()
            if code is None:
                continue
            generation.pipes.close()
            if generation in self.old:
                self.old.remove(generation)
            elif generation is self.current:
                self.current = None
            else:
                self.next = None
            how = generation.process.ended(code)
            if generation.asked or self.signals:
                continue
            if generation.begun and code != REFUSED:
                self._died(generation, code, how)
            else:
                self._could_not_begin(generation, code)

    def _died(self, generation: Generation, code: int, how: str) -> None:
        """Begins another generation in the place of one that died, after its backoff.

        It may have died before it could say that it was ready: what killed it is there again.
        """
        ended = how.replace("a worker process", "the process of your code").partition(";")[0]
        why = "" if code in (0, 1) else " (did a task crash it?)"  # else it has reported an error
        self.lines.say(f"{ended}{why}; another one begins")
        if self.next is None:
            self.again_at, self.died = generation.process.again_at, generation.process

    def _could_not_begin(self, generation: Generation, code: int) -> None:
        self.changes.watch(EVERYTHING)
        if code != REFUSED and not generation.loaded:
            self.lines.say(f"the code ended the process while it was loaded (exit code {code})")
        if self.plan.args.no_reload:
            self.refused = REFUSED
        elif self.current is not None and not self.current.asked:
            self.lines.say("the code before goes on; save a file to try again")
        else:
            self.lines.say("nothing runs; save a file to try again")

    def _go_on(self) -> None:
        following = self.next
        if following is not None and following.loaded and not following.begun:
            # the one before must begin nothing more, from here on
            if self.current is None or self.current.drains:
                following.let_begin()
            else:
                self.current.drain()
        if following is not None and not following.loaded:
            self._report_slow(following)
        if time.monotonic() >= self.again_at:
            self._begin(self.died)
        elif not self.plan.args.no_reload and (following is None or not following.loaded):
            self._reload()

    def _report_slow(self, generation: Generation) -> None:
        if not generation.slow and time.monotonic() - generation.process.begun > SLOW_S:
            generation.slow = True
            self.lines.say(
                f"{self.plan.app or 'the code'} takes long to load: what it runs at its top level "
                f"belongs under if __name__ == '__main__'"
            )

    def _reload(self) -> None:
        """Begins the next generation if files have changed; one that still loads is given up."""
        if not (changed := self.changes.changed()):
            return
        self.lines.say(f"{some_of(changed)} changed: loading it again")
        if self.next is not None:
            self.next.asked = True
            self.next.send(signal.SIGKILL)  # it holds nothing yet, and may never end otherwise
            self.old.append(self.next)
            self.next = None
        self._begin()

    # the end

    def _stop(self) -> int:
        """Ends all generations, and returns the exit code.

        The first signal lets tasks end, the second one does not.
        """
        passed, passed_at, hurried_at = 0, 0.0, float("inf")
        while self.all:
            now = time.monotonic()
            again = passed == PASSED_ON and now - passed_at >= AGAIN_S
            if passed < min(max(len(self.signals), 1), PASSED_ON) or again:
                passed, passed_at = min(passed + 1, PASSED_ON), now
                hurried_at = min(hurried_at, now) if passed == PASSED_ON else hurried_at
                self._pass_on()
            if now - hurried_at >= KILL_S:
                for generation in self.all:
                    generation.send(signal.SIGKILL)
            self._wait()
            self._hear()
            self._reap()
        self.lines.say("stopped; what has not ended goes on with the next `rhythm dev`")
        for number in SIGNALS:  # a later signal must not change the exit code
            signal.signal(number, signal.SIG_IGN)
        return 0

    def _pass_on(self) -> None:
        for generation in self.all:
            generation.asked = True
            generation.send(signal.SIGTERM if generation.begun else signal.SIGKILL)


HEARD: dict[str, Callable[[Parent, Generation, Any], None]] = {
    "loaded": Parent._loaded,
    "watched": Parent._watched,
    "ready": Parent._ready,
    "draining": Parent._draining,
}


def _tasks(count: int) -> str:
    return f"{count:,} {'task' if count == 1 else 'tasks'}"


def _loaded_again(has: dict[str, list[str]], had: dict[str, list[str]]) -> str:
    """Returns what was loaded, and what is new or gone, in words."""
    counts = [f"{len(has[kind]):,} {kind if len(has[kind]) != 1 else kind[:-1]}" for kind in has]
    said = f"loaded again: {', '.join(counts)}"
    for kind in has:
        new, gone = {*has[kind]} - {*had[kind]}, {*had[kind]} - {*has[kind]}
        said += f"; new {kind}: {some_of(sorted(new))}" if new else ""
        said += (
            f"; {kind} that are gone: {some_of(sorted(gone))}{STILL_NEEDED[kind]}" if gone else ""
        )
    return said
