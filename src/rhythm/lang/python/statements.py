"""Statements: each Python statement as statements of `.flow`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python import kept, logs, methods, times
from rhythm.lang.python.awaits import (
    collection_of,
    emitted,
    plain_await,
    started,
    write_await,
    write_start,
)
from rhythm.lang.python.effects import CHANGING
from rhythm.lang.python.exceptions import assert_, raise_, try_
from rhythm.lang.python.expressions import BINARY, Apart, as_truth
from rhythm.lang.python.hints import hint_of, iterated, named_tuple, target_hints
from rhythm.lang.python.matching import match
from rhythm.lang.python.names import operation_of
from rhythm.lang.python.targets import place_of
from rhythm.lang.python.translation import Make, OpenLoop, Translate, Translation


def expression(t: Translation, node: ast.Expr) -> None:
    """Writes an expression whose value nobody uses: an await, a command, a method that changes."""
    value, at = node.value, t.at(node)
    if isinstance(value, ast.Constant):
        return None  # a docstring
    if isinstance(value, ast.Await):
        return write_await(t, value, None)
    if isinstance(value, ast.Call):
        made = logs.logged(t, value) or emitted(t, value)
        if made is not None:
            return t.write(at.statement(made))
        if (operand := started(t, value)) is not None:
            write_start(t, value, operand, None, needed=False)
            return None
        if isinstance(value.func, ast.Attribute) and value.func.attr in CHANGING:
            methods.changed(t, value, value.func, used=False)
            return None
    made = t.value(value)
    if not isinstance(made, nodes.Literal | nodes.Broken):
        t.write(at.statement(made))  # it may fail, as Python's would
    return None


def assign(t: Translation, node: ast.Assign) -> None:
    if len(node.targets) == 1:
        return _set(t, node.targets[0], node.value, node)
    at = t.at(node)
    value = t.pinned(t.value(node.value))
    for target in node.targets:
        _take(t, target, at.name(value.name), node)
        _note_hints(t, target, node.value)
    return None


def annotated(t: Translation, node: ast.AnnAssign) -> None:
    if node.value is None:
        return
    _set(t, node.target, node.value, node)
    if isinstance(node.target, ast.Name):
        known = t.annotations.get(node.target.id)
        if known is not None:
            t.hints[node.target.id] = known
    return


def _set(t: Translation, target: ast.AST, value: ast.expr, node: ast.AST) -> None:
    at = t.at(node)
    if isinstance(target, ast.Name) and not t.lookup(target.id)[0]:
        before = len(t.problems.found)
        try:
            return _set_variable(t, target, value, at)
        finally:
            if len(t.problems.found) > before:
                t.broken.add(target.id)
    if _pairwise(target, value):
        return _set_each(t, target.elts, value.elts, node)  # type: ignore[attr-defined]
    _note_hints(t, target, value)
    made = t.value(_as_list(value))
    return _take(t, target, _as_parts(t, target, made, hint_of(t, value)), node)


def _as_parts(t: Translation, target: ast.AST, value: Node, hint: object) -> Node:
    """Returns a NamedTuple that is taken apart as the list of its fields."""
    fields = named_tuple(hint)
    if fields is None or not isinstance(target, ast.Tuple | ast.List):
        return value
    whole, at = t.pinned(value), Make(value.start, value.end)
    return at.list([at.call("py.attr", whole, at.literal(field)) for field in fields])


def _set_variable(t: Translation, target: ast.Name, value: ast.expr, at: Make) -> None:
    _note_hints(t, target, value)
    if isinstance(value, ast.Await):
        return write_await(t, value, target.id)
    if (operand := started(t, value)) is not None:
        write_start(t, value, operand, target.id)
        return None
    return t.write(at.assign(target.id, t.value(value)))


def _as_list(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.List(node.elts, ast.Load()), node)
    return node


def _pairwise(target: ast.AST, value: ast.AST) -> bool:
    """Whether each name on the left has its value written on the right: `a, b = b, a`."""
    sides = [
        getattr(side, "elts", None) for side in (target, value) if not isinstance(side, ast.Set)
    ]
    if len(sides) < 2 or sides[0] is None or sides[1] is None:
        return False
    starred = any(isinstance(part, ast.Starred) for part in (*sides[0], *sides[1]))
    return len(sides[0]) == len(sides[1]) and not starred


def _set_each(
    t: Translation, targets: list[ast.expr], given: list[ast.expr], node: ast.AST
) -> None:
    """Writes `a, b = b, a`: all values first, then all names."""
    shapes = zip(targets, given, strict=True)
    # A tuple that is taken apart at once is never seen.
    given = [
        kept.as_lists(value) if isinstance(target, ast.Tuple | ast.List) else value
        for target, value in shapes
    ]
    values = t.values(given)
    held = [v if isinstance(v, nodes.Literal) else t.pinned(v) for v in values]
    for each, one, written in zip(targets, held, given, strict=True):
        _take(t, each, one, node)
        _note_hints(t, each, written)


def _take(t: Translation, target: ast.AST, value: Node, node: ast.AST) -> None:
    """Writes `target = value` for a target of any shape."""
    at = t.at(node)
    if isinstance(target, ast.Tuple | ast.List):
        return _unpack(t, target, value, node)
    if not isinstance(target, ast.Name):
        # Python evaluates the value before the target.
        [value] = t.kept([value], target)
    place = place_of(t, target)
    if place is not None:
        t.write(place.written(at, value))
    return None


def _unpack(t: Translation, target: ast.Tuple | ast.List, value: Node, node: ast.AST) -> None:
    at = t.at(node)
    stars = [i for i, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
    before = stars[0] if stars else len(target.elts)
    after = len(target.elts) - before - 1 if stars else None
    parts = t.pinned(at.call("py.unpack", value, at.literal(before), at.literal(after)))
    for i, each in enumerate(target.elts):
        _take(t, each.value if isinstance(each, ast.Starred) else each, at.index(parts, i), node)


def _note_hints(t: Translation, target: ast.AST, value: ast.AST) -> None:
    """Remembers the hint of a variable; if two assignments have different hints, there is none."""
    for name, hint in target_hints(target, hint_of(t, value)).items():
        if name in t.annotations:
            t.hints[name] = t.annotations[name]
        elif name in t.hints and t.hints[name] != hint and name not in t.started:
            t.hints[name] = hint if t.hints[name] is None else _either(t.hints[name], hint)
        else:
            t.hints[name] = hint


def _either(one: object, other: object) -> object:
    return one if other in (None, type(None)) else other


IN_PLACE = {"add": "iadd", "mul": "imul", "bitor": "ior"}


def augmented(t: Translation, node: ast.AugAssign) -> None:
    """Writes `target += value`."""
    at = t.at(node)
    if isinstance(node.op, ast.MatMult):
        t.refuse("P054", node, "`@` multiplies matrices", "put this in a task")
        return None
    kind = hint_of(t, node.target)
    kind = getattr(kind, "__origin__", kind)
    if isinstance(node.op, ast.BitOr) and kind is dict:  # Python changes the dict itself
        call = ast.Call(ast.Attribute(node.target, "update", ast.Load()), [node.value], [])
        return expression(
            t,
            ast.fix_missing_locations(
                ast.copy_location(ast.Expr(ast.copy_location(call, node)), node)
            ),
        )
    place = place_of(t, node.target)
    load = node.target
    timed = None
    if isinstance(node.target, ast.Name):
        reading = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        both = ast.copy_location(ast.BinOp(reading, node.op, node.value), node)
        timed = times.timed_binary(t, both)
    if place is None:
        return None
    if timed is not None:
        return t.write(place.written(at, timed))
    place = place.kept(t, node.value)
    old = place.read(at)
    value, before = t.apart(_as_list(node.value))
    if before:
        old = t.pinned(old)
    t.write(*before)
    name = BINARY[type(node.op)]
    # Of numbers it is known that nothing is changed in place.
    if not (_is_number(load, t) and _is_number(node.value, t)):
        name = IN_PLACE.get(name, name)
    return t.write(place.written(at, at.call(f"py.{name}", old, value)))


def _is_number(node: ast.AST, t: Translation) -> bool:
    return hint_of(t, node) in (int, float)


def delete(t: Translation, node: ast.Delete) -> None:
    at = t.at(node)
    for target in node.targets:
        if isinstance(target, ast.Name):
            t.refuse("P017", node, "a variable stays until the end", f"set {target.id} = None")
            continue
        place = place_of(t, target)
        if place is not None:
            path = at.list(list(place.path))
            t.write(at.assign(place.name, at.call("py.without", at.name(place.name), path)))


def if_(t: Translation, node: ast.If) -> None:
    at, parts = t.at(node), _conditions(t, node.test)
    if len(parts) > 1:
        return _if_in_steps(t, node, parts)
    [(asked, before)] = parts
    t.write(*before)
    then = t.block(node.body, node)
    otherwise = t.block(node.orelse, node) if node.orelse else None
    return t.write(at.when(as_truth(at, asked), then, otherwise))


def _conditions(t: Translation, test: ast.expr) -> list[Apart]:
    """Returns the operands of `a and await b()`, to test one by one; of others, the whole test."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        parts = [t.apart(value) for value in test.values]
        if any(before for _, before in parts[1:]):
            return parts
    return [t.apart(test)]


