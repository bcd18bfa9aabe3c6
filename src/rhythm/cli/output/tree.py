"""Draws an execution and its descendants as a tree, on a terminal."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rhythm.cli.output import print
from rhythm.cli.output.table import STYLES
from rhythm.cli.output.terminal import width_of
from rhythm.cli.output.words import printable

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from rhythm.app import ExecutionView, Rhythm

MAX_CHILDREN = 20  # children of one execution that are shown
MAX_DEPTH = 4  # levels of children that are shown
MAX_LINES = 100  # executions that are shown in all


def print_tree(app: Rhythm, execution: ExecutionView) -> None:
    """Draws the children of an execution, and theirs, as a tree.

    It draws nothing if there are no children, or if standard output is not a terminal.
    """
    if not sys.stdout.isatty():
        return
    from rich.tree import Tree

    from rhythm.cli.output.drawing import draw

    tree = Tree(_label(execution), guide_style="dim")
    _grow(app, tree, execution, MAX_DEPTH, itertools.count(1))
    if tree.children:
        print()
        draw(tree, width_of(sys.stdout))


def _grow(
    app: Rhythm, tree: Tree, execution: ExecutionView, deep: int, lines: Iterator[int]
) -> None:
    """Adds the children of an execution, and theirs, until there are enough lines."""
    from rich.text import Text

    if execution.type != "workflow" or not deep:
        return
    children = app.details.children(execution.id, MAX_CHILDREN + 1)
    for shown, child in enumerate(children):
        if shown == MAX_CHILDREN or next(lines) > MAX_LINES:
            tree.add(Text("… and more", "dim"))
            return
        _grow(app, tree.add(_label(child)), child, deep - 1, lines)


def _label(execution: ExecutionView) -> Text:
    from rich.text import Text

    text = Text(f"{printable(execution.name)} ")
    text.append(execution.status, STYLES.get(execution.status, ""))
    return text.append(f" {execution.id}", "dim")
