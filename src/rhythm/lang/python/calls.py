"""Calls of functions and methods: Python's own, those of known modules, models, helpers."""

from __future__ import annotations

import ast
import enum
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python import comprehensions
from rhythm.lang.python.awaits import ASYNCIO_ADVICE, started, write_start
from rhythm.lang.python.effects import CHANGING, is_result
from rhythm.lang.python.exceptions import class_names
from rhythm.lang.python.hints import (
    hint_of,
    is_enum,
    is_list,
    is_tuple,
    is_value,
    iterated,
    without_none,
)
from rhythm.lang.python.kept import KEPT_AS, as_lists, not_kept, refuse_walk, shown, shows_a_tuple
from rhythm.lang.python.lazy import refused, walked
from rhythm.lang.python.names import (
    MISSING,
    Model,
    callee_of,
    json_of,
    key_of,
    model_of,
    operation_of,
)
from rhythm.lang.python.targets import place_of
from rhythm.lang.python.times import duration, from_text, method_of_time, moment, now
from rhythm.lang.python.translation import Translation
from rhythm.suggest import nearest

Given = Callable[[Translation, ast.Call], Node]
# Modules whose functions do I/O or wait: only a task may.
BLOCKING = frozenset(
    "requests httpx urllib http socket subprocess os shutil pathlib io sqlite3 psycopg boto3 "
    "smtplib ftplib aiohttp redis tempfile glob posix _io nt time".split()
)
METHODS = frozenset(
    "upper lower strip lstrip rstrip split rsplit splitlines join replace startswith endswith "
    "find rfind index rindex count title capitalize swapcase casefold center ljust rjust zfill "
    "isdigit isalpha isalnum isspace isupper islower isnumeric isdecimal isidentifier istitle "
    "isascii removeprefix removesuffix partition rpartition expandtabs copy get keys values items "
    "bit_length bit_count is_integer".split()
)
INSTEAD = {
    "format": 'write an f-string: f"{a} {b}"',
    "encode": "values are JSON here, which has no bytes: do it in a task",
    "fromkeys": "write a comprehension: {key: value for key in keys}",
}


def call(t: Translation, node: ast.Call) -> Node:
    """Returns the value of a call that is not awaited."""
    if (operand := started(t, node)) is not None:
        return t.at(node).name(write_start(t, node, operand, None))
    if (lazy := refused(t, node)) is not None:
        return lazy
    if isinstance(node.func, ast.Attribute) and _is_method(t, node.func):
        return method(t, node, node.func)
    found = t.outside(node.func)
    if isinstance(node.func, ast.Name) and t.is_local(node.func.id):
        return t.refuse("P022", node, f"`{node.func.id}` is a value, and cannot be called")
    if found is MISSING:
        return _unknown_function(t, node)
    if callee_of(found) or _runs_a_task(t, node.func):
        return _not_awaited(t, node)
    if operation := operation_of(found):
        return _operation(t, node, operation)
    return _known_function(t, node, found)


def _is_method(t: Translation, function: ast.Attribute) -> bool:
    """Whether a dotted call is the method of a value, not a function of a module or class."""
    root: ast.AST = function
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or t.is_local(root.id):
        return True
    owner = t.outside(function.value)
    return owner is not MISSING and json_of(owner) is not MISSING


def _runs_a_task(t: Translation, function: ast.AST) -> bool:
    return isinstance(function, ast.Attribute) and bool(callee_of(t.outside(function.value)))


def _not_awaited(t: Translation, node: ast.Call) -> Node:
    written = ast.unparse(node.func)
    callee = callee_of(t.outside(node.func))
    if callee is not None and not callee.is_async:
        return t.refuse("P030", node, f"`{written}` is a task: a workflow awaits it",
                        f"write await {written}.run(…)")  # fmt: skip
    return t.refuse(
        "P030",
        node,
        f"`{written}` is started, and nobody waits for it",
        f"write await {written}(…); to go on meanwhile: started = asyncio.create_task("
        f"{written}(…))",
    )


def _operation(t: Translation, node: ast.Call, operation: str) -> Node:
    written = ast.unparse(node.func)
    if operation in ("publish", "log", "progress", "set_attribute", "send", "cancel"):
        return t.refuse(
            "P030", node, f"`{written}` gives no value", "write it as a statement of its own"
        )
    if operation in ("now", "uuid", "random"):
        return t.at(node).call(operation)
    return t.refuse("P030", node, f"`{written}` must be awaited", f"write await {written}(…)")


