"""Runs the workflows and tasks of an application until it is stopped. Start as many workers as you
like, on any machine.

FILE is a Python file or module with `@rhythm.task` functions. If it calls `rhythm.init(…)`, that
application is used; FILE:NAME uses the `Rhythm` object NAME in it. While the database does not
answer, the worker waits for it.

On SIGTERM or Ctrl-C it begins nothing new. Running tasks may end within the grace period
(--grace); the rest is given back to other workers. A second signal ends the grace period.

Exit code 0: it was stopped; 1: it failed; 2: it could not begin.

  rhythm worker --app tasks.py
  rhythm worker --app shop.tasks --queues orders,default --concurrency 20 --processes 4
"""

from __future__ import annotations

import gc
import os
import sys
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from rhythm.cli.command import Arguments, command, option
from rhythm.cli.connect import must_be_text, once_answered, refusals
from rhythm.cli.options import DATABASE, WORKFLOWS
from rhythm.cli.output import print
from rhythm.cli.stopping import Stopping, leave, stop_worker
from rhythm.cli.types import Duration, FileName, OneOf, Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from rhythm.app import Rhythm
    from rhythm.app.pooled import PooledWorker
    from rhythm.cli.exporter import Exporter

FROM_ONE = Whole("a whole number from 1 on", least=1)
# Objects between two passes of the garbage collector. A turn makes hundreds that live until its
# commit: with Python's own 700, a tenth of a worker's time goes there.
GC_THRESHOLDS = (10_000, 20, 100)
SAID = ("worker_started", "worker_draining")  # events that this command prints in its own words


@command(__doc__)
@option(
    "--app",
    type=FileName(),
    required=True,
    help="a Python file or module with tasks, such as tasks.py; FILE:NAME for the application "
    "NAME in it",
)
@option(
    "--queues",
    metavar="A,B",
    help="the queues to serve; else those of the settings, else default",
)
@option(
    "--concurrency",
    type=FROM_ONE,
    help="tasks at once in each process; else that of the settings, else 100",
)
@option(
    "--processes",
    type=FROM_ONE,
    metavar="M",
    default=1,
    help="how many worker processes to run; one that dies is replaced",
)
@WORKFLOWS
@option(
    "--name",
    metavar="NAME",
    help="how the worker's name begins; else with the name of this machine",
)
@option(
    "--metrics-port",
    type=FROM_ONE,
    help="serve /metrics, /healthz and /readyz on this port; with several processes, the second "
    "takes N+1, and so on",
)
@option("--metrics-host", metavar="HOST", default="127.0.0.1", help="the address to serve them on")
@option(
    "--log-format",
    type=OneOf("text", "json"),
    default="text",
    help="how log events are written to standard error",
)
@option(
    "--log-level",
    type=OneOf("debug", "info", "warning", "error"),
    help="the lowest level that is logged; else info, or what the application has set up",
)
@option(
    "--grace",
    type=Duration(),
    help="how long tasks may run on after SIGTERM, such as 30s; else that of the settings",
)
@DATABASE
def run(args: Arguments) -> int:
    must_be_text(args)  # report a mistake before waiting for the database
    if args.processes > 1:
        from rhythm.cli.supervisor import supervise

        work = partial(_work, args, supervisor=os.getpid())
        return supervise(
            args.processes, work, lambda pid, said: _say(args, said, "process_ended", pid=pid)
        )
    return _work(args)


def _work(
    args: Arguments,
    number: int = 0,
    ready: Callable[[], None] = lambda: None,
    supervisor: int | None = None,
) -> int:
    """Runs one worker process, from opening its application to its end. Returns the exit code.

    `ready` is called once nothing can refuse the process any more. Only a process of a supervisor
    ends with its parent: the terminal that a worker was started from may be closed.
    """
    stopping = Stopping()
    exporter = _exporter(args, number)
    gc.set_threshold(*GC_THRESHOLDS)  # an application may set its own
    with refusals(args):
        app = _application(args, stopping)
        gc.freeze()  # what is there now stays
        _log(args)
        worker = app.worker(args.name, **_settings(args))
        stopping.holds = True
        ready()
        worker.start()
    if exporter:
        exporter.worker = worker
    if args.log_format == "text":
        _say(
            args,
            _introduction(app, worker)
            + (f", metrics on {exporter.url}/metrics" if exporter else ""),
        )
    while worker.alive and not stopping.wait(0.5) and supervisor in (None, os.getppid()):
        pass
    _stop(args, worker, stopping, args.grace)


