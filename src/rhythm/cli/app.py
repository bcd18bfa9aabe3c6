"""Imports the user's Python file or module, whose tasks and workflows a command uses.

It also opens the application that the file has, or makes one for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from rhythm.cli.command import UsageError
from rhythm.cli.database import read_settings
from rhythm.suggest import nearest

if TYPE_CHECKING:
    from rhythm.app import Rhythm
    from rhythm.authoring.workflow import Workflow


def load_app(name: str) -> ModuleType:
    """Imports a Python file or module, and returns it.

    `UsageError` if there is none of this name, or if importing it raises an exception. `FlowError`
    with every problem of all its workflows that do not compile.
    """
    from rhythm.app.loading import compile_functions
    from rhythm.authoring.workflow import collecting

    with collecting() as found:
        module = _imported(name)
    compile_functions(found, log=False)
    return module


def load_workflows(file: str) -> list[Workflow[..., Any]]:
    """Imports a Python file, and returns its workflows, also those that do not compile.

    Those of modules that it imports come after its own.
    """
    from rhythm.authoring.workflow import collecting

    with collecting() as found:
        _imported(file)
    path = os.path.realpath(file)
    return sorted(found, key=lambda workflow: os.path.realpath(workflow.file) != path)


def open_app(
    module: ModuleType | None, name: str, database: str | None, workflows: Iterable[str]
) -> Rhythm:
    """Returns the application of an imported file, on the database of `database` if that is given.

    Without an application of its own, it is a new one. `name` is how the file was named: FILE, or
    FILE:NAME for the application NAME in it. The files of `workflows` are registered.
    """
    from rhythm.app import Rhythm

    app = own_app(module, name)
    if app is not None and not database:
        app.register(*workflows)
        return app
    settings = read_settings(database)
    paths = app.settings.workflow_paths if app else settings.workflow_paths
    other = Rhythm(
        settings.database_url,
        paths,
        tasks=app.tasks if app else None,
        auto_migrate=settings.auto_migrate,
    )
    try:
        other.register(*workflows)
    except BaseException:
        other.close()
        raise
    return other


def own_app(module: ModuleType | None, name: str) -> Rhythm | None:
    """Returns the application that an imported file has made; None if it has not made one.

    `name` is how the file was named, as for `open_app`. `UsageError` if it has no application NAME.
    """
    from rhythm.app import Rhythm
    from rhythm.app.default import made

    file, _, variable = name.partition(":")
    if not variable:
        return made()
    app = getattr(module, variable, None)
    if not isinstance(app, Rhythm):
        raise UsageError(f"{file} has no application {variable}: it must be a `rhythm.Rhythm`")
    return app


def only_app(module: ModuleType | None, name: str) -> str:
    """Returns FILE:NAME if a file makes exactly one application; else the file as it was given.

    A file that calls `rhythm.init` has its application there.
    """
    from rhythm.app import Rhythm
    from rhythm.app.default import made

    if ":" in name or module is None or made() is not None:
        return name
    # By identity: `app = other = Rhythm(…)` is one application with two names.
    found = {id(value): each for each, value in vars(module).items() if isinstance(value, Rhythm)}
    return f"{name}:{next(iter(found.values()))}" if len(found) == 1 else name


def _imported(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix == ".py" or path.is_file():
        return _load_file(path)
    _search_first_in("")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name and name.startswith(problem.name):
            raise UsageError(f"there is no file or module {name}") from None
        _refuse(name, problem)
    except Exception as problem:
        _refuse(name, problem)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}{_meant(path)}")
    _search_first_in(str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        # a module that was executed only in part is of no use to anybody
        sys.modules.pop(path.stem, None)
        _refuse(str(path), problem)
    return module


def _meant(path: Path) -> str:
    """Returns the advice to take the file in the same folder that has a similar name."""
    near = nearest(path.name, [each.name for each in path.parent.glob("*.py")])
    return f"; did you mean {path.with_name(near)}?" if near else ""


def _search_first_in(folder: str) -> None:
    """Moves a folder to the head of `sys.path`, so that modules are looked for there first.

    However often it is called, `sys.path` does not grow.
    """
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(0, folder)


def _refuse(name: str, problem: Exception) -> NoReturn:
    """Raises `UsageError` with the user's own traceback, without our frames.

    The exception that the user's code raised is its `__cause__`.
    """
    frames = [
        f
        for f in traceback.extract_tb(problem.__traceback__)
        if "importlib" not in f.filename and f.filename != __file__
    ]
    shown = "".join(traceback.format_list(frames))
    what = "".join(traceback.format_exception_only(problem)).rstrip()
    raise UsageError(f"{name} cannot be loaded\n{shown}{what}") from problem
