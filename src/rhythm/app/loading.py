"""From files and texts to programs: compiles all of them, or reports every problem of every file at
once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rhythm.engine.definitions import definition_of
from rhythm.errors import FlowError, InvalidProgram
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.languages import FOUND_IN_FOLDERS, parse_text, part_of
from rhythm.lang.report import Compilation, named_twice
from rhythm.lang.source import Diagnostic, Source, render_all
from rhythm.limits import DEFAULT_LIMITS
from rhythm.permissions import Scope, within
from rhythm.store.interfaces.definitions import Definition
from rhythm.suggest import nearest, some_of
from rhythm.worker.logs import log_event

if TYPE_CHECKING:
    from rhythm.authoring.workflow import Workflow
    from rhythm.worker.handlers import Task


def read_flows(places: Iterable[str | os.PathLike[str]]) -> dict[str, str]:
    """Returns the texts of these files, and of all `*.flow` and `*.steps.json` below these folders.

    They are returned by file name. A place that contains a line break or a brace is taken for a
    text itself. Raises `FlowError` if a file cannot be read.
    """
    found: dict[str, str] = {}
    for place in places:
        name = os.fspath(place)
        if isinstance(place, str) and ("\n" in name or "{" in name):
            found[
                f"text {len(found) + 1}{'.json' if name.lstrip().startswith('{') else '.flow'}"
            ] = name
        else:
            found.update((file, _text(file)) for file in _files(name))
    return found


def _files(name: str) -> list[str]:
    if os.path.isdir(name):
        return sorted(
            os.path.join(path, file)
            for path, _, files in os.walk(name)
            for file in files
            if file.endswith(FOUND_IN_FOLDERS)
        )
    if not os.path.exists(name):
        raise FlowError([], f"there is no file or folder {name} to read workflows from")
    return [name]


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as problem:
        raise FlowError([], f"cannot read {file}: {problem}") from problem


def compile_flows(
    texts: dict[str, str],
    elsewhere: Iterable[str] = (),
    tasks: Mapping[str, Task[..., Any]] | None = None,
) -> list[Definition]:
    """Returns the definitions of all workflows in these texts.

    Raises `FlowError` with everything that is wrong in any of them; warnings are logged.
    `elsewhere` has the names of workflows that exist besides these, and `tasks` the tasks that are
    known here: other workers may have others.
    """
    parsed = [parse_text(text, file) for file, text in texts.items()]
    names = frozenset(elsewhere).union(*(file.names for file in parsed))
    shapes = {name: task.shape() for name, task in (tasks or {}).items()}
    known = Surroundings(shapes, names, all_tasks=False)
    compiled = [file.compile(known) for file in parsed]
    wrong = [one for one in compiled if one.errors]
    problems = [render_all(one.source, one.diagnostics) for one in wrong] + _twice(compiled)
    if problems:
        raise FlowError(
            [diagnostic for one in wrong for diagnostic in one.diagnostics], "\n\n".join(problems)
        )
    _log_warnings(compiled)
    return [definition for one in compiled for definition in _definitions(one)]


def compile_functions(
    workflows: Sequence[Workflow[..., Any]], log: bool = True
) -> list[Definition]:
    """Returns the definitions of Python workflows.

    Raises `FlowError` with everything that is wrong with any of them; warnings are logged, unless
    `log` is false.
    """
    compiled = [workflow.compilation for workflow in workflows]
    wrong = [one for one in compiled if one.errors]
    if wrong:
        raise FlowError(
            [diagnostic for one in wrong for diagnostic in one.diagnostics],
            "\n\n".join(render_all(one.source, one.diagnostics) for one in wrong),
        )
    if log:
        _log_warnings(compiled)
    return [definition for one in compiled for definition in _definitions(one)]


def log_warning(source: Source, found: Diagnostic) -> None:
    """Logs what is most likely a mistake in a workflow."""
    place = f"{source.name}:{source.position(found.start)[0]}"
    log_event("workflow_warned", place=place, code=found.code, detail=found.message)


# What is done with a warning. `rhythm dev` shows it to the person at the keyboard instead.
on_warning: ContextVar[Callable[[Source, Diagnostic], None]] = ContextVar(
    "on_warning", default=log_warning
)
_logged: set[tuple[str, Diagnostic]] = set()  # by this process: each warning once


def _log_warnings(compiled: Sequence[Compilation]) -> None:
    """Tells what is most likely a mistake, once in the life of the process."""
    for one in compiled:
        for found in one.diagnostics:
            if found.severity != "warning" or (one.source.name, found) in _logged:
                continue
            _logged.add((one.source.name, found))
            on_warning.get()(one.source, found)


def _twice(compiled: Sequence[Compilation]) -> list[str]:
    """Returns an error for each name that several workflows have."""
    return [
        f"error: two workflows are called `{name}`: {' and '.join(places)}"
        for name, places in named_twice(compiled).items()
    ]


def _definitions(one: Compilation) -> Iterator[Definition]:
    """Yields the definitions of a file.

    Raises `FlowError` if its programs together exceed the limit.
    """
    room = DEFAULT_LIMITS.program_bytes
    for program in one.programs:
        try:
            definition = definition_of(program, one.source.text, room=room)
        except InvalidProgram as problem:
            raise FlowError([], f"{one.source.name}: {problem}") from problem
        room -= len(definition.program.encode())
        yield definition


def source_within(definition: Definition, scope: Scope) -> str:
    """Returns the text of a workflow's file, or only its own part of it.

    Only its own part is returned if the file has other workflows that are out of scope. Of a Python
    file only the function itself is stored.
    """
    if definition.language == "python":
        return definition.source
    return part_of(
        definition.source, definition.file, definition.name, lambda name: within(scope, name)
    )


def no_workflow(name: Any, names: Sequence[str]) -> str:
    """Returns the message that there is no such workflow, and which one may have been meant."""
    near = nearest(name, names) if isinstance(name, str) else None
    help = (
        f"did you mean `{near}`?"
        if near
        else f"registered are {some_of(names)}"
        if names
        else "none is registered yet: `rhythm worker --app FILE` and `rhythm start FILE` register "
        "those of a file"
    )
    return f"there is no workflow `{name!s:.200}`; {help}"
