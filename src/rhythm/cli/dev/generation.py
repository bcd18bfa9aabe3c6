"""A generation: the process that has one version of the user's code, its worker and the HTTP API.

It loads everything, and says so. It begins to work when its parent lets it: then the generation
before it begins nothing more. It ends when it is asked to; and at once, as if it had been killed
itself, when its parent is gone.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from io import TextIOWrapper
from socket import socket
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from rhythm.app.loading import on_warning
from rhythm.cli.app import load_app, only_app, open_app, own_app
from rhythm.cli.command import Arguments
from rhythm.cli.connect import once_answered, refusals
from rhythm.cli.database import read_settings
from rhythm.cli.dev.examples import Startable, examples, ids_for
from rhythm.cli.dev.lines import Lines
from rhythm.cli.dev.pipes import Pipes
from rhythm.cli.dev.watching import Watched, loaded_files
from rhythm.cli.output import print
from rhythm.cli.stopping import Stopping, leave, stop_worker
from rhythm.errors import FlowError
from rhythm.lang.source import Diagnostic, Source, render
from rhythm.record import Record
from rhythm.settings import FILES, FOLDER, show_url

if TYPE_CHECKING:
    from rhythm.app import Rhythm
    from rhythm.app.pooled import PooledWorker

T = TypeVar("T")
POLL_INTERVAL_S = 0.1  # between two checks whether the parent is there
MAX_NAMES = 8  # of tasks or workflows that the introduction lists


class Plan(Record):
    """What a generation is to do, as its parent has read it from the command line.

    `app` is the user's file or module, or empty. `listener` is the socket of the HTTP API, if it is
    served. `url` is its address. `introduces`: the generation says what it is, and what to try.
    """

    args: Arguments
    app: str
    listener: socket | None
    url: str
    introduces: bool


class LoadedCode(Record):
    """The user's code, imported and compiled. Nothing is registered yet."""

    module: ModuleType | None
    name: str  # how its application is named: FILE, or FILE:NAME
    workflows: tuple[str, ...]  # names
    places: tuple[str, ...]  # the files and folders that workflows are read from


def run_generation(plan: Plan, pipes: Pipes) -> int:
    """Runs one generation to its end. Returns the exit code if it cannot begin, else exits.

    Raises what the command line reports if the code cannot be loaded.
    """
    stopping, parent = Stopping(), os.getppid()
    # the cache would take two changes of a file within one second for one
    sys.dont_write_bytecode = True
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    _die_with(parent)  # also while code is loaded that may never end
    on_warning.set(_show_warning)
    with refusals(plan.args):
        loaded = _answered(lambda: _load(plan), stopping)
        pipes.send(loaded=_watched(plan, loaded))
        if not pipes.wait():
            return 0
        app = _answered(lambda: _open(plan, loaded), stopping)
    lines = Lines(database=_database(app))
    _log(lines)
    queues = _queues(app, loaded)
    worker = app.worker("dev", queues=queues)
    server = _serve(plan, app)
    stopping.holds = True
    worker.start()
    if plan.introduces:
        _introduce(plan, app, loaded)
    pipes.send(ready={"tasks": sorted(app.tasks), "workflows": sorted(loaded.workflows)})
    _work(lambda: _watched(plan, loaded), pipes, stopping, worker, lines)
    _end(pipes, stopping, worker, server, lines)


