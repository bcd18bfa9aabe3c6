"""Shows what happened in an execution and everything below it, in order of time, as `rhythm run`
does while it runs.

… is a line at which the workflow had to wait, → a task that starts, ✓ a task that is done, ↻ an
attempt that failed and is repeated, · what was logged. In a retry, the steps that it kept of the
earlier execution come first. Where more than a hundred tasks or workflows are alike, they are one
line, with how many failed and which was the slowest.

  rhythm trace 06fe1sz2n5qg7v0k4m8c3x9yte
  rhythm trace 06fe1sz2n5qg7v0k4m8c3x9yte --follow --level warning
"""

from __future__ import annotations

import heapq
import json
import sys
from datetime import timedelta
from math import inf
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from rhythm.cli.command import Arguments, UsageError, command, declare, option
from rhythm.cli.commands.logs import FOLLOW, LEVEL, SETTLED_S, interval_s, log_pages
from rhythm.cli.connect import application, find
from rhythm.cli.options import DATABASE_OR_SERVER, EXECUTION, OUTPUT
from rhythm.cli.output import print

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rhythm.app import ExecutionView, Rhythm, TraceStep
    from rhythm.app.log_lines import LogLineView
    from rhythm.app.views import AlikeView, TracePage

PAGE_STEPS, PAGE_BYTES = 1000, 4 * 1024 * 1024  # at most this much is read at a time
MOST_ALIKE = 100  # executions that are alike are told one by one, up to so many
SILENCE_S = 30.0  # how long it goes on while nothing answers
WHAT_IS_PRINTED = declare(
    option("--logs/--no-logs", default=True, help="also show what was logged, or not"),
    LEVEL,
    option("--all", is_flag=True, help="tell everything one by one, however many are alike"),
)


class Entry(NamedTuple):
    """Something to print: when it happened, its depth below the execution, its mark and words."""

    at: datetime
    depth: int
    mark: str
    text: str


@command(__doc__)
@EXECUTION
@WHAT_IS_PRINTED
@FOLLOW
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    if args.follow and args.output != "table":
        raise UsageError("--follow is for people: leave --output out, or ask for `rhythm logs`")
    with application(args) as app:
        execution = find(app, args.id)
        if args.output == "table":
            Printer(app, execution, args, args.follow).print()
        else:
            from rhythm.cli.output.documents import print_items

            print_items(
                args.output,
                (_json(step) for page in _pages(app, execution.id, None) for step in page),
            )
    return 0


def _pages(
    app: Rhythm, id: str, most_alike: int | None, cursor: str | None = None
) -> Iterator[TracePage]:
    """Yields the trace page by page: all of it may not fit into memory."""
    while True:
        page = app.trace_page(id, PAGE_STEPS, cursor, most_bytes=PAGE_BYTES, most_alike=most_alike)
        yield page
        if page.cursor is None:
            return
        cursor = page.cursor


def _json(step: TraceStep) -> dict[str, Any]:
    return {name: getattr(step, name) for name in step._fields} | {
        "at": step.at.isoformat().replace("+00:00", "Z")
    }


