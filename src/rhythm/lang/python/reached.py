"""Statements that are never reached: after `return`, `raise`, `break`, or a loop without an end."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rhythm.lang.python.translation import Translation


def check_reached(t: Translation, body: Sequence[ast.stmt]) -> None:
    """Warns of the first statement of each block that nothing leads to."""
    for statement in _unreached(body):
        help = "delete it, or the statement above that always leaves"
        t.refuse("P101", statement, "this is never reached", help)


def _unreached(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    left = False
    for statement in body:
        if left and not isinstance(statement, ast.Pass):
            yield statement
            return
        for block in _blocks(statement):
            yield from _unreached(block)
        left = left or leaves(statement)


def leaves(statement: ast.stmt) -> bool:
    """Whether nothing can run after the statement: every way through it leads elsewhere."""
    match statement:
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            return True
        case ast.If(body=body, orelse=otherwise):
            return _leave(body) and _leave(otherwise)
        case ast.While(test=ast.Constant(value=value), body=body):
            return bool(value) and not _breaks(body)
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return _leave(body)
        case ast.Try(body=body, handlers=handlers, orelse=otherwise, finalbody=cleanup):
            goes_on = not _leave([*body, *otherwise])
            caught = all(_leave(handler.body) for handler in handlers)
            return _leave(cleanup) or (not goes_on and caught)
        case ast.Match(cases=cases):
            return any(_takes_all(case) for case in cases) and all(_leave(c.body) for c in cases)
    return False


def _leave(body: Sequence[ast.stmt]) -> bool:
    return any(leaves(statement) for statement in body)


def _takes_all(case: ast.match_case) -> bool:
    """Whether a case of `match` takes every value: `case _:`, `case other:`."""
    open_ = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
    return open_ and case.guard is None


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a `break` in these statements ends the loop that they are the body of."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return True
        loop = isinstance(statement, ast.While | ast.For | ast.AsyncFor)
        # A `break` in the body of an inner loop ends that one; in its `else`, the outer one.
        inside = [statement.orelse] if loop else _blocks(statement)  # type: ignore[attr-defined]
        if any(_breaks(block) for block in inside):
            return True
    return False


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """Yields the blocks of statements inside a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, ())
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body
