"""Reports all problems in workflow files, of all files at once.

A Python file is imported, so its top level runs; the bodies of its workflows do not. In folders,
only .flow and JSON steps files are looked for.

Exit code 0: there is no error; 1: there is one; 2: a file cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rhythm.cli.command import Arguments, argument, command, option
from rhythm.cli.files import find_files, is_python, read_source
from rhythm.cli.output import print
from rhythm.cli.types import FileName, OneOf
from rhythm.lang.flow.rules.surroundings import Surroundings, TaskShape
from rhythm.lang.languages import parse_text
from rhythm.lang.report import Checked, named_twice
from rhythm.lang.source import Diagnostic, as_json, render_all
from rhythm.record import Record

if TYPE_CHECKING:
    from rhythm.ir.failures import Failure
    from rhythm.lang.flow.check import ParsedFlow
    from rhythm.lang.report import Compilation
    from rhythm.lang.steps.check import ParsedSteps

SEVERITIES = ("error", "warning", "note")


@command(__doc__)
@argument(
    "files",
    type=FileName(),
    nargs=-1,
    required=True,
    help="a .flow, JSON steps or Python file, a folder of .flow and JSON steps files, or - for "
    "standard input",
)
@option(
    "--format", type=OneOf("text", "json"), default="text", help="text for people, json for editors"
)
@option(
    "--app",
    type=FileName(),
    help="a Python file or module with tasks: calls of tasks are checked, too",
)
@option(
    "--failures",
    is_flag=True,
    help="lists what ends a workflow if it fails: awaits without a try around them",
)
def run(args: Arguments) -> int:
    files = find_files(args.files)
    found = [
        _python(name) if is_python(name) else parse_text(read_source(name), name) for name in files
    ]
    names = frozenset().union(*(file.names for file in found)) if len(found) > 1 else None
    known = Surroundings(_tasks(args.app), names)
    checked = _unambiguous([one for file in found for one in _checked(file, known, args.failures)])
    failures = _failures(checked) if args.failures else None
    counts = {
        severity: sum(d.severity == severity for c in checked for d in c.diagnostics)
        for severity in SEVERITIES
    }
    if args.format == "json":
        _print_json(checked, counts, failures)
    else:
        _print_text(len(files), checked, counts)
        if not counts["error"]:
            _print_failures(failures)
    return 1 if counts["error"] else 0


class _Python(Record):
    """A Python file that was imported: its workflows, compiled."""

    names: frozenset[str]
    compiled: list[Compilation]


def _python(name: str) -> _Python:
    from rhythm.cli.app import load_workflows

    found = load_workflows(name)
    return _Python(frozenset(w.name for w in found), [w.compilation for w in found])


def _checked(
    file: ParsedFlow | ParsedSteps | _Python, known: Surroundings, programs: bool
) -> Sequence[Checked]:
    """Returns what is wrong with a file; with its programs, if they are needed."""
    if isinstance(file, _Python):
        from rhythm.lang.python.operations import checked_against

        return [checked_against(one, known) for one in file.compiled]
    return [file.compile(known) if programs else file.check(known)]


def _unambiguous(checked: list[Checked]) -> list[Checked]:
    """Returns the files, with an error at each workflow whose name another one has, too."""
    twice = named_twice(checked)
    if not twice:
        return checked
    return [one.replace(diagnostics=[*one.diagnostics, *_ambiguous(one, twice)]) for one in checked]


def _ambiguous(one: Checked, twice: dict[str, list[str]]) -> Iterator[Diagnostic]:
    for workflow, _ in one.workflows:
        if workflow.name in twice:
            message = (
                f"two workflows are called `{workflow.name}`: {' and '.join(twice[workflow.name])}"
            )
            end = workflow.start + 1
            yield Diagnostic("F021", "error", message, workflow.start, end, help=("rename one",))


class _Unhandled(Record):
    """An await whose failure ends its workflow."""

    file: str
    workflow: str
    failure: Failure


def _failures(checked: Sequence[Checked]) -> list[_Unhandled]:
    from rhythm.ir.failures import unhandled

    return [
        _Unhandled(one.source.name, program.name, failure)
        for one in checked
        for program in getattr(one, "programs", ())
        for failure in unhandled(program)
    ]


def _tasks(app: str | None) -> dict[str, TaskShape] | None:
    if app is None:
        return None
    from rhythm.cli.app import load_workflows
    from rhythm.worker.handlers import default_tasks

    load_workflows(app)  # one of them that does not compile is no problem of these files
    return default_tasks.shapes()


def _print_json(
    checked: list[Checked], counts: dict[str, int], failures: list[_Unhandled] | None
) -> None:
    import json

    from rhythm.cli.output.documents import print_json

    found = [as_json(c.source, diagnostic) for c in checked for diagnostic in c.diagnostics]
    document: dict[str, Any] = {f"{severity}s": count for severity, count in counts.items()} | {
        "diagnostics": found
    }
    if failures is not None:
        document["failures"] = [
            {
                "file": one.file,
                "workflow": one.workflow,
                "line": one.failure.line,
                "column": one.failure.column,
                "awaits": one.failure.what,
            }
            for one in failures
        ]
    print_json(json.dumps(document, ensure_ascii=False, indent=2))


def _print_text(count: int, checked: list[Checked], counts: dict[str, int]) -> None:
    for c in checked:
        if c.diagnostics:
            print(render_all(c.source, c.diagnostics), end="\n\n")
    workflows = sum(len(c.workflows) for c in checked)
    found = [_plural(count, severity) for severity, count in counts.items() if count]
    files = _plural(count, "file")
    print(
        f"{files}: {', '.join(found)}"
        if found
        else f"{files}, {_plural(workflows, 'workflow')}: no problems"
    )


def _print_failures(failures: list[_Unhandled] | None) -> None:
    if failures is None:
        return
    print("\nwhat ends a workflow if it fails:" if failures else "\nno failure ends a workflow")
    for one in failures:
        print(f"  {one.file}:{one.failure.line}  {one.workflow}  {one.failure.what}")


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