def _if_in_steps(t: Translation, node: ast.If, parts: Sequence[Apart]) -> None:
    """Writes `if a and await b():` as nested `if`s, each after the statements of its operand."""
    at, around = t.at(node), t.hidden("if")

    def ask(part: Apart, *more: Apart) -> None:
        asked, before = part
        t.write(*before)
        t.write(at.when(as_truth(at, asked), t.block(lambda: go_on(*more), node)))

    def go_on(*more: Apart) -> None:
        if more:
            return ask(*more)
        t.statements(node.body)
        return t.write(at.leave(around))

    def whole() -> None:
        ask(*parts)
        t.statements(node.orelse)

    t.write(at.labelled(around, t.block(whole, node)))


def while_(t: Translation, node: ast.While) -> None:
    at, parts = t.at(node), _conditions(t, node.test)
    stepwise = any(before for _, before in parts)

    def body() -> None:
        for asked, before in parts if stepwise else ():
            leave = at.block(nodes.Break(at.start, at.end))
            t.write(*before, at.when(at.negated(as_truth(at, asked)), leave))
        t.statements(node.body)

    def made(block: nodes.Block) -> Node:
        if stepwise or _is_true(node.test):
            return nodes.Forever(at.start, at.end, block)
        return nodes.While(at.start, at.end, as_truth(at, parts[0][0]), block)

    _loop(t, node, body, made)


