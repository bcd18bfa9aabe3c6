"""What `start` and `retry` do once an execution is started: print its id, or wait for its end.

With --wait and --app, a worker in this process works on it meanwhile.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rhythm.cli.command import Arguments, UsageError, declare, option
from rhythm.cli.remote import refuse_on_server
from rhythm.cli.types import Duration, FileName, OneOf

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Handle, Rhythm

following = declare(  # the options about waiting, and about what is printed
    option("--wait", is_flag=True, help="wait until it has ended, and print the result"),
    option(
        "--timeout",
        type=Duration(),
        help="with --wait: how long to wait, such as 90s or 1h; no limit if it is not given",
    ),
    option(
        "--app",
        type=FileName(),
        help="with --wait: a Python file or module with tasks; this process runs a worker",
    ),
    option(
        "--output",
        type=OneOf("text", "json"),
        default="text",
        help="json: print an object with the id, and whether the execution is new",
    ),
)


def load_tasks(args: Arguments) -> None:
    """Loads the file or module of --app, if it is given."""
    if args.app:
        from rhythm.cli.app import load_app

        load_app(args.app)


def fit_waiting(args: Arguments) -> None:
    """Raises `UsageError` if --app or --timeout is given without --wait, or --app on a server."""
    refuse_on_server(args, app="a worker of this process would run the tasks")
    if args.app is not None and not args.wait:
        raise UsageError(
            f"--app goes with --wait; without it a worker runs the tasks: "
            f"rhythm worker --app {args.app}"
        )
    if args.timeout is not None and not args.wait:
        raise UsageError("--timeout goes with --wait")


def print_id(handle: Handle, output: str) -> int:
    """Prints the id of an execution. Returns the exit code, 0.

    With `output` json it prints an object that also says whether the execution is new.
    """
    import json

    from rhythm.cli.output.documents import print_json

    print_json(
        json.dumps({"id": handle.id, "created": handle.created}, ensure_ascii=False)
        if output == "json"
        else handle.id
    )
    return 0


def follow(app: Rhythm, handle: Handle, args: Arguments) -> int:
    """Waits for the end of an execution, and prints it. Returns the exit code.

    With --app this process also works on the queue while it waits.
    """
    from rhythm.cli.hints import missing_tasks, nobody_serves
    from rhythm.cli.output.documents import print_item
    from rhythm.cli.waiting import finish, wait

    def hint(execution: ExecutionView) -> str:
        return missing_tasks(app, execution) if args.app else nobody_serves(app, execution)

    with _working(app, handle, bool(args.app)) as alive:
        ended = wait(app, handle.id, args.timeout, hint, alive)
    if isinstance(ended, int):
        return ended
    if args.output == "json":
        print_item("json", ended.as_json())
        return 0 if ended.error is None else 1
    return finish(app, ended)


@contextmanager
def _working(app: Rhythm, handle: Handle, works: bool) -> Iterator[Any]:
    """Runs a worker in this process during the block, if `works`.

    The worker also serves the queue of this execution. Yields a function that raises the worker's
    error if it has failed, so that the wait ends, too.
    """
    if not works:
        yield lambda: None
        return
    queues = dict.fromkeys((*app.settings.queues, handle.get().queue))
    _log_plainly()
    _end_like_a_person_would()
    worker = app.worker(queues=queues)

    def alive() -> None:
        if worker.error is not None:
            raise worker.error

    with worker, _tasks_print_elsewhere():
        yield alive


def _end_like_a_person_would() -> None:
    """Makes SIGTERM act like Ctrl-C.

    So the worker gives its work back, and the next worker need not wait until the claims expire.
    """
    import signal

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


def _log_plainly() -> None:
    """Prints each log message of the worker as a line, without the traceback of an exception.

    An exception ends the command, which prints its message.
    """
    import logging

    from rhythm.printable import indented

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return indented(super().format(record))

        def formatException(self, ei: Any) -> str:
            return ""

    handler = logging.StreamHandler()
    handler.setFormatter(Line("rhythm: %(message)s"))
    logging.getLogger("rhythm").handlers = [handler]


@contextmanager
def _tasks_print_elsewhere() -> Iterator[None]:
    """Sends everything that tasks print, or programs that they start, to standard error.

    So standard output has the result alone.
    """
    import os

    sys.stdout.flush()
    result = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(result, 1)
        os.close(result)
