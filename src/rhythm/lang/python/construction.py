"""Values of classes: dataclasses that are made, members of enumerations."""

from __future__ import annotations

import ast
import enum
from datetime import date, datetime, time
from typing import Any

from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.awaits import ASYNCIO_ADVICE
from rhythm.lang.python.hints import hint_of
from rhythm.lang.python.names import MISSING, json_of, model_of
from rhythm.lang.python.times import moment
from rhythm.lang.python.translation import Translation

# What to write in place of classes whose instances cannot be made.
CLASS_ADVICE = {
    "Counter": "count in a dict: counts[key] = counts.get(key, 0) + 1",
    "OrderedDict": "use a dict: it keeps the order of its keys",
    "chain": "write a list: [*first, *second]",
    "defaultdict": "use a dict: found[key] = found.get(key, 0) + 1, or found.setdefault(key, [])",
    "deque": "use a list",
}


def constructed(t: Translation, node: ast.Call, cls: type) -> Node:
    """Returns an instance of a model: an object with its fields."""
    if issubclass(cls, enum.Enum):
        return _member(t, node, cls)
    if cls is datetime:
        return moment(t, node)
    if cls in (date, time):
        return t.refuse(
            "P090",
            node,
            f"a {cls.__name__} is kept as ISO text here",
            "make it in a task, or use a datetime",
        )
    model = model_of(cls)
    if model is None or not model.plain:
        of_asyncio = cls.__module__.partition(".")[0] == "asyncio"
        return t.refuse(
            "P022",
            node,
            f"`{cls.__name__}` is a class whose instances cannot be made here",
            (ASYNCIO_ADVICE if of_asyncio else CLASS_ADVICE).get(cls.__name__)
            or "return it from a task, or use a dict or a plain dataclass",
        )
    names = list(model.fields)
    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
    if starred or any(keyword.arg is None for keyword in node.keywords):
        return t.refuse("P033", node, f"write the fields of `{cls.__name__}` one by one")
    given = [*names[: len(node.args)], *(str(keyword.arg) for keyword in node.keywords)]
    missing = [name for name in names if name not in given and name not in model.defaults]
    odd = [name for name in given if name not in names]
    if missing or odd or len(node.args) > len(names) or len(given) > len(set(given)):
        wrong = f"also needs `{missing[0]}`" if missing else "is given what it does not have"
        return t.refuse("P033", node, f"`{cls.__name__}` {wrong}", f"it has {', '.join(names)}")
    at = t.at(node)
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    made = dict(zip(given, t.values(parts), strict=True))
    for name, default in model.defaults.items():
        if name not in made:
            made[name] = captured_default(t, node, f"{cls.__name__}.{name}", default)
    return at.object({name: made[name] for name in names})


def _member(t: Translation, node: ast.Call, cls: type[enum.Enum]) -> Node:
    """Returns `Colour(value)`: the value, if there is such a member."""
    values = json_of(list(cls))
    if len(node.args) != 1 or node.keywords or values is MISSING:
        return t.refuse("P033", node, f"`{cls.__name__}` takes one value here")
    at = t.at(node)
    members = t.captured(node, values)
    place = at.call("py.method", members, at.literal("index"), at.list([t.value(node.args[0])]))
    return at.call("py.item", members, place)


def replaced(t: Translation, node: ast.Call) -> Node:
    """Returns `dataclasses.replace(value, field=…)`."""
    model = model_of(hint_of(t, node.args[0])) if len(node.args) == 1 else None
    if model is None or not model.plain:
        return t.refuse(
            "P033",
            node,
            "`replace` takes a plain dataclass whose hint is known",
            "give the variable a hint, or make a new one",
        )
    odd = [k for k in node.keywords if k.arg not in model.fields]
    if odd:
        return t.refuse(
            "P033",
            odd[0].value,
            f"`{model.cls.__name__}` has no such field",
            f"it has {', '.join(model.fields)}",
        )
    at = t.at(node)
    whole, *values = t.values([node.args[0], *(k.value for k in node.keywords)])
    changed = dict(zip([str(k.arg) for k in node.keywords], values, strict=True))
    return at.call("py.bitor", whole, at.object(changed))


def captured_default(t: Translation, node: ast.AST, name: str, value: Any) -> Node:
    """Returns the default of a field or parameter as a literal; refuses one that is not JSON."""
    found = json_of(value)
    if found is MISSING:
        return t.refuse("P024", node, f"the default of `{name}` is not JSON", "give the field")
    return t.at(node).literal(found)
