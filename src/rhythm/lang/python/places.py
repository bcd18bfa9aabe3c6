"""The source of a Python function, and where in its file each piece of it is."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Callable
from typing import Any

from rhythm.lang.source import Source
from rhythm.record import Record


class Unreadable(Exception):
    """The source of a function cannot be found or parsed."""


class FunctionText(Record):
    """A function as it is written.

    `source` has empty lines in place of what comes before the function in its file, so that lines
    have their numbers. `own` is the text of the function alone, on which its version depends.
    """

    source: Source
    own: str
    tree: ast.AsyncFunctionDef
    first_line: int

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Returns the offsets in the source at which a piece of the tree begins and ends."""
        line, column = getattr(node, "lineno", self.first_line), getattr(node, "col_offset", 0)
        start = self._offset(line, column)
        end_line, end_column = (
            getattr(node, "end_lineno", None),
            getattr(node, "end_col_offset", None),
        )
        if end_line is None or end_column is None:
            return start, start + 1
        return start, max(self._offset(end_line, end_column), start)

    def _offset(self, line: int, column: int) -> int:
        begin = self.source.lines[min(line, len(self.source.lines)) - 1]
        text = self.source.line(min(line, len(self.source.lines)))
        # Python counts bytes; a text that has only ASCII has as many characters.
        return begin + (
            column
            if text.isascii()
            else len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))
        )


def read_function(function: Callable[..., Any]) -> FunctionText:
    """Returns the text of a function. Raises `Unreadable` if it cannot be had."""
    code = inspect.unwrap(function).__code__
    plain = function.__func__ if isinstance(function, staticmethod) else function
    if inspect.unwrap(plain) is not plain:
        raise Unreadable(
            "another decorator is below @rhythm.workflow: the source is compiled, so what that "
            "does would not be done; write it in the workflow, or in a task"
        )
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(function))
    except (OSError, TypeError) as problem:
        raise Unreadable(
            "its source cannot be read: write the workflow in a file or a notebook cell, not in "
            f"`exec` or `python -c` ({problem})"
        ) from None
    first = max(first, 1)
    text = "".join(lines)
    return FunctionText(
        Source(shown_name(code.co_filename), "\n" * (first - 1) + text),
        inspect.cleandoc("\n" + text) if text[:1].isspace() else text,
        _parsed(text, first, function.__name__),
        first,
    )


def shown_name(file: str) -> str:
    """Returns the name of a file for people: from the working directory, if it is below that."""
    try:
        near = os.path.relpath(file)
    except (OSError, ValueError):  # the working directory is gone, or on another drive
        return file
    return file if near.startswith(os.pardir) else near


def _parsed(text: str, first: int, name: str) -> ast.AsyncFunctionDef:
    """Returns the tree of the function, with the line numbers of its file."""
    indented = text[:1].isspace()
    try:
        module = ast.parse("if 1:\n" * indented + text)
    except (SyntaxError, RecursionError, MemoryError) as problem:
        raise Unreadable(f"its source cannot be parsed: {problem}") from None
    ast.increment_lineno(module, first - 1 - indented)
    for node in ast.walk(module):
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and node.name == name:
            if isinstance(node, ast.FunctionDef):
                raise Unreadable(f"a workflow is an `async def`: write `async def {name}(…)`")
            return node
    raise Unreadable("a workflow is an `async def`: write @rhythm.workflow above one")
