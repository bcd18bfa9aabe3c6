"""Comprehensions: as they are where they have no effects, else as loops that fill a list."""

from __future__ import annotations

import ast
from collections.abc import Callable

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.hints import iterated, named_tuple, target_hints
from rhythm.lang.python.kept import refuse_walk
from rhythm.lang.python.targets import pattern_of
from rhythm.lang.python.translation import Make, Translation


def list_(t: Translation, node: ast.ListComp | ast.GeneratorExp) -> Node:
    """Returns `[element for …]`."""
    if any(generator.is_async for generator in node.generators):
        return t.refuse("P016", node, "`async for` goes over rhythm.completed(…), in a statement")

    def filled() -> Node:
        return _filled(t, node, t.at(node).list([]), lambda: ("py.append", [node.elt]))

    return _as_it_is(t, node, lambda: _nested(t, node.elt, node.generators, node), filled)


def dict_(t: Translation, node: ast.DictComp) -> Node:
    """Returns `{key: value for …}`."""
    at = t.at(node)
    pair = ast.copy_location(ast.List([node.key, node.value], ast.Load()), node)

    def filled() -> Node:
        return _filled(t, node, at.object({}), lambda: ("py.set", [node.key, node.value]))

    def nested() -> Node:
        return at.call("py.dict", _nested(t, pair, node.generators, node))

    return _as_it_is(t, node, nested, filled)


def _as_it_is(
    t: Translation, node: ast.AST, nested: Callable[[], Node], filled: Callable[[], Node]
) -> Node:
    """Returns the comprehension as it is, or as a loop if a part of it needs statements before it.

    A call of a helper function may need statements, too. That is known only after its translation.
    """
    if t.effects.has(node):
        return filled()
    written, strayed = len(t.out), t.strayed
    t.strayed = False
    made = nested()
    if t.strayed and not t.pure:
        del t.out[written:]
        made = filled()
    t.strayed = strayed or (t.strayed and t.pure > 0)
    return made


def fan_out(
    t: Translation, node: ast.ListComp | ast.GeneratorExp, item: Callable[[], Node]
) -> Node:
    """Returns a comprehension of operations: with one `for`, whatever Python wrote."""
    if len(node.generators) == 1:
        return _nested(t, item, node.generators, node)
    # Several loops: first the list of all combinations of their variables, then one operation each.
    names = [name for g in node.generators for name, _ in pattern_of(t, g.target).names]
    parts = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in names]
    row = ast.copy_location(ast.List(list[ast.expr](parts), ast.Load()), node)
    rows, at, each_row = t.value(_list_of(row, node)), t.at(node), t.hidden("each")
    t.bound.append({name: at.index(at.name(each_row), i) for i, name in enumerate(names)})
    t.pure += 1
    made = at.comprehension(item(), each_row, rows)
    t.pure -= 1
    t.bound.pop()
    return made


def _list_of(element: ast.expr, node: ast.ListComp | ast.GeneratorExp) -> ast.ListComp:
    return ast.copy_location(ast.ListComp(element, node.generators), node)


def each(t: Translation, name_of: ast.arg, body: ast.expr, source: Node, at: ast.AST) -> Node:
    """Returns `[body for name in source]`, for the `key=lambda name: body` of a sort."""
    name = _free_name(t, name_of.arg)
    t.bound.append({name_of.arg: t.at(at).name(name)})
    t.pure += 1
    element = t.value(body)
    t.pure -= 1
    t.bound.pop()
    return t.at(at).comprehension(element, name, t.at(at).call("py.iter", source))


def _nested(
    t: Translation,
    element: ast.expr | Callable[[], Node],
    generators: list[ast.comprehension],
    whole: ast.AST,
) -> Node:
    generator, *more = generators
    at = t.at(whole)
    source: Node = at.call("py.iter", _walked(t, generator.iter))
    t.inner_hints.append(target_hints(generator.target, iterated(t, generator.iter)))
    pattern = pattern_of(t, generator.target)
    name = (
        _free_name(t, generator.target.id)
        if isinstance(generator.target, ast.Name)
        else t.hidden("each")
    )
    if not pattern.plain:
        whole_name = t.hidden("each")
        parts = _parts(t, generator, at.name(whole_name))
        source = at.comprehension(pattern.checked(at, parts), whole_name, source)
    t.bound.append(pattern.reads(at, at.name(name)))
    t.pure += 1
    condition = _condition(t, generator.ifs)
    made = (
        _nested(t, element, more, whole)
        if more
        else element()
        if callable(element)
        else t.value(element)
    )
    t.pure -= 1
    t.bound.pop()
    t.inner_hints.pop()
    listed = at.comprehension(made, name, source, condition)
    return at.call("flatten", listed) if more else listed


