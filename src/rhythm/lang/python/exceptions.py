"""`try`, `raise` and `assert`: an error is a value with a code; an exception class names codes."""

from __future__ import annotations

import ast
import builtins
import types
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.translation import Translation

UNCATCHABLE = ("CancelledError", "KeyboardInterrupt", "SystemExit", "GeneratorExit")


SHOWING = frozenset("str print debug info warning error critical exception log".split())


def readable_errors(tree: ast.AST) -> set[int]:
    """Returns the `id()` of each expression in which a caught exception may be used.

    These are expressions that are shown, raised, or asked for an attribute. Anywhere else an
    exception is refused, because it cannot be stored.
    """
    return {id(node) for each in ast.walk(tree) for node in _readable_in(each) if node is not None}


def _readable_in(node: ast.AST) -> list[ast.expr | None]:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SHOWING:
            return [*node.args]
        case ast.Call(func=ast.Name(id="isinstance"), args=[first, *_]):
            return [first]
        case ast.FormattedValue(conversion=how) if how in (-1, ord("s")):
            return [node.value]
        case ast.Raise():
            return [node.exc, node.cause]
        case ast.Attribute():
            return [node.value]
    return []


def try_(t: Translation, node: ast.Try) -> None:
    """Writes `try … except … else … finally`."""
    at = t.at(node)
    if node.finalbody:
        inner = t.block(lambda: _caught(t, node), node) if node.handlers or node.orelse else None
        body = inner or t.block(node.body, node)
        cleanup = t.block(node.finalbody, node)
        t.write(nodes.Try(at.start, at.end, body, None, None, cleanup))
    else:
        _caught(t, node)


def _caught(t: Translation, node: ast.Try) -> None:
    """Writes `try … except … else`, the part without `finally`.

    The `else` comes after the `try`, so that its own errors are not caught. Both are in a labelled
    block, which each handler leaves at its end, so that it skips the `else`.
    """
    at = t.at(node)
    if not node.handlers:
        return t.statements([*node.body, *node.orelse])
    around, error = t.hidden("else"), t.hidden("error")
    tried = t.block(node.body, node)
    handler = t.block(lambda: _handlers(t, node.handlers, error, node), node)
    if not node.orelse:
        return t.write(nodes.Try(at.start, at.end, tried, at.name(error), handler, None))
    leaving = at.block(*handler.statements, at.leave(around))
    whole = nodes.Try(at.start, at.end, tried, at.name(error), leaving, None)
    otherwise = t.block(node.orelse, node)
    return t.write(at.labelled(around, at.block(whole, *otherwise.statements)))


def _handlers(t: Translation, handlers: list[ast.ExceptHandler], error: str, node: ast.Try) -> None:
    """Writes each `except` as an `if` on the class of the error, which is rethrown if none fits."""
    at = t.at(node)
    if not handlers:
        return t.write(at.throw(at.name(error)))
    handler, *rest = handlers
    names = _caught_names(t, handler)
    block = t.block(lambda: _handle(t, handler, error), handler)
    if names is None or "Exception" in names:
        return t.write(*block.statements)
    asked = at.call("py.matches", at.name(error), at.literal(names))
    otherwise = t.block(lambda: _handlers(t, rest, error, node), node)
    return t.write(at.when(asked, block, otherwise))


def _handle(t: Translation, handler: ast.ExceptHandler, error: str) -> None:
    at = t.at(handler)
    if handler.name in t.lasting:
        message = f"`{handler.name}` is a variable, too: Python deletes it after this `except`"
        t.refuse("P070", handler, message, "give the exception another name")
    if handler.name:
        # The name stands for the error inside the block, and nowhere else, as in Python.
        t.bound.append({handler.name: at.name(error)})
        t.errors.append(handler.name)
    t.raised.append(error)
    t.statements(handler.body)
    t.raised.pop()
    if handler.name:
        t.bound.pop()
        t.errors.pop()


def _caught_names(t: Translation, handler: ast.ExceptHandler) -> list[str] | None:
    """Returns the class names that an `except` names; None if it catches everything."""
    if handler.type is None:
        return None
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return class_names(t, parts)


def class_names(t: Translation, parts: list[ast.expr]) -> list[str]:
    """Returns the names of exception classes; refuses what is none, or cannot be caught."""
    names: list[str] = []
    for part in parts:
        cls = t.outside(part)
        if not isinstance(cls, type) or not issubclass(cls, BaseException):
            t.refuse("P070", part, f"`{ast.unparse(part)}` is no exception class")
            continue
        if cls.__name__ in UNCATCHABLE:
            t.refuse(
                "P071",
                part,
                "a cancellation cannot be caught",
                "write `finally:` for what must be cleaned up",
            )
            continue
        names.append("Exception" if cls is BaseException else cls.__name__)
    return names


