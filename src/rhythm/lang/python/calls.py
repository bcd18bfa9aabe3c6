"""Calls that are not awaited: of methods, functions, classes and helpers, or why there is none."""

from __future__ import annotations

import ast
import sys
import types
from typing import Any

from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.awaits import ASYNCIO_ADVICE, started, write_start
from rhythm.lang.python.construction import constructed
from rhythm.lang.python.functions import COMPARING, COMPUTING, FUNCTIONS, MATH, math_function
from rhythm.lang.python.inlining import inlined
from rhythm.lang.python.kept import not_kept
from rhythm.lang.python.lazy import refused
from rhythm.lang.python.methods import method
from rhythm.lang.python.names import MISSING, callee_of, json_of, key_of, operation_of
from rhythm.lang.python.translation import Translation
from rhythm.suggest import nearest

# Modules whose functions do I/O or wait: only a task may.
BLOCKING = frozenset(
    "requests httpx urllib http socket subprocess os shutil pathlib io sqlite3 psycopg boto3 "
    "smtplib ftplib aiohttp redis tempfile glob posix _io nt time".split()
)


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
        return t.refuse(
            "P030",
            node,
            f"`{written}` is a task: a workflow awaits it",
            f"write await {written}.run(…)",
        )
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
        return t.refuse(
            "P020",
            function,
            f"`{written}` is not there: `{of}` is awaited",
            f"write await {called}(…); to go on meanwhile: started = "
            f"asyncio.create_task({called}(…))",
        )
    if not isinstance(owner, types.ModuleType | type):
        return t.refuse(
            "P024",
            function,
            f"`{of}` is an object of the module: it cannot be kept",
            f"put this in a task: a function with @rhythm.task that calls {written}(…)",
        )
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
        return t.refuse(
            "P070",
            node,
            "an exception is raised, and no value otherwise",
            f"write raise {ast.unparse(node)}",
        )
    asked = key in COMPARING
    if key in COMPUTING and (kept := not_kept(t, *node.args, compared=asked)) is not None:
        return kept
    if key in FUNCTIONS:
        return FUNCTIONS[key](t, node)
    if key.startswith("math.") and key[5:] in MATH:
        return math_function(t, node, key[5:])
    if isinstance(found, type) and not key.startswith("builtins."):
        return constructed(t, node, found)
    own = isinstance(found, types.FunctionType) and not _of_library(found)
    if own and (written := inlined(t, node, found)) is not None:
        return written
    return _no_task(t, node, found, key)


def _no_task(t: Translation, node: ast.Call, found: Any, key: str) -> Node:
    written = ast.unparse(node.func)
    root = key.partition(".")[0]
    if key == "builtins.super" or key.startswith("builtins."):
        return t.refuse(
            "P063",
            node,
            f"`{written}` is not there in a workflow",
            BUILTIN_ADVICE.get(written, "put this in a task"),
        )
    if key == "time.sleep":
        return t.refuse(
            "P023",
            node,
            "`time.sleep` would block the worker",
            "write await asyncio.sleep(…) or await rhythm.sleep(…)",
        )
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