def _unknown_function(t: Translation, node: ast.Call) -> Node:
    written = ast.unparse(node.func)
    if isinstance(node.func, ast.Attribute):
        owner = t.outside(node.func.value)
        if owner is not MISSING:
            return _unknown_member(t, node.func, owner)
    near = nearest(written, [*FUNCTIONS, *t.around.similar()])
    return t.refuse(
        "P020",
        node.func,
        f"there is no function `{written}`",
        f"did you mean `{near}`?" if near else "",
    )


def _unknown_member(t: Translation, function: ast.Attribute, owner: Any) -> Node:
    """Refuses the call of something that a task, a module or an object of the module has not."""
    written, of = ast.unparse(function), ast.unparse(function.value)
    if (callee := callee_of(owner)) is not None:
        called = of if callee.is_async else f"{of}.run"
        return t.refuse("P020", function, f"`{written}` is not there: `{of}` is awaited",
                        f"write await {called}(…); to go on meanwhile: started = "
                        f"asyncio.create_task({called}(…))")  # fmt: skip
    if not isinstance(owner, types.ModuleType | type):
        return t.refuse("P024", function, f"`{of}` is an object of the module: it cannot be kept",
                        f"put this in a task: a function with @rhythm.task that calls {written}(…)"
                        )  # fmt: skip
    near = nearest(function.attr, [name for name in dir(owner) if not name.startswith("_")])
    return t.refuse(
        "P020",
        function,
        f"there is no function `{written}`",
        f"did you mean `{of}.{near}`?" if near else "",
    )


def _known_function(t: Translation, node: ast.Call, found: Any) -> Node:
    key = key_of(found)
    if isinstance(found, type) and issubclass(found, BaseException):
        return t.refuse("P070", node, "an exception is raised, and no value otherwise",
                        f"write raise {ast.unparse(node)}")  # fmt: skip
    asked = key in COMPARING
    if key in COMPUTING and (kept := not_kept(t, *node.args, compared=asked)) is not None:
        return kept
    if key in FUNCTIONS:
        return FUNCTIONS[key](t, node)
    if key.startswith("math.") and key[5:] in MATH:
        return _math(t, node, key[5:])
    if isinstance(found, type) and not key.startswith("builtins."):
        return _constructed(t, node, found)
    own = isinstance(found, types.FunctionType) and not _of_library(found)
    if own and (inlined := _inlined(t, node, found)) is not None:
        return inlined
    return _no_task(t, node, found, key)


def _no_task(t: Translation, node: ast.Call, found: Any, key: str) -> Node:
    written = ast.unparse(node.func)
    root = key.partition(".")[0]
    if key == "builtins.super" or key.startswith("builtins."):
        return t.refuse(
            "P063", node, f"`{written}` is not there in a workflow", BUILTIN_ADVICE.get(
                written, "put this in a task")
        )  # fmt: skip
    if key == "time.sleep":
        return t.refuse("P023", node, "`time.sleep` would block the worker",
                        "write await asyncio.sleep(…) or await rhythm.sleep(…)")  # fmt: skip
    if root in BLOCKING:
        return t.refuse(
            "P023",
            node,
            f"`{written}` reaches outside of the workflow",
            "put this in a task: write a function with @rhythm.task above it, and await that",
        )
    help = ASYNCIO_ADVICE.get(key.rpartition(".")[2]) if root == "asyncio" else None
    if help is None and _of_library(found):
        help = f"put this in a task: a function with @rhythm.task that calls {written}(…)"
    return t.refuse(
        "P022",
        node,
        f"`{written}` is a Python function, and no task",
        help
        or f"put this in a task: @rhythm.task above `{getattr(found, '__name__', written)}`, and "
        f"await it",
    )


def _of_library(found: Any) -> bool:
    """Whether a function is of Python's own library: nobody can put a decorator above it."""
    owner = getattr(found, "__self__", None)  # the class of `date.today`
    module = getattr(found, "__module__", None) or getattr(owner, "__module__", None) or ""
    return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"


