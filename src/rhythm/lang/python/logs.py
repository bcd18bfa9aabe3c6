"""`print` and loggers: what a workflow says goes to the log of its execution."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.kept import as_lists, shown
from rhythm.lang.python.translation import Translation


def logged(t: Translation, node: ast.Call) -> Node | None:
    """Returns `print(…)` or a call of a logger as a command of the log; None if it is neither."""
    if t.outside(node.func) is print:
        return _printed(t, node)
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in LOGGED:
        return None
    if not _is_logger(t.outside(node.func.value)):
        return None
    at, named = t.at(node), {keyword.arg: keyword.value for keyword in node.keywords}
    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
    by_number = node.func.attr == "log"  # log.log(level, message, …)
    if starred or len(node.args) <= by_number or named.keys() - _LOG_OPTIONS:
        return t.refuse("P033", node, "a logger takes a message and its values, and extra= here")
    values = t.values([*node.args, *([named["extra"]] if "extra" in named else [])])
    fields = [values.pop()] if "extra" in named else []
    level = at.call("py.str", values.pop(0)) if by_number else at.literal(node.func.attr)
    parts = [shown(t, arg, value) for arg, value in zip(node.args[by_number:], values, strict=True)]
    more = at.object({"level": level})
    extra = [at.call("py.bitor", fields[0], more)] if fields else [more]
    return at.call("log", _message(t, node, parts), *extra)


def _places(template: Any) -> int | None:
    """Returns how many values a message has places for; None if they are given by name."""
    text = str(template).replace("%%", "")
    return None if "%(" in text else text.count("%") + text.count("*")


_LOG_OPTIONS = frozenset({"extra", "exc_info", "stack_info", "stacklevel"})


def _message(t: Translation, node: ast.Call, parts: Sequence[Node]) -> Node:
    """Returns a message with its values in place; a single dict gives values by name."""
    at, (template, *values) = t.at(node), parts
    if not values:
        return at.call("py.str", template)
    places = _places(template.value) if isinstance(template, nodes.Literal) else None
    if places is not None and places != len(values):
        return t.refuse(
            "P033",
            node,
            f"the message has {places} places for {len(values)} values",
            "write a %s for each value, or an f-string",
        )
    by_name = isinstance(template, nodes.Literal) and "%(" in str(template.value)
    return at.call("py.percent", template, values[0] if by_name else at.list(values))


def _printed(t: Translation, node: ast.Call) -> Node:
    """Returns `print(…)`: a line of the log. What ends the line does not matter there."""
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    if named.keys() - {"sep", "end", "flush"}:
        return t.refuse(
            "P033",
            node,
            "`print` writes to the log of the execution, with sep= only",
            "write a file in a task",
        )
    at = t.at(node)
    inner = [arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args]
    separator = [named["sep"]] if "sep" in named else []
    values = t.values([*map(as_lists, inner), *separator])
    mark = values.pop() if separator else at.literal(" ")
    texts: list[Node] = []
    for arg, value in zip(node.args, values, strict=True):
        if isinstance(arg, ast.Starred):
            each = t.hidden("each")
            listed = at.comprehension(
                at.call("py.str", at.name(each)), each, at.call("py.iter", value)
            )
            texts.append(nodes.Spread(at.start, at.end, listed))
        else:
            texts.append(at.call("py.str", shown(t, arg, value)))
    if len(texts) == 1 and not isinstance(texts[0], nodes.Spread):
        return at.call("log", texts[0])
    joined = at.call("py.method", mark, at.literal("join"), at.list([at.list(texts)]))
    return at.call("log", joined)


def _is_logger(owner: Any) -> bool:
    import logging

    return isinstance(owner, logging.Logger | logging.LoggerAdapter) or owner is logging


LOGGED = frozenset("debug info warning error critical exception log".split())
