"""Methods of values: those that give something, and those that change their object."""

from __future__ import annotations

import ast
from datetime import datetime, timedelta

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.arguments import is_known_list, listed, listed_pairs, named_arguments
from rhythm.lang.python.effects import CHANGING, METHODS, is_result
from rhythm.lang.python.functions import sort_keys
from rhythm.lang.python.hints import hint_of, is_enum, is_value, iterated, without_none
from rhythm.lang.python.kept import KEPT_AS
from rhythm.lang.python.names import Model, model_of
from rhythm.lang.python.targets import place_of
from rhythm.lang.python.times import method_of_time
from rhythm.lang.python.translation import Translation
from rhythm.suggest import nearest

INSTEAD = {
    "format": 'write an f-string: f"{a} {b}"',
    "encode": "values are JSON here, which has no bytes: do it in a task",
    "fromkeys": "write a comprehension: {key: value for key in keys}",
}


def method(t: Translation, node: ast.Call, function: ast.Attribute) -> Node:
    """Returns what a method gives; one that changes its object changes the variable, too."""
    hint = without_none(hint_of(t, function.value))
    if hint in (datetime, timedelta):
        return method_of_time(t, node, function, hint)
    if isinstance(function.value, ast.Name) and function.value.id in t.errors:
        return t.refuse("P061", node, "an exception has no methods here")
    if hint in KEPT_AS or (is_enum(hint) and not is_value(hint)):
        kept = KEPT_AS.get(hint, "its value")
        return t.refuse(
            "P061",
            node,
            f"a {hint.__name__} is kept as {kept} here",
            "call this in a task that takes the value",
        )
    if function.attr in ("startswith", "endswith") and is_known_list(t, node.args[:1]):
        return t.refuse(
            "P052",
            node.args[0],
            f"`{function.attr}` takes a tuple in Python",
            'write the texts in brackets: ("a", "b")',
        )
    model = model_of(hint)
    if is_result(node) and model is None:  # no value has such a method, but what was started
        return t.pinned(t.at(node).awaited(t.value(function.value)))
    if model is not None:
        return _method_of_model(t, node, function, model)
    if function.attr in CHANGING:
        return changed(t, node, function, used=True)
    if function.attr not in METHODS:
        t.value(function.value)  # what is wrong with the object comes first
        near = nearest(function.attr, METHODS | CHANGING)
        return t.refuse(
            "P062",
            function,
            f"the method `{function.attr}` is not there in a workflow",
            INSTEAD.get(function.attr)
            or (f"did you mean `{near}`?" if near else "put this in a task"),
        )
    at = t.at(node)
    parts = [function.value, *node.args, *(keyword.value for keyword in node.keywords)]
    target, *given = t.values([listed(t, part) for part in parts])
    args, named = given[: len(node.args)], given[len(node.args) :]
    more = named_arguments(t, node, named)
    return at.call(
        "py.method", target, at.literal(function.attr), at.list(args), *([more] if more else [])
    )


def _method_of_model(t: Translation, node: ast.Call, function: ast.Attribute, model: Model) -> Node:
    return t.refuse(
        "P061",
        node,
        f"`{model.cls.__name__}` is kept as its fields: `{function.attr}` is not among them",
        "put this in a task that takes the value",
    )


def changed(t: Translation, node: ast.Call, function: ast.Attribute, used: bool) -> Node:
    """Writes a method that changes its object: the variable gets the changed copy.

    `used`: returns what the method gives; else that is not needed.
    """
    at, hint = t.at(node), without_none(hint_of(t, function.value))
    if (model := model_of(hint)) is not None:
        return _method_of_model(t, node, function, model)
    if hint in (str, int, float, bool) or hint in KEPT_AS:
        return t.refuse(
            "P061",
            node,
            f"a {hint.__name__} has no method `{function.attr}`",
            "give the variable a hint: a list or a dict",
        )
    if function.attr == "sort":
        return _sorted_in_place(t, node, function)
    place = place_of(t, function.value)
    place = place and place.kept(t, node)
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    as_argument = listed_pairs if function.attr == "update" else listed
    given = t.values([as_argument(t, part) for part in parts])
    if place is None:
        return nodes.Broken(at.start, at.end)
    args, more = given[: len(node.args)], named_arguments(t, node, given[len(node.args) :])
    if function.attr == "append" and len(args) == 1 and more is None and not used:
        t.write(place.written(at, at.call("py.append", place.read(at), args[0])))
        return at.literal(None)
    made = at.call(
        "py.changed",
        place.read(at),
        at.literal(function.attr),
        at.list(args),
        *([more] if more else []),
    )
    if not used:
        t.write(place.written(at, at.index(made, 0)))
        return at.literal(None)
    both = t.pinned(made)
    t.write(place.written(at, at.index(both, 0)))
    return at.index(both, 1)


def _sorted_in_place(t: Translation, node: ast.Call, function: ast.Attribute) -> Node:
    at, place = t.at(node), place_of(t, function.value)
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if place is None or node.args or given.keys() - {"key", "reverse"}:
        return t.refuse("P033", node, "`sort` takes key= and reverse=")
    options = {"reverse": t.value(given["reverse"])} if "reverse" in given else {}
    hint = iterated(t, function.value)
    keys = sort_keys(t, node, place.read(at), given.get("key"), hint)
    if keys is None:
        return nodes.Broken(at.start, at.end)
    if keys[1] is not None:
        options["keys"] = keys[1]
    parts = at.literal("sort"), at.list([]), at.object(options)
    t.write(place.written(at, at.index(at.call("py.changed", place.read(at), *parts), 0)))
    return at.literal(None)