def _die_with(parent: int) -> None:
    """Kills this process as soon as its parent is gone: whoever killed that meant all of it.

    A parent that ends by itself waits for this process first.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_INTERVAL_S)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="rhythm dev parent", daemon=True).start()


def _work(
    watched: Callable[[], dict[str, Any]],
    pipes: Pipes,
    stopping: Stopping,
    worker: PooledWorker,
    lines: Lines,
) -> None:
    """Waits until the generation is asked to end, or its worker has failed.

    It also ends if nobody reads its lines: then the parent ends, too. Modules that are imported
    meanwhile are watched from then on.
    """
    known = len(sys.modules)
    while worker.alive and not stopping.wait(POLL_INTERVAL_S):
        lines.tick()
        if lines.unread:
            return
        if len(sys.modules) != known:
            known = len(sys.modules)
            pipes.send(watched=watched())


def _end(
    pipes: Pipes, stopping: Stopping, worker: PooledWorker, server: Any, lines: Lines
) -> NoReturn:
    """Takes no more requests and begins no more tasks, lets the running ones end, and exits."""
    if server is not None:
        server.should_exit = True
    worker.drain()
    pipes.send(draining=worker.health().running)
    problems = stop_worker(worker, stopping, None)
    lines.tick()
    for problem in problems:
        lines.say(f"the worker failed: {problem}")
    leave(len(problems))


# loading


def _answered(call: Callable[[], T], stopping: Stopping) -> T:
    """Returns the result of a call, once the database answers."""
    return once_answered(call, stopping.wait, lambda line: print(line, flush=True))


def _load(plan: Plan) -> LoadedCode:
    """Imports the user's code, and compiles all workflows. Raises an error if anything is wrong.

    Nothing is registered, unless the code does that itself.
    """
    from rhythm.app.loading import compile_flows, read_flows
    from rhythm.authoring.workflow import default_workflows
    from rhythm.worker.handlers import default_tasks

    module = load_app(plan.app.partition(":")[0]) if plan.app else None
    name = only_app(module, plan.app)
    own = own_app(module, name)
    settings = own.settings if own else read_settings(plan.args.database)
    places = (*settings.workflow_paths, *plan.args.workflows)
    tasks = own.tasks if own else default_tasks
    flows = compile_flows(read_flows(places), default_workflows, tasks)
    names = [flow.name for flow in flows]
    for twice in default_workflows.keys() & {*names}:
        raise FlowError(
            [], f"two workflows are called `{twice}`: {default_workflows[twice].place} has one, too"
        )
    return LoadedCode(module, name, (*default_workflows, *names), places)


def _watched(plan: Plan, loaded: LoadedCode) -> dict[str, Any]:
    """Returns the files of the project that were loaded, and the folders of workflows."""
    places = [*loaded.places, FOLDER]
    folders = [each for each in places if each == FOLDER or os.path.isdir(each)]
    file = plan.app.partition(":")[0]
    near = {".", os.path.dirname(file) or "."} if file.endswith(".py") else {"."}
    files = [*loaded_files(near, list(sys.modules.values())), *FILES]
    files += [each for each in places if os.path.isfile(each)]
    return Watched(tuple(files), tuple(dict.fromkeys(folders))).as_dict()


def _open(plan: Plan, loaded: LoadedCode) -> Rhythm:
    return open_app(loaded.module, loaded.name, plan.args.database, plan.args.workflows)


def _queues(app: Rhythm, loaded: LoadedCode) -> list[str]:
    """Returns every queue that the tasks and workflows name: nobody else serves them here."""
    programs = [app.program(name) for name in loaded.workflows]
    named = [task.queue for task in app.tasks.values()]
    named += [program.options.get("queue") for program in programs if program is not None]
    return list(dict.fromkeys([*app.settings.queues, *filter(None, named)]))


# what it runs


def _serve(plan: Plan, app: Rhythm) -> Any:
    """Serves the HTTP API in a thread; returns the server, or None if there is none."""
    if plan.listener is None:
        return None
    from rhythm.cli.serving import import_uvicorn, is_local, make_server

    tokens = bool(app.tokens()) or not is_local(plan.args.host)
    server = make_server(import_uvicorn(), app, tokens=tokens)
    threading.Thread(
        target=server.run, args=([plan.listener],), name="rhythm dev api", daemon=True
    ).start()
    return server


def _log(lines: Lines) -> None:
    """Makes lines of what the worker does, and of what the user's code logs.

    If that has set up logging itself, only what the worker does.
    """
    rhythm, root = logging.getLogger("rhythm"), logging.getLogger()
    rhythm.handlers, rhythm.propagate = [lines], False
    rhythm.setLevel(logging.INFO)
    logging.getLogger("rhythm.worker").setLevel(logging.DEBUG)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    if not root.handlers:
        root.handlers = [lines]
        root.setLevel(logging.INFO)


# what it says


def _show_warning(source: Source, found: Diagnostic) -> None:
    """Prints a warning about a workflow as `rhythm check` does."""
    print(render(source, found), end="\n\n", flush=True)


def _database(app: Rhythm) -> str:
    """Returns the URL that other commands need; empty if they find the database themselves."""
    url = app.settings.database_url
    return "" if read_settings(None).database_url == url else show_url(url)


def _introduce(plan: Plan, app: Rhythm, loaded: LoadedCode) -> None:
    where = show_url(app.settings.database_url)
    # of the process that was started: whoever kills that one ends all of it
    print(f"rhythm dev: pid {os.getppid()}, {f'{plan.url}, ' if plan.url else ''}on {where}")
    print(f"  {_listed('task', sorted(app.tasks))}")
    print(f"  {_listed('workflow', sorted(loaded.workflows))}")
    if others := _others(app):
        print(
            f"  another `rhythm dev` works on this database, too (process {others[0]}): each "
            f"prints what it runs itself"
        )
    if plan.url and app.tokens():
        print("  the API is for those who have a token")
    print("try, in another terminal:")
    for line in _examples(app, loaded):
        print(f"  {line}")
    print("Ctrl-C ends it" + ("" if plan.args.no_reload else "; save a file, and it is loaded"))


def _listed(kind: str, names: list[str]) -> str:
    if not names:
        return f"no {kind}s: write @rhythm.{kind} above a function in app.py"
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    count = f"{len(names):,} {kind}{'' if len(names) == 1 else 's'}"
    return f"{count}: {', '.join(names[:MAX_NAMES])}{more}"


def _examples(app: Rhythm, loaded: LoadedCode) -> list[str]:
    views = app.workflows.get_many(loaded.workflows)
    known = [Startable(name, views[name].inputs) for name in loaded.workflows if name in views]
    known.sort(key=lambda each: each.inputs is None)  # without inputs declared, it may need some
    ids = [id for each in known[:1] for id in ids_for(each.name)]
    return examples(known, app.executions.get_many(ids).keys(), _database(app))


def _others(app: Rhythm) -> list[int]:
    """Returns the processes of other `rhythm dev` on this machine and this database."""
    from rhythm.worker.local_workers import HOST, lives

    found = [
        each.pid
        for each in app.workers()
        if each.name.startswith("dev-") and each.host == HOST and each.state == "live"
    ]
    return sorted(pid for pid in found if pid != os.getpid() and lives(pid))