class Printer:
    """Prints the trace of one execution, and what comes while it is followed."""

    def __init__(
        self, app: Rhythm, execution: ExecutionView, args: Arguments, follow: bool
    ) -> None:
        from rhythm.cli.output.terminal import coloured, width_of

        self.app, self.execution, self.args, self.follow = app, execution, args, follow
        self.json = args.output == "ndjson"
        self.interval_s = interval_s(args)
        self.room, self.colour = width_of(sys.stdout) or 10_000, coloured(sys.stdout)
        self.most = None if args.all or self.json else MOST_ALIKE
        self.ended_at: float | None = None  # when it was first seen to have ended
        self.cursor: str | None = None  # of the last step that was printed
        self.position = 0  # of the last line that was printed
        # While it is followed, what is new waits for the next look: a commit that was slow may yet
        # bring something that comes before it. These are the last step and line that were seen.
        self.seen_at, self.seen = execution.created_at - timedelta(days=1), 0
        self.dropped = 0
        self.alike = set[tuple[str, int]]()  # names and depths of what is told as one
        self.printed: dict[tuple[str, int], str] = {}  # what was last printed of each

    def print(self, timeout_s: float | None = None) -> ExecutionView:
        """Prints all that there is, and returns the execution as it was last seen.

        If it is followed, it goes on until the execution has ended, or the time is over. If the
        database or the server goes away, it asks again for a while; then its error is raised.
        """
        from rhythm.errors import Unavailable

        began = answered = monotonic()
        while True:
            left_s = inf if timeout_s is None else began + timeout_s - monotonic()
            try:
                if self._print_once(left_s <= 0):
                    break
                answered = monotonic()
            except Unavailable:
                if not self.follow or left_s <= 0 or monotonic() - answered > SILENCE_S:
                    raise
            sleep(max(0.0, min(self.interval_s, left_s)))
        if not self.json:
            self._print_end()
        return self.execution

    def _print_once(self, is_last: bool) -> bool:
        """Prints what was not printed yet, and returns whether there is nothing to wait for."""
        if self.follow and self.ended_at is None:
            self.execution = self.app.get(self.execution.id)
            self.ended_at = monotonic() if self.execution.ended else None
        settled = self.ended_at is not None and monotonic() - self.ended_at >= SETTLED_S
        over = is_last or settled or not self.follow
        if self.json:
            self._print_json(over)
        else:
            self._print_new(over)
        return over

    def _print_end(self) -> None:
        from rhythm.cli.output.log_lines import not_kept

        if self.dropped:
            print(f"{'':>9}  ({not_kept(self.dropped)})")
        if not self.execution.ended:
            id, status = self.execution.id, self.execution.status
            print(f"{'':>9}  it is {status}; `rhythm show {id}` tells what it waits for")

    def _print_json(self, over: bool) -> None:
        from rhythm.cli.output.documents import print_json

        for step, _ in self._new_steps(over):
            print_json(json.dumps(_json(step), ensure_ascii=False))
        sys.stdout.flush()

    def _print_new(self, over: bool) -> None:
        """Prints what was not printed yet: steps, lines and counts together, by their time.

        `over`: this is the last look.
        """
        groups, steps = self._groups(), self._steps(over)
        lines = self._lines(over) if self.args.logs else iter(())
        for entry in heapq.merge(groups, steps, lines, key=lambda entry: entry.at):
            self._print(entry)

    def _print(self, entry: Entry) -> None:
        from rhythm.cli.output.trace import show_line

        seconds = (entry.at - self.execution.created_at).total_seconds()
        line = show_line(seconds, entry.mark, entry.depth, entry.text, self.colour, self.room)
        print(line, flush=self.follow)

    # What follows remembers an entry only after its `yield`: then it is printed, and if the next
    # one cannot be read, it is not printed again and nothing is left out.

    def _groups(self) -> Iterator[Entry]:
        """Yields the counts of what is alike, if they have changed since they were printed."""
        found = [] if self.most is None else self.app.details.alike(self.execution.id, self.most)
        self.alike.update((each.name, each.depth) for each in found)
        for each in found:
            text, key = _counted(each, self.execution.id), (each.name, each.depth)
            if self.printed.get(key) != text:
                mark = "failure" if each.failed else "done" if each.ended == each.count else "task"
                yield Entry(each.first_at, each.depth, mark, text)
            self.printed[key] = text

    def _new_steps(self, over: bool) -> Iterator[tuple[TraceStep, ExecutionView | None]]:
        """Yields the steps that were not printed yet, and their executions for people."""
        last = self.seen_at
        for page in _pages(self.app, self.execution.id, self.most, self.cursor):
            ids = () if self.json else sorted({step.execution_id for step in page})
            views = self.app.executions.get_many(ids)
            for step, cursor in zip(page, page.cursors, strict=True):
                self.seen_at = step.at
                if step.at <= last or over:
                    yield step, views.get(step.execution_id)
                    self.cursor = cursor

    def _steps(self, over: bool) -> Iterator[Entry]:
        for step, view in self._new_steps(over):
            # a step that a retry kept: its end is enough, its start is not shown
            kept = step.at < self.execution.created_at
            if (line := _line_of(self.app, step, view)) and not (kept and step.what == "started"):
                yield Entry(step.at, self._depth(step.execution_id), *line)

    def _lines(self, over: bool) -> Iterator[Entry]:
        from rhythm.cli.output.log_lines import said, who

        last, seen = self.execution.created_at, self.seen
        for page in log_pages(self.app, self.execution.id, self.position, self.args.level):
            self.dropped = page.dropped
            views = self.app.executions.get_many(sorted({line.execution_id for line in page}))
            for line in page:
                self.seen = line.position
                if line.position > seen and not over:
                    continue
                # They come in the order of writing, which is almost that of time.
                last = max(last, _within(line.at, views.get(line.execution_id)))
                depth = self._depth(line.execution_id)
                if (line.name, depth) not in self.alike or line.level in LOUD:
                    whose = "" if line.execution_id == self.execution.id else f"{who(line)}: "
                    yield Entry(last, depth, _mark_of(line), f"{whose}{said(line)}")
                self.position = line.position

    def _depth(self, id: str) -> int:
        return id.count(".") - self.execution.id.count(".")


LOUD = ("warning", "error", "critical")  # lines of what is told as one are shown only from here on


