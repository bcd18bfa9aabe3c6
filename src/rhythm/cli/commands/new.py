"""Writes a small project that works at once: tasks, a workflow in Python, one in Rhythm's own
language, and tests.

DIR is made if it does not exist. Nothing is overwritten: if one of the files is there already,
nothing is written at all. Other files do no harm, and a .gitignore that is there stays as it is.

Exit code 0: it is written; 2: it cannot be written.

  rhythm new shop
  rhythm new .
"""

from __future__ import annotations

import itertools
import os
import shlex

from rhythm.cli.command import Arguments, UsageError, argument, command
from rhythm.cli.output import print
from rhythm.cli.types import FileName
from rhythm.printable import one_line

# The files of the template have this ending, so that no tool takes them for a part of Rhythm.
ENDING = ".template"
TEMPLATE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "template")
IGNORED = ".gitignore"  # a project may well have one
COLUMNS = 22  # of a command, before what it does
EXAMPLE = "shop"  # a folder that is suggested


@command(__doc__)
@argument("dir", type=FileName(), help="the folder to write it to; . is the current one")
def run(args: Arguments) -> int:
    texts = _template()
    folder: str = args.dir
    there = [name for name in texts if os.path.lexists(os.path.join(folder, name))]
    _refuse(folder, [name for name in there if name != IGNORED])
    written = {name: text for name, text in texts.items() if name not in there}
    for name, text in written.items():
        _write(os.path.join(folder, name), text)
    where = "here" if os.path.normpath(folder) == "." else f"to {one_line(folder)}"
    print(f"wrote {', '.join(written)} {where}")
    if IGNORED in there:
        print(f"{IGNORED} stays as it is: add a line rhythm.db* to it, for the database")
    for line, does in _next(folder):
        print(f"  {line:<{COLUMNS}}{f'# {does}' if does else ''}".rstrip())
    return 0


def _template() -> dict[str, str]:
    """Returns the texts of the project's files, by their names in the project."""
    found: dict[str, str] = {}
    for path, folders, files in os.walk(TEMPLATE):
        folders.sort()
        for file in sorted(files):
            if file.endswith(ENDING):
                full = os.path.join(path, file)
                name = os.path.relpath(full, TEMPLATE).removesuffix(ENDING)
                with open(full, encoding="utf-8") as opened:
                    found[name] = opened.read()
    return found


def _refuse(folder: str, there: list[str]) -> None:
    """Raises `UsageError` if the project cannot be written to this folder."""
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UsageError(f"{folder} is a file: name a folder, such as {_another(folder)}")
    if there:
        raise UsageError(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} in {folder} already, and "
            f"nothing is overwritten: name another folder, such as {_another(folder)}"
        )


def _another(folder: str) -> str:
    """Returns the command for a folder with a similar name, of which there is none yet."""
    given = os.path.normpath(folder)
    name = EXAMPLE if os.path.basename(given) in ("", os.curdir, os.pardir) else given
    names = itertools.chain([name], (f"{name}{number}" for number in itertools.count(2)))
    free = next(each for each in names if not os.path.lexists(each))
    return f"rhythm new {shlex.quote(free)}"


def _write(path: str, text: str) -> None:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise UsageError(f"cannot write {path}: {why}; name another folder") from None


def _next(folder: str) -> list[tuple[str, str]]:
    """Returns the commands to go on with, and what each of them does."""
    there = os.path.normpath(folder) == "."
    return [
        *([] if there else [(one_line(f"cd {shlex.quote(folder)}"), "")]),
        ("rhythm dev", "runs it, and says what to try"),
        ("pip install pytest", "once, for its tests"),
        ("python -m pytest", "tests it: two days take no time there"),
    ]