def _is_true(test: ast.AST) -> bool:
    """Whether a condition is always true: `while True`, `while 1`."""
    return isinstance(test, ast.Constant) and bool(test.value)


def _loop(
    t: Translation,
    node: ast.While | ast.For | ast.AsyncFor,
    body: Callable[[], None],
    made: Callable[[nodes.Block], Node],
) -> None:
    """Writes a loop, and its `else` after it; `break` leaves the block around both."""
    at, around = t.at(node), t.hidden("loop") if node.orelse else None
    t.loops.append(OpenLoop(around))
    loop = made(t.block(body, node))
    t.loops.pop()
    if around is None:
        return t.write(loop)
    otherwise = t.block(node.orelse, node)
    return t.write(at.labelled(around, at.block(loop, *otherwise.statements)))


def for_(t: Translation, node: ast.For) -> None:
    source = _source(t, node.iter)
    _note_loop_hints(t, node)
    _for_each(t, node, source)


def _for_each(t: Translation, node: ast.For | ast.AsyncFor, source: Node) -> None:
    at, target = t.at(node), node.target
    plain = isinstance(target, ast.Name) and not t.lookup(target.id)[0]
    name = target.id if isinstance(target, ast.Name) and plain else t.hidden("each")

    def body() -> None:
        if not plain:
            parts = _as_parts(t, target, at.name(name), iterated(t, node.iter))
            _take(t, target, parts, node)
        t.statements(node.body)

    _loop(t, node, body, lambda block: nodes.For(at.start, at.end, (at.name(name),), source, block))


def _note_loop_hints(t: Translation, node: ast.For | ast.AsyncFor) -> None:
    for name, hint in target_hints(node.target, iterated(t, node.iter)).items():
        t.hints[name] = t.annotations.get(name, hint)