def _parts(t: Translation, generator: ast.comprehension, each: nodes.Name) -> Node:
    """Returns an element that is taken apart: of a NamedTuple, the list of its fields."""
    fields, at = named_tuple(iterated(t, generator.iter)), Make(each.start, each.end)
    if fields is None:
        return each
    return at.list([at.call("py.attr", each, at.literal(field)) for field in fields])


def _walked(t: Translation, node: ast.expr) -> Node:
    refuse_walk(t, node)
    return t.value(node)


def _free_name(t: Translation, name: str) -> str:
    """Returns the name for a comprehension's variable: its own, unless that is taken."""
    return t.hidden(name) if t.is_local(name) else name


def _condition(t: Translation, tests: list[ast.expr]) -> Node | None:
    from rhythm.lang.python.expressions import truth

    made: Node | None = None
    for test in tests:
        one, at = truth(t, test), t.at(test)
        made = one if made is None else nodes.Logic(at.start, at.end, "&&", made, one)
    return made


def _filled(
    t: Translation,
    node: ast.ListComp | ast.DictComp | ast.GeneratorExp,
    empty: Node,
    add: Callable[[], tuple[str, list[ast.expr]]],
) -> Node:
    """Writes the loops of a comprehension with effects; returns the variable that they fill."""
    at, result = t.at(node), t.hidden()
    t.write(at.let(result, empty))

    def innermost() -> None:
        function, parts = add()
        *path, value = t.values(parts)
        place = [at.list(path)] if path else []
        t.write(at.assign(result, at.call(function, at.name(result), *place, value)))

    _loops(t, node.generators, innermost, node)
    return at.name(result)


def refuse_awaits(t: Translation, node: ast.GeneratorExp) -> None:
    """Refuses an await inside a generator expression: Python makes it an async generator."""
    first = node.generators[0]
    parts: list[ast.AST] = [node.elt, *first.ifs, *node.generators[1:]]
    for part in parts:
        for each in ast.walk(part):
            if isinstance(each, ast.Await):
                t.refuse(
                    "P032",
                    each,
                    "an `await` makes this an async generator, which cannot be walked",
                    "write a list: [await … for … in …]",
                )
                return


def loop_until(t: Translation, node: ast.Call, generator: ast.GeneratorExp, stop: bool) -> Node:
    """Writes `any` or `all` of a generator: the loop stops at the first that decides."""
    from rhythm.lang.python.expressions import truth

    refuse_awaits(t, generator)
    at, result = t.at(node), t.hidden()
    t.write(at.let(result, at.literal(not stop)))

    def innermost() -> None:
        asked = truth(t, generator.elt)
        decided = asked if stop else at.negated(asked)
        leave = at.block(at.assign(result, at.literal(stop)), nodes.Break(at.start, at.end))
        t.write(at.when(decided, leave))

    def between() -> None:
        """An outer loop ends when an inner one has decided."""
        asked = at.name(result) if stop else at.negated(at.name(result))
        t.write(at.when(asked, at.block(nodes.Break(at.start, at.end))))

    _loops(t, generator.generators, innermost, node, between)
    return at.name(result)


def _loops(
    t: Translation,
    generators: list[ast.comprehension],
    innermost: Callable[[], None],
    whole: ast.AST,
    after: Callable[[], None] | None = None,
) -> None:
    generator, *more = generators
    at = t.at(whole)
    source = at.call("py.iter", _walked(t, generator.iter))
    t.inner_hints.append(target_hints(generator.target, iterated(t, generator.iter)))
    pattern = pattern_of(t, generator.target)
    name = t.hidden("each")
    taken = pattern.plain_name(at, name)

    def body() -> None:
        if not pattern.plain:
            parts = _parts(t, generator, at.name(name))
            t.write(at.assign(name, pattern.checked(at, parts)))
        t.bound.append(taken)
        inner = _rest(t, more, innermost, whole, after)
        _tested(t, generator.ifs, inner)
        t.bound.pop()

    block = t.block(body, whole)
    t.write(nodes.For(at.start, at.end, (at.name(name),), source, block))
    t.inner_hints.pop()


def _rest(
    t: Translation,
    more: list[ast.comprehension],
    innermost: Callable[[], None],
    whole: ast.AST,
    after: Callable[[], None] | None,
) -> Callable[[], None]:
    if not more:
        return innermost

    def write() -> None:
        _loops(t, more, innermost, whole, after)
        if after:
            after()

    return write


def _tested(t: Translation, tests: list[ast.expr], inner: Callable[[], None]) -> None:
    """Writes the inner part under the conditions, each evaluated only if those before hold."""
    from rhythm.lang.python.expressions import truth

    if not tests:
        return inner()
    test, *more = tests
    asked = truth(t, test)
    t.write(t.at(test).when(asked, t.block(lambda: _tested(t, more, inner), test)))
    return None
