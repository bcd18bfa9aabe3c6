"""Reports everything that is wrong with workflow files: all problems of all files in one go."""

from __future__ import annotations

import argparse
import json

from rhythm.cli.files import find_files, load_app, read_source
from rhythm.lang.flow import Compilation, Known, compile_flow, workflow_names
from rhythm.lang.flow.resolver import TaskShape
from rhythm.lang.source import as_json, render_all

SEVERITIES = ("error", "warning", "note")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .flow file, a folder of them, or - for standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text for people, json for editors")
    parser.add_argument("--app", metavar="FILE", help="a Python file or module: calls are also checked against its tasks")


def run(args: argparse.Namespace) -> int:
    sources = {name: read_source(name) for name in find_files(args.files)}
    names = frozenset().union(*(workflow_names(text, name) for name, text in sources.items())) if len(sources) > 1 else None
    known = Known(_tasks(args.app), names)
    compiled = [compile_flow(text, name, known) for name, text in sources.items()]
    counts = {severity: sum(d.severity == severity for c in compiled for d in c.diagnostics) for severity in SEVERITIES}
    _print_json(compiled, counts) if args.format == "json" else _print_text(compiled, counts)
    return 1 if counts["error"] else 0


def _tasks(app: str | None) -> dict[str, TaskShape] | None:
    if app is None:
        return None
    from rhythm.worker.handlers import default_tasks

    load_app(app)
    return default_tasks.shapes()


def _print_json(compiled: list[Compilation], counts: dict[str, int]) -> None:
    found = [as_json(c.source, diagnostic) for c in compiled for diagnostic in c.diagnostics]
    print(json.dumps({f"{severity}s": count for severity, count in counts.items()} | {"diagnostics": found}, ensure_ascii=False, indent=2))


def _print_text(compiled: list[Compilation], counts: dict[str, int]) -> None:
    for c in compiled:
        if c.diagnostics:
            print(render_all(c.source, c.diagnostics), end="\n\n")
    workflows = sum(len(c.programs) for c in compiled)
    found = [_plural(count, severity) for severity, count in counts.items() if count]
    files = _plural(len(compiled), "file")
    print(f"{files}: {', '.join(found)}" if found else f"{files}, {_plural(workflows, 'workflow')}: no problems")


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