def _source(t: Translation, node: ast.expr) -> Node:
    """Returns what a loop walks; counting over a `range` builds no list."""
    kept.refuse_walk(t, node)
    value = t.value(_as_list(node))
    if isinstance(value, nodes.Call) and value.name in ("py.range", "py.enumerate", "py.zip"):
        return value
    return t.at(node).call("py.iter", value)


def async_for(t: Translation, node: ast.AsyncFor) -> None:
    """Writes `async for done in rhythm.completed([…])`: each item as it ends."""
    at, call = t.at(node), node.iter
    if not isinstance(call, ast.Call) or operation_of(t.outside(call.func)) != "completed":
        t.refuse(
            "P016",
            node.iter,
            "`async for` goes over rhythm.completed([…])",
            "collect the values in a task, and loop over the list with `for`",
        )
        return
    if len(call.args) != 1 or [k for k in call.keywords if k.arg != "concurrency"]:
        t.refuse("P033", call, "`completed` takes a list of what to start, and concurrency=")
        return
    items = collection_of(t, call.args[0])
    limit = [at.object({"concurrency": t.value(k.value)}) for k in call.keywords]
    _for_each(t, node, at.call("completed", items, *limit))


def break_(t: Translation, node: ast.Break) -> None:
    at = t.at(node)
    around = t.loops[-1].around if t.loops else None
    t.write(at.leave(around) if around else nodes.Break(at.start, at.end))


def continue_(t: Translation, node: ast.Continue) -> None:
    at = t.at(node)
    t.write(nodes.Continue(at.start, at.end))


def return_(t: Translation, node: ast.Return) -> None:
    at = t.at(node)
    if isinstance(node.value, ast.Await) and (plain := plain_await(t, node.value)) is not None:
        value: Node = plain
    else:
        value = t.value(_as_list(node.value)) if node.value else at.literal(None)
    t.write(nodes.Return(at.start, at.end, value))


def pass_(t: Translation, node: ast.Pass) -> None:
    """Writes nothing."""


def with_(t: Translation, node: ast.With | ast.AsyncWith) -> None:
    """Writes `with rhythm.timeout("5m"):` and `async with asyncio.TaskGroup() as group:`."""
    if len(node.items) != 1:
        t.refuse("P015", node, "a `with` has one item here", "write one inside the other")
        return
    item = node.items[0]
    call = item.context_expr
    operation = operation_of(t.outside(call.func)) if isinstance(call, ast.Call) else None
    if operation == "timeout" and isinstance(call, ast.Call):
        _timeout(t, node, call)
    elif operation == "task_group" and isinstance(call, ast.Call):
        _task_group(t, node, item)
    else:
        t.refuse(
            "P015",
            item.context_expr,
            "a `with` would hold something that no snapshot can keep",
            "put the whole block in a task that returns what is needed; a workflow itself has "
            "`with rhythm.timeout(…)` and `async with asyncio.TaskGroup() as group`",
        )


def _timeout(t: Translation, node: ast.With | ast.AsyncWith, call: ast.Call) -> None:
    at = t.at(call)
    if len(call.args) != 1 or call.keywords or node.items[0].optional_vars:
        t.refuse("P033", call, '`timeout` takes one duration: seconds, or text such as "5m"')
        return
    until = at.call("date_add", at.call("now"), t.value(call.args[0]))
    t.deadlines.append(t.pinned(until, "until").name)
    t.statements(node.body)
    t.deadlines.pop()