BUILTIN_ADVICE = {
    "open": "put this in a task: a workflow does no I/O",
    "input": "wait for a person instead: await rhythm.signal(…) or rhythm.approval(…)",
    "set": "JSON has no sets: {x: True for x in xs} has each once, list(…) of it as a list",
    "frozenset": "JSON has no sets: use a list",
    "tuple": "a tuple would be kept as a list: use list(…)",
    "bytes": "JSON has no bytes: use text",
    "map": "write a comprehension: [f(x) for x in xs]",
    "filter": "write a comprehension: [x for x in xs if …]",
    "iter": "a loop goes over the value itself",
    "next": "write value[0], or a loop with break",
    "getattr": "write value.name, or value[name] of a dict",
    "setattr": "write value.name = …",
    "hasattr": "write name in value, of a dict",
    "type": "write isinstance(x, str)",
    "id": "values have no identity here",
    "hash": "put this in a task",
    "eval": "put this in a task",
    "exec": "put this in a task",
    "callable": "values are JSON here: none can be called",
    "vars": "write the names of the values",
    "locals": "write the names of the values",
    "globals": "constants of the module can be used by their names",
}


CLASS_ADVICE = {
    "Counter": "count in a dict: counts[key] = counts.get(key, 0) + 1",
    "OrderedDict": "use a dict: it keeps the order of its keys",
    "chain": "write a list: [*first, *second]",
    "defaultdict": "use a dict: found[key] = found.get(key, 0) + 1, or found.setdefault(key, [])",
    "deque": "use a list",
}


# Methods.


def method(t: Translation, node: ast.Call, function: ast.Attribute) -> Node:
    """Returns what a method gives; one that changes its object changes the variable, too."""
    hint = without_none(hint_of(t, function.value))
    if hint in (datetime, timedelta):
        return method_of_time(t, node, function, hint)
    if isinstance(function.value, ast.Name) and function.value.id in t.errors:
        return t.refuse("P061", node, "an exception has no methods here")
    if hint in KEPT_AS or (is_enum(hint) and not is_value(hint)):
        kept = KEPT_AS.get(hint, "its value")
        return t.refuse("P061", node, f"a {hint.__name__} is kept as {kept} here",
                        "call this in a task that takes the value")  # fmt: skip
    if function.attr in ("startswith", "endswith") and _is_list(t, node.args[:1]):
        return t.refuse("P052", node.args[0], f"`{function.attr}` takes a tuple in Python",
                        "write the texts in brackets: (\"a\", \"b\")")  # fmt: skip
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
    target, *given = t.values([_listed(t, part) for part in parts])
    args, named = given[: len(node.args)], given[len(node.args) :]
    more = _named(t, node, named)
    return at.call(
        "py.method", target, at.literal(function.attr), at.list(args), *([more] if more else [])
    )


def _is_list(t: Translation, nodes_: Sequence[ast.AST]) -> bool:
    """Whether the first of these is known to be a list, not a tuple."""
    return any(
        isinstance(t.outside(node), list)
        or isinstance(node, ast.List | ast.ListComp)
        or (is_list(hint_of(t, node)) and not is_tuple(t, node))
        for node in nodes_
    )


def _listed(t: Translation, node: ast.AST) -> ast.AST:
    """Returns a generator expression as the list of what it gives, a tuple as a list."""
    if id(node) in t.walked:
        refuse_walk(t, node)
    if isinstance(node, ast.GeneratorExp):
        comprehensions.refuse_awaits(t, node)
        return ast.copy_location(ast.ListComp(node.elt, node.generators), node)
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.List(node.elts, ast.Load()), node)
    return node


def _pairs(t: Translation, node: ast.AST) -> ast.AST:
    """Returns what `dict(…)` takes: pairs may be written as tuples."""
    node = _listed(t, node)
    if isinstance(node, ast.ListComp):
        return ast.copy_location(ast.ListComp(as_lists(node.elt), node.generators), node)
    return as_lists(node) if isinstance(node, ast.expr) else node


def _named(t: Translation, node: ast.Call, values: Sequence[Node]) -> Node | None:
    if any(keyword.arg is None for keyword in node.keywords):
        return t.refuse("P033", node, "`**` cannot stand in this call")
    names = [str(keyword.arg) for keyword in node.keywords]
    return t.at(node).object(dict(zip(names, values, strict=True))) if names else None


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
        return t.refuse("P061", node, f"a {hint.__name__} has no method `{function.attr}`",
                        "give the variable a hint: a list or a dict")  # fmt: skip
    if function.attr == "sort":
        return _sorted_in_place(t, node, function)
    place = place_of(t, function.value)
    place = place and place.kept(t, node)
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    listed = _pairs if function.attr == "update" else _listed
    given = t.values([listed(t, part) for part in parts])
    if place is None:
        return nodes.Broken(at.start, at.end)
    args, more = given[: len(node.args)], _named(t, node, given[len(node.args) :])
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
    keys = _keys(t, node, place.read(at), given.get("key"), hint)
    if keys is None:
        return nodes.Broken(at.start, at.end)
    if keys[1] is not None:
        options["keys"] = keys[1]
    parts = at.literal("sort"), at.list([]), at.object(options)
    t.write(place.written(at, at.index(at.call("py.changed", place.read(at), *parts), 0)))
    return at.literal(None)


