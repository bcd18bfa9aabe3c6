"""Reports all problems in workflow files, of all files at once.

Exit code 0: there is no error; 1: there is one; 2: a file cannot be read.
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, argument, command, option
from rhythm.cli.files import find_files, read_source
from rhythm.cli.output import print
from rhythm.cli.types import FileName, OneOf
from rhythm.lang.flow.rules.surroundings import Surroundings, TaskShape
from rhythm.lang.languages import parse_text
from rhythm.lang.report import Checked
from rhythm.lang.source import as_json, render_all

SEVERITIES = ("error", "warning", "note")


@command(__doc__)
@argument(
    "files",
    type=FileName(),
    nargs=-1,
    required=True,
    help="a .flow or JSON steps file, a folder of them, or - for standard input",
)
@option(
    "--format", type=OneOf("text", "json"), default="text", help="text for people, json for editors"
)
@option(
    "--app",
    type=FileName(),
    help="a Python file or module with tasks: calls of tasks are checked, too",
)
def run(args: Arguments) -> int:
    parsed = [parse_text(read_source(name), name) for name in find_files(args.files)]
    names = frozenset().union(*(file.names for file in parsed)) if len(parsed) > 1 else None
    known = Surroundings(_tasks(args.app), names)
    checked = [file.check(known) for file in parsed]
    counts = {
        severity: sum(d.severity == severity for c in checked for d in c.diagnostics)
        for severity in SEVERITIES
    }
    _print_json(checked, counts) if args.format == "json" else _print_text(checked, counts)
    return 1 if counts["error"] else 0


def _tasks(app: str | None) -> dict[str, TaskShape] | None:
    if app is None:
        return None
    from rhythm.cli.app import load_app
    from rhythm.worker.handlers import default_tasks

    load_app(app)
    return default_tasks.shapes()


def _print_json(checked: list[Checked], counts: dict[str, int]) -> None:
    import json

    from rhythm.cli.output.documents import print_json

    found = [as_json(c.source, diagnostic) for c in checked for diagnostic in c.diagnostics]
    document = {f"{severity}s": count for severity, count in counts.items()} | {
        "diagnostics": found
    }
    print_json(json.dumps(document, ensure_ascii=False, indent=2))


def _print_text(checked: list[Checked], counts: dict[str, int]) -> None:
    for c in checked:
        if c.diagnostics:
            print(render_all(c.source, c.diagnostics), end="\n\n")
    workflows = sum(len(c.workflows) for c in checked)
    found = [_plural(count, severity) for severity, count in counts.items() if count]
    files = _plural(len(checked), "file")
    print(
        f"{files}: {', '.join(found)}"
        if found
        else f"{files}, {_plural(workflows, 'workflow')}: no problems"
    )


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