def _within(at: datetime, view: ExecutionView | None) -> datetime:
    """Returns when a line was said, but not before its execution began, or after it ended.

    The times of both were worked out at other moments, some milliseconds apart.
    """
    if view is None:
        return at
    if view.finished_at is not None:
        at = min(at, view.finished_at - timedelta(microseconds=1))
    return max(at, view.created_at)


def _mark_of(line: LogLineView) -> str:
    return "log" if line.kind == "log" else "progress"


def _counted(some: AlikeView, root: str) -> str:
    """Returns what became of executions that are alike, in words; ids are those below `root`."""
    from rhythm.cli.output.words import length, printable

    rest = some.ended - some.completed - some.failed
    counts = (
        (some.completed, "completed"),
        (some.failed, "failed"),
        (rest, "ended otherwise"),
        (some.count - some.ended, "not ended"),
    )
    text = f"{some.count:,} × {printable(some.name)}: " + ", ".join(
        f"{count:,} {word}" for count, word in counts if count
    )
    if some.first_failed:
        text += f" (first …{some.first_failed.removeprefix(root)})"
    if some.slowest_s is not None:
        text += f"; slowest {length(some.slowest_s)} (…{some.slowest_id.removeprefix(root)})"
    return text


def _line_of(app: Rhythm, step: TraceStep, view: ExecutionView | None) -> tuple[str, str] | None:
    """Returns the mark of a step and the text about it.

    Returns None for a step that means nothing to people, or whose execution was just pruned.
    """
    from rhythm.cli.output.words import brief, call, printable

    if view is None:  # the execution has just been pruned
        return None
    task = view.type == "task"
    took = _took(view)
    name = printable(step.name)
    match step.what:
        case "started":
            return (
                "task" if task else "start"
            ), f"{'' if task or not view.parent_id else 'workflow '}{call(step.name, step.detail)}"
        case "completed":
            return (
                ("done", f"{name} = {brief(step.detail)} in {took}")
                if task
                else ("completed", f"completed {name} in {took}")
            )
        case "failed" | "cancelled" | "blocked":
            why = f": {printable(step.detail['code'])}: {printable(step.detail['message'])}"
            return (
                "failure" if task and step.what == "failed" else step.what
            ), f"{step.what} {name} after {took}{why}"
        case "attempt failed":
            where = f" on {printable(step.worker)}" if step.worker else ""
            return (
                "retry",
                f"{name} failed{where}, and is tried again: {printable(step.detail['message'])}",
            )
        case "attempt crashed":
            return "retry", f"{name}: its worker {printable(step.worker)} died; it is tried again"
        case "signal":
            signal = step.detail
            return "signal", f"signal {printable(signal['name'])} = {brief(signal['payload'])}"
        case "vote":
            vote = step.detail
            comment = f": {printable(vote['comment'])}" if vote["comment"] else ""
            by = printable(vote["by"])
            return "approval", f"{vote['decision']} by {by}{comment} ({vote['approval']})"
        case "retry":
            return "start", f"goes on where {view.retry_of or 'it'} ended"
        case "resumed":
            return "signal", printable(_resumed(step.detail))
        case "turn":
            return "wait", f"line {step.line}: {_line(app, view, step.line)}" if step.line else ""
        case "task" | "promoted" | "queued" | "continue":  # how work is divided among workers
            return None
        case what:
            return "log", printable(what)


def _resumed(how: dict[str, Any]) -> str:
    """Returns what let an execution go on, in words."""
    data = how["data"] or {}
    because = f": {how['reason']}" if how["reason"] else ""
    match how["triggered_by"]:
        case "approval":
            by, said = " and ".join(data["by"]), data["comment"]
            return (
                f"{data['decision']}{f' by {by}' if by else ''}{f': {said}' if said else ''} "
                f"({how['triggered_by_id']})"
            )
        case "event":
            return f"event {data['type']} ({how['triggered_by_id']})"
        case "manual":
            who = how["triggered_by_id"]
            return f"resumed{f' by {who}' if who else ''}{because}"
        case _:
            return "its pause was over"


def _took(view: ExecutionView) -> str:
    """Returns how long an execution ran; empty if it has not ended."""
    from rhythm.cli.output.words import length

    began = view.started_at if view.type == "task" and view.started_at else view.created_at
    return length((view.finished_at - began).total_seconds()) if view.finished_at else ""


def _line(app: Rhythm, view: ExecutionView, line: int) -> str:
    """Returns a line of the source, as it was when this version was registered."""
    from rhythm.cli.output.words import printable

    source = app.workflows.source(view.name, view.version)
    lines = source.text.splitlines() if source else []
    return printable(lines[line - 1].strip()) if line <= len(lines) else ""
