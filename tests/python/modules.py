"""Texts as modules: what a user writes in a file, and decorates."""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path
from typing import Any

from rhythm.authoring.workflow import Workflow, default_workflows
from rhythm.lang.report import Compilation
from rhythm.worker.handlers import default_tasks


def functions_of(text: str, folder: Path, keep: bool = False) -> dict[str, Any]:
    """Returns the names of a module with this text, as after an import.

    Its tasks and workflows are forgotten again, unless they are to be kept.
    """
    place = folder / "module.py"
    place.write_text(text)
    linecache.cache.pop(str(place), None)
    module = types.ModuleType("module")
    sys.modules["module"] = module  # dataclasses look there
    tasks, workflows = default_tasks._tasks, default_workflows._workflows
    try:
        exec(compile(text, str(place), "exec"), vars(module))
    finally:
        if not keep:
            default_tasks._tasks, default_workflows._workflows = tasks, workflows
    return vars(module)


def compiled(text: str, folder: Path, name: str = "workflow") -> Compilation:
    """Returns the compilation of one function of a module with this text."""
    return Workflow(functions_of(text, folder)[name], name, {}).compilation