def _task_group(t: Translation, node: ast.With | ast.AsyncWith, item: ast.withitem) -> None:
    at, name = t.at(node), item.optional_vars
    if not isinstance(name, ast.Name):
        t.refuse("P015", node, "a task group needs a name", "async with asyncio.TaskGroup() as g:")
        return
    for left in _leaves(node.body):
        t.refuse(
            "P015",
            left,
            "Python waits for the group before it leaves it this way",
            "set a variable here, and do this after the group",
        )
    held, error, each = t.hidden("group"), t.hidden("error"), t.hidden("each")
    t.groups[name.id] = [held]
    t.write(at.let(held, at.list([])))

    def body() -> None:
        t.statements(node.body)
        t.write(at.statement(at.awaited(at.call("all", at.name(held)))))

    tried = t.block(body, node)
    cancel = at.block(at.statement(at.call("cancel", at.name(each))))
    several = at.object(
        {
            "code": at.literal("ExceptionGroup"),
            "message": at.literal("unhandled errors in a TaskGroup (1 sub-exception)"),
            "data": at.object({"errors": at.list([at.name(error)])}),
        }
    )
    failed = at.block(
        nodes.For(at.start, at.end, (at.name(each),), at.name(held), cancel), at.throw(several)
    )
    t.write(nodes.Try(at.start, at.end, tried, at.name(error), failed, None))
    t.finished |= set(t.groups.pop(name.id)[1:])


def _leaves(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements that leave a block from inside."""
    for statement in body:
        if isinstance(statement, ast.Return | ast.Break | ast.Continue):
            yield statement
        inner = [*_blocks(statement)]
        loop = isinstance(statement, ast.For | ast.While | ast.AsyncFor)
        for left in _leaves([each for block in inner for each in block]):
            if not loop or isinstance(left, ast.Return):
                yield left


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield handler.body


def _refusing(code: str, message: str, help: str) -> Translate:
    def refuse(t: Translation, node: ast.AST) -> None:
        t.refuse(code, node, message, help)
        t.broken |= _names_of(node)

    return refuse


def _names_of(node: ast.AST) -> set[str]:
    """Returns the names that a function, class or import would have given values to."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return {name} if isinstance(name := getattr(node, "name", None), str) else set()


STATEMENTS: dict[type, Translate] = {
    ast.Expr: expression, ast.Assign: assign, ast.AnnAssign: annotated, ast.AugAssign: augmented,
    ast.Delete: delete, ast.If: if_, ast.While: while_, ast.For: for_, ast.AsyncFor: async_for,
    ast.Break: break_, ast.Continue: continue_, ast.Return: return_, ast.Pass: pass_,
    ast.With: with_, ast.AsyncWith: with_, ast.Try: try_, ast.Raise: raise_, ast.Assert: assert_,
    ast.Match: match,
    ast.TryStar: _refusing(
        "P070", "`except*` is not there",
        "write except ExceptionGroup; or asyncio.gather, whose first error is raised as it is",
    ),
    ast.FunctionDef: _refusing(
        "P010", "a function inside a workflow cannot be kept",
        "write it at the top of the module: as a task, or, if its body is one `return`, as it is",
    ),
    ast.AsyncFunctionDef: _refusing(
        "P010", "a function inside a workflow cannot be kept",
        "write it at the top of the module, with @rhythm.task, or @rhythm.workflow if it awaits "
        "tasks",
    ),
    ast.ClassDef: _refusing(
        "P010", "a class inside a workflow cannot be kept", "write it at the top of the module"
    ),
    ast.Import: _refusing("P013", "an import inside a workflow", "write it at the top of the file"),
    ast.ImportFrom: _refusing(
        "P013", "an import inside a workflow", "write it at the top of the file"
    ),
    ast.Global: _refusing(
        "P014", "a workflow has only its own variables: nobody else would see this one change",
        "use a variable of its own; what executions share is in a database that tasks change",
    ),
    ast.Nonlocal: _refusing(
        "P014", "a workflow has only its own variables: nobody else would see this one change",
        "use a variable of its own; what executions share is in a database that tasks change",
    ),
}  # fmt: skip


def assigned_names(body: list[ast.stmt], *, errors: bool = True) -> set[str]:
    """Returns the names that the statements give values to; comprehensions have their own.

    Without `errors`, those that only `except … as name` sets are left out.
    """
    found: set[str] = set()
    work: list[ast.AST] = list(body)
    while work:
        node = work.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.ExceptHandler(name=str(name)):
                found |= {name} if errors else set()
            case ast.MatchAs(name=str(name)):
                found.add(name)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
                continue
            case ast.ClassDef(name=name):
                found.add(name)
                continue
            case ast.Lambda():
                continue
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            # The variables of a comprehension are its own; only `:=` reaches out of it.
            work += [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
            continue
        work += ast.iter_child_nodes(node)
    return found