# Functions.


def _arguments(
    t: Translation, node: ast.Call, least: int, most: int, named: Sequence[str] = ()
) -> list[Node | None] | None:
    """Returns the arguments in order, None for those that are not given; refuses others."""
    written = ast.unparse(node.func)
    known = {keyword.arg: keyword.value for keyword in node.keywords}
    if any(isinstance(arg, ast.Starred) for arg in node.args) or None in known:
        t.refuse("P033", node, f"`{written}` takes no `*` or `**` here", "write the arguments")
        return None
    if odd := [name for name in known if name not in named]:
        t.refuse("P033", node, f"`{written}` has no argument `{odd[0]}`")
        return None
    order = [*node.args, *(known[name] for name in named if name in known)]
    if not least <= len(node.args) + len(known) or len(node.args) > most:
        t.refuse(
            "P033",
            node,
            f"`{written}` takes {least if least == most else f'{least} to {most}'} arguments, "
            f"not {len(order)}",
        )
        return None
    made = t.values([_listed(t, part) for part in order])
    found: list[Node | None] = [None] * most
    found[: len(node.args)] = made[: len(node.args)]
    for name, value in zip([n for n in named if n in known], made[len(node.args) :], strict=True):
        found[most - len(named) + list(named).index(name)] = value
    return found


def _simple(name: str, least: int, most: int, named: str = "") -> Given:
    """Returns the translation of a function as the builtin `name` with the same arguments."""

    def made(t: Translation, node: ast.Call) -> Node:
        args = _arguments(t, node, least, most, named.split())
        at = t.at(node)
        if args is None:
            return nodes.Broken(at.start, at.end)
        while args and args[-1] is None:
            args.pop()
        return at.call(name, *(at.literal(None) if arg is None else arg for arg in args))

    return made


def _str(t: Translation, node: ast.Call) -> Node:
    if not node.args and not node.keywords:
        return t.at(node).literal("")
    args = _arguments(t, node, 1, 1)
    if args is None or args[0] is None or shows_a_tuple(t, node.args[0]):
        return t.at(node).literal("")
    return t.at(node).call("py.str", shown(t, node.args[0], args[0]))


COMPARING = frozenset({"builtins.min", "builtins.max", "builtins.sorted"})
COMPUTING = COMPARING | {f"builtins.{name}" for name in "sum abs round int divmod pow".split()}


def _bool(t: Translation, node: ast.Call) -> Node:
    args = _arguments(t, node, 0, 1)
    at = t.at(node)
    return at.call("py.truth", args[0]) if args and args[0] else at.literal(False)


def _number(name: str, empty: Any) -> Given:
    def made(t: Translation, node: ast.Call) -> Node:
        if not node.args and not node.keywords:
            return t.at(node).literal(empty)
        return _simple(f"py.{name}", 1, 2 if name == "int" else 1, "base" if name == "int" else "")(
            t, node
        )

    return made


def _dict(t: Translation, node: ast.Call) -> Node:
    at = t.at(node)
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    if len(node.args) > 1 or any(keyword.arg is None for keyword in node.keywords):
        return t.refuse("P033", node, "`dict` takes one value, and names here")
    made = t.values([_pairs(t, part) if part in node.args else part for part in parts])
    named = dict(zip([str(k.arg) for k in node.keywords], made[len(node.args) :], strict=True))
    if not node.args:
        return at.object(named)
    first = at.call("py.dict", made[0])
    return at.call("py.bitor", first, at.object(named)) if named else first