def raise_(t: Translation, node: ast.Raise) -> None:
    at = t.at(node)
    if node.exc is None:
        if not t.raised:
            t.refuse("P072", node, "there is nothing to raise again here", "write raise Error(…)")
            return None
        return t.write(at.throw(at.name(t.raised[-1])))
    if isinstance(node.exc, ast.Name) and node.exc.id in t.errors:
        return t.write(at.throw(t.value(node.exc)))
    error = _error(t, node.exc, node.cause)
    if error is not None:
        t.write(at.throw(error))
    return None


def _error(t: Translation, node: ast.expr, cause: ast.expr | None) -> Node | None:
    """Returns the error that `raise Class(message)` throws."""
    function = node.func if isinstance(node, ast.Call) else node
    cls = t.outside(function)
    if not isinstance(cls, type) or not issubclass(cls, Exception):
        t.refuse("P070", node, "only an exception can be raised", 'write raise ValueError("why")')
        return None
    if issubclass(cls, StopIteration | StopAsyncIteration):
        t.refuse("P070", node, f"`{cls.__name__}` ends a generator", "write return, or ValueError")
        return None
    args = node.args if isinstance(node, ast.Call) else []
    named = {k.arg: k.value for k in node.keywords} if isinstance(node, ast.Call) else {}
    if cls.__name__ == "TaskFailed" and hasattr(cls, "code"):
        return _task_failed(t, node, args, named)
    if (own := _own_method(cls)) is not None:
        t.refuse(
            "P070",
            node,
            f"`{cls.__name__}` has its own `{own}`, which would not run here",
            f"raise it in a task, or give `{cls.__name__}` only a message",
        )
        return None
    if len(args) > 1 or named:
        t.refuse(
            "P070",
            node,
            "an exception has one message here",
            "put more into rhythm.TaskFailed(message, code=…, data=…)",
        )
        return None
    at = t.at(node)
    message = t.value(args[0]) if args else at.literal("")
    if issubclass(cls, KeyError) and args:  # the only one that Python shows as `repr` does
        text: Node = at.call("py.repr", message)
    else:
        text = message if _is_text(args) else at.call("py.str", message)
    code = cls.__name__
    data: dict[str, Any] | None = None
    if getattr(builtins, cls.__name__, None) is not cls:
        bases = [base.__name__ for base in cls.__mro__[1:-2]]
        data = {"type": cls.__name__, "bases": bases}
    made = {"code": at.literal(code), "message": text, "data": at.literal(data)}
    because = _cause(t, cause)
    if because is not None:
        made["data"] = at.object(
            {**({k: at.literal(v) for k, v in data.items()} if data else {}), "cause": because}
        )
    return at.object(made)


def _own_method(cls: type) -> str | None:
    """Returns the method of an exception class that makes or shows its message, if it has one."""
    if cls.__module__.partition(".")[0] == "rhythm":
        return None
    methods = ("__init__", "__new__", "__str__")
    return next((m for m in methods if isinstance(getattr(cls, m), types.FunctionType)), None)


def _cause(t: Translation, node: ast.expr | None) -> Node | None:
    if isinstance(node, ast.Name) and node.id in t.errors:
        return t.value(node)
    if node is not None and not (isinstance(node, ast.Constant) and node.value is None):
        t.refuse("P070", node, "the cause is the exception of the `except` around, or None")
    return None


def _is_text(args: list[ast.expr]) -> bool:
    first = args[0] if args else None
    return (
        first is None
        or isinstance(first, ast.JoinedStr)
        or (isinstance(first, ast.Constant) and isinstance(first.value, str))
    )


def _task_failed(
    t: Translation, node: ast.AST, args: list[ast.expr], named: dict[str | None, ast.expr]
) -> Node | None:
    if len(args) != 1 or named.keys() - {"code", "data"}:
        t.refuse("P033", node, "TaskFailed takes a message, code= and data=")
        return None
    at = t.at(node)
    message, *rest = t.values([args[0], *named.values()])
    given = dict(zip(named, rest, strict=True))
    return at.object(
        {
            "code": given.get("code", at.literal("TaskFailed")),
            "message": at.call("py.str", message),
            "data": given.get("data", at.literal(None)),
        }
    )


def assert_(t: Translation, node: ast.Assert) -> None:
    from rhythm.lang.python.expressions import truth

    at = t.at(node)
    condition = truth(t, node.test)

    def fail() -> None:
        message = at.call("py.str", t.value(node.msg)) if node.msg else at.literal("")
        error = {"code": at.literal("AssertionError"), "message": message}
        t.write(at.throw(at.object({**error, "data": at.literal(None)})))

    t.write(at.when(at.negated(condition), t.block(fail, node)))