def _stop(
    args: Arguments, worker: PooledWorker, stopping: Stopping, grace: float | None
) -> NoReturn:
    """Stops the worker, within the grace period, and ends the process: exit code 1 if it failed."""
    running = worker.health().running
    if worker.alive and args.log_format == "text":
        what = (
            (
                f": {running} {'task' if running == 1 else 'tasks'} may end first; a second "
                f"signal ends the grace period"
            )
            if running
            else ""
        )
        _say(args, f"stopping{what}")
    problems = stop_worker(worker, stopping, grace)
    for problem in problems:
        _say(args, f"the worker failed: {problem}", "worker_failed")
    leave(len(problems))


def _application(args: Arguments, stopping: Stopping) -> Rhythm:
    """Returns the application, as soon as its database answers.

    The user's module is executed once, unless it needs the database itself.
    """
    from rhythm.cli.app import load_app, open_app

    module = cache(lambda: load_app(args.app.partition(":")[0]))
    return once_answered(
        lambda: open_app(module(), args.app, args.database, args.workflows),
        stopping.wait,
        lambda line: _say(args, line, "database_unanswered"),
    )


def _settings(args: Arguments) -> dict[str, Any]:
    """Returns the settings of the worker that are given as options."""
    return {"queues": args.queues, "concurrency": args.concurrency}


def _introduction(app: Rhythm, worker: PooledWorker) -> str:
    from rhythm.settings import show_url

    settings, tasks = worker.settings, len(app.tasks)
    many = (
        f"{tasks} {'task' if tasks == 1 else 'tasks'}"
        if tasks
        else "no tasks (so only turns of workflows)"
    )
    return (
        f"worker {worker.name}: {many}, {_queues(settings.queues)}, {settings.concurrency} at "
        f"once, on {show_url(settings.database_url)}"
    )


def _queues(names: tuple[str, ...]) -> str:
    return f"{'queue' if len(names) == 1 else 'queues'} {', '.join(names)}"


def _exporter(args: Arguments, number: int) -> Exporter | None:
    if args.metrics_port is None:
        return None
    from rhythm.cli.exporter import Exporter

    return Exporter(args.metrics_host, args.metrics_port + number)


def _log(args: Arguments) -> None:
    """Sends log events to standard error, unless the application has set up logging itself.

    With --log-level or --log-format json they go there in any case.
    """
    import logging

    from rhythm.worker.logs import JsonFormatter, TextFormatter

    rhythm, root = logging.getLogger("rhythm"), logging.getLogger()
    if args.log_level is None and args.log_format == "text" and (rhythm.handlers or root.handlers):
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if args.log_format == "json" else TextFormatter())
    if args.log_format == "text":
        handler.addFilter(lambda record: getattr(record, "event", "") not in SAID)
    if root.handlers:  # the application's handlers keep its own messages
        rhythm.handlers, rhythm.propagate = [handler], False
    else:
        root.handlers = [handler]
        root.setLevel((args.log_level or "info").upper())
    rhythm.setLevel((args.log_level or "info").upper())


def _say(args: Arguments, text: str, event: str = "", **fields: Any) -> None:
    """Prints a line for people; with --log-format json, a log event."""
    if args.log_format == "json":
        from logging import getLevelName, makeLogRecord

        from rhythm.worker.logs import EVENTS, LOG, JsonFormatter

        said = {
            "event": event,
            "fields": {**fields, "detail": text},
            "levelname": getLevelName(EVENTS[event].level),
            "name": LOG,
        }
        text = JsonFormatter().format(makeLogRecord(said))
    else:
        text = f"rhythm: {text}"
    # one write for the whole line: other processes write to standard error, too
    print(f"{text}\n", end="", file=sys.stderr, flush=True)