def _zip(t: Translation, node: ast.Call) -> Node:
    at = t.at(node)
    strict = [k.value for k in node.keywords if k.arg == "strict"]
    if len(strict) < len(node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
        return t.refuse("P033", node, "`zip` takes lists, and strict=")
    made = t.values([_listed(t, part) for part in [*node.args, *strict]])
    asked = at.call("py.truth", made.pop()) if strict else at.literal(False)
    return at.call("py.zip", asked, *made)


def _sorted(t: Translation, node: ast.Call) -> Node:
    at = t.at(node)
    if len(node.args) != 1:
        return t.refuse("P033", node, "`sorted` takes one value, key= and reverse=")
    source = at.call("py.iter", t.value(_listed(t, node.args[0])))
    made = _ordered(t, node, source, node.keywords, iterated(t, node.args[0]))
    return made or nodes.Broken(at.start, at.end)


def _ordered(
    t: Translation, node: ast.Call, source: Node, keywords: Sequence[ast.keyword], hint: Any
) -> Node | None:
    """Returns the sorted list; `hint` is that of its elements."""
    at = t.at(node)
    given = {keyword.arg: keyword.value for keyword in keywords}
    if odd := given.keys() - {"key", "reverse"}:
        t.refuse("P033", node, f"there is no argument `{sorted(map(str, odd))[0]}`")
        return None
    reverse = t.value(given["reverse"]) if "reverse" in given else None
    keys = _keys(t, node, source, given.get("key"), hint) if "key" in given else (source, None)
    if keys is None:
        return None
    more = [keys[1]] if keys[1] is not None else []
    return at.call("py.sorted", keys[0], reverse or at.literal(False), *more)


def _keys(
    t: Translation, node: ast.AST, source: Node, key: ast.expr | None, hint: Any
) -> tuple[Node, Node | None] | None:
    """Returns the list, and the list of the keys by which it is sorted."""
    if key is None or (isinstance(key, ast.Constant) and key.value is None):
        return source, None
    function = _one_argument(t, key)
    if function is None:
        t.refuse("P011", key, "the key of a sort is a lambda of one argument, or str, len, abs …",
                 'write key=lambda item: item["name"]')  # fmt: skip
        return None
    if not isinstance(source, nodes.Name) and not t.pure:
        source = t.pinned(source)
    t.inner_hints.append({function[0].arg: hint})
    keys = comprehensions.each(t, *function, source, node)
    t.inner_hints.pop()
    return source, keys


def _one_argument(t: Translation, key: ast.expr) -> tuple[ast.arg, ast.expr] | None:
    if isinstance(key, ast.Lambda):
        args = key.args
        one = len(args.args) == 1 and not (args.vararg or args.kwarg or args.kwonlyargs)
        return (args.args[0], as_lists(key.body)) if one and not t.effects.has(key.body) else None
    found = t.outside(key)
    name = ast.copy_location(ast.Name("item", ast.Load()), key)
    function: ast.expr = key
    if isinstance(key, ast.Attribute) and t.outside(key.value) is str and key.attr in METHODS:
        function = ast.copy_location(ast.Attribute(name, key.attr, ast.Load()), key)
    elif key_of(found) not in FUNCTIONS and not isinstance(found, types.FunctionType):
        return None
    body = ast.copy_location(ast.Call(function, [] if function is not key else [name], []), key)
    return ast.copy_location(ast.arg("item"), key), body


def _extreme(name: str) -> Given:
    def made(t: Translation, node: ast.Call) -> Node:
        at = t.at(node)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if (
            not node.args
            or given.keys() - {"key", "default"}
            or (len(node.args) > 1 and "default" in given)
        ):
            return t.refuse("P033", node, f"`{name}` takes values, key= and default=")
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            return t.refuse("P033", node, f"`{name}` takes no `*` here", f"write {name}(values)")
        values = t.values([_listed(t, arg) for arg in node.args])
        source = at.call("py.iter", values[0]) if len(values) == 1 else at.list(values)
        default = [t.value(given["default"])] if "default" in given else []
        hint = iterated(t, node.args[0]) if len(values) == 1 else hint_of(t, node.args[0])
        keys = _keys(t, node, source, given.get("key"), hint)
        if keys is None:
            return nodes.Broken(at.start, at.end)
        more = [keys[1]] if keys[1] is not None else []
        return at.call(f"py.{name}", keys[0], at.list(default), *more)

    return made


def _decided(name: str) -> Given:
    def made(t: Translation, node: ast.Call) -> Node:
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            return comprehensions.loop_until(t, node, node.args[0], name == "any")
        return _simple(f"py.{name}", 1, 1)(t, node)

    return made


def _isinstance(t: Translation, node: ast.Call) -> Node:
    if len(node.args) != 2 or node.keywords:
        return t.refuse("P033", node, "`isinstance` takes a value and a type")
    names, at = _type_names(t, node.args[1]), t.at(node)
    if isinstance(node.args[0], ast.Name) and node.args[0].id in t.errors:
        classes = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        asked = at.literal(class_names(t, classes))
        return at.call("py.matches", t.value(node.args[0]), asked)
    if names is not None and is_tuple(t, node.args[0]):
        return t.refuse("P052", node, "a tuple is kept as a list, and would be taken for one")
    if names is None:
        return t.refuse(
            "P063",
            node.args[1],
            "only the types of JSON can be told apart: str, int, float, bool, list, dict",
            "look at a field of the value instead",
        )
    return at.call("py.isinstance", t.value(node.args[0]), at.literal(names))


def _type_names(t: Translation, node: ast.AST) -> list[str] | None:
    if isinstance(node, ast.Tuple):
        parts = [_type_names(t, part) for part in node.elts]
        return None if None in parts else [name for part in parts for name in part or ()]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [_type_names(t, node.left), _type_names(t, node.right)]
        return None if None in sides else [name for side in sides for name in side or ()]
    if isinstance(node, ast.Constant) and node.value is None:
        return ["NoneType"]
    found = t.outside(node)
    known = (str, int, float, bool, list, dict, type(None))
    return [found.__name__] if found in known else None


def _math(t: Translation, node: ast.Call, name: str) -> Node:
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        return t.refuse("P033", node, f"`math.{name}` takes values here")
    at = t.at(node)
    return at.call("py.math", at.literal(name), at.list(t.values(node.args)))


MATH = frozenset(
    "floor ceil trunc sqrt log log2 log10 exp pow fabs fsum gcd isclose hypot degrees radians "
    "sin cos tan factorial comb perm".split()
)


# Classes and helper functions.


def _constructed(t: Translation, node: ast.Call, cls: type) -> Node:
    """Returns an instance of a model: an object with its fields."""
    if issubclass(cls, enum.Enum):
        return _member(t, node, cls)
    if cls is datetime:
        return moment(t, node)
    if cls in (date, time):
        return t.refuse("P090", node, f"a {cls.__name__} is kept as ISO text here",
                        "make it in a task, or use a datetime")  # fmt: skip
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
            made[name] = _captured(t, node, f"{cls.__name__}.{name}", default)
    return at.object({name: made[name] for name in names})


def _member(t: Translation, node: ast.Call, cls: type[enum.Enum]) -> Node:
    """Returns `Colour(value)`: the value, if there is such a member."""
    values = json_of(list(cls))
    if len(node.args) != 1 or node.keywords or values is MISSING:
        return t.refuse("P033", node, f"`{cls.__name__}` takes one value here")
    at = t.at(node)
    t.around.take(cls.__name__, values)
    members = t.captured(node, values)
    place = at.call("py.method", members, at.literal("index"), at.list([t.value(node.args[0])]))
    return at.call("py.item", members, place)


def _replaced(t: Translation, node: ast.Call) -> Node:
    """Returns `dataclasses.replace(value, field=…)`."""
    model = model_of(hint_of(t, node.args[0])) if len(node.args) == 1 else None
    if model is None or not model.plain:
        return t.refuse("P033", node, "`replace` takes a plain dataclass whose hint is known",
                        "give the variable a hint, or make a new one")  # fmt: skip
    odd = [k for k in node.keywords if k.arg not in model.fields]
    if odd:
        return t.refuse("P033", odd[0].value, f"`{model.cls.__name__}` has no such field",
                        f"it has {', '.join(model.fields)}")  # fmt: skip
    at = t.at(node)
    whole, *values = t.values([node.args[0], *(k.value for k in node.keywords)])
    changed = dict(zip([str(k.arg) for k in node.keywords], values, strict=True))
    return at.call("py.bitor", whole, at.object(changed))


def _captured(t: Translation, node: ast.AST, name: str, value: Any) -> Node:
    found = json_of(value)
    if found is MISSING:
        return t.refuse("P024", node, f"the default of `{name}` is not JSON", "give the field")
    t.around.take(name, found)
    return t.at(node).literal(found)


def _inlined(t: Translation, node: ast.Call, function: types.FunctionType) -> Node | None:
    """Returns a helper function of the module whose body is one `return`, written in place.

    None if it is not such a function: then it must be a task.
    """
    body = _returned(function)
    if body is None or len(t.bound) > 20:
        return None
    try:
        signature = inspect.signature(function)
        marks = [*node.args, *(keyword.value for keyword in node.keywords)]
        names = [str(keyword.arg) for keyword in node.keywords]
        slots = signature.bind(*node.args, **dict(zip(names, marks[len(node.args) :], strict=True)))
    except TypeError as problem:
        return t.refuse("P033", node, f"`{function.__name__}`: {problem}")
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        return None
    values = dict(zip(map(id, marks), t.values(marks), strict=True))
    scope: dict[str, Node | None] = {}
    for p in signature.parameters.values():
        if p.name in slots.arguments:
            value = values[id(slots.arguments[p.name])]
            simple = isinstance(value, nodes.Name | nodes.Literal) or t.pure > 0
            scope[p.name] = value if simple else t.pinned(value)
        else:
            scope[p.name] = _captured(t, node, f"{function.__name__}({p.name})", p.default)
    return _written_in_place(t, function, body, scope, node)


def _returned(function: types.FunctionType) -> ast.expr | None:
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.decorator_list:
        return None
    body = [
        statement
        for statement in tree.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]
    only = body[0] if len(body) == 1 else None
    return only.value if isinstance(only, ast.Return) else None


def _written_in_place(
    t: Translation,
    function: types.FunctionType,
    body: ast.expr,
    scope: dict[str, Node | None],
    node: ast.Call,
) -> Node:
    from rhythm.lang.python.names import Around

    for each in ast.walk(body):  # problems are shown at the call
        ast.copy_location(each, node)
    t.walked |= walked(body)
    inner = Around(function)
    outer, t.around = t.around, inner
    variables, t.variables = t.variables, set()
    hints, t.hints = t.hints, _parameter_hints(function)
    t.bound.append(scope)
    made = t.value(body)
    t.bound.pop()
    t.around, t.variables, t.hints = outer, variables, hints
    t.around.take(function.__name__, {"source": ast.unparse(body), **inner.taken})
    t.around.shared += inner.shared
    t.around.plain |= inner.plain
    return made


def _parameter_hints(function: types.FunctionType) -> dict[str, Any]:
    from typing import get_type_hints

    try:
        return get_type_hints(function)
    except Exception:  # a hint that cannot be evaluated says nothing
        return {}


FUNCTIONS: dict[str, Given] = {
    "builtins.len": _simple("py.len", 1, 1),
    "builtins.range": _simple("py.range", 1, 3),
    "builtins.enumerate": _simple("py.enumerate", 1, 2, "start"),
    "builtins.zip": _zip,
    "builtins.reversed": _simple("py.reversed", 1, 1),
    "builtins.sorted": _sorted,
    "builtins.min": _extreme("min"),
    "builtins.max": _extreme("max"),
    "builtins.sum": _simple("py.sum", 1, 2, "start"),
    "builtins.any": _decided("any"),
    "builtins.all": _decided("all"),
    "builtins.abs": _simple("py.abs", 1, 1),
    "builtins.round": _simple("py.round", 1, 2, "ndigits"),
    "builtins.divmod": _simple("py.divmod", 2, 2),
    "builtins.pow": _simple("py.pow", 2, 2),
    "builtins.str": _str,
    "builtins.repr": _simple("py.repr", 1, 1),
    "builtins.format": _simple("py.format", 2, 2),
    "builtins.int": _number("int", 0),
    "builtins.float": _number("float", 0.0),
    "builtins.bool": _bool,
    "builtins.list": _simple("py.list", 0, 1),
    "builtins.dict": _dict,
    "builtins.isinstance": _isinstance,
    "json.dumps": _simple("py.dumps", 1, 3, "sort_keys indent"),
    "json.loads": _simple("py.loads", 1, 1),
    "time.time": _simple("py.time", 0, 0),
    "uuid.uuid4": _simple("uuid", 0, 0),
    "random.Random.random": _simple("random", 0, 0),
    "random.Random.randint": _simple("py.randint", 2, 2),
    "random.Random.uniform": _simple("py.uniform", 2, 2),
    "random.Random.choice": _simple("py.choice", 1, 1),
    "random.Random.sample": _simple("py.sample", 2, 2, "k"),
    "datetime.datetime.now": now,
    "datetime.datetime.utcnow": now,
    "datetime.datetime.fromisoformat": from_text,
    "dataclasses.replace": _replaced,
    "datetime.timedelta": duration,
}
