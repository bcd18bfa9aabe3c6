"""`match`: each `case` becomes an `if` on the value, which sets the names of its pattern."""

from __future__ import annotations

import ast

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.names import model_of
from rhythm.lang.python.translation import Make, Translation

Names = list[tuple[str, Node]]


def match(t: Translation, node: ast.Match) -> None:
    """Writes a `match` as a row of `if`s, in a block that a case leaves when it has run."""
    subject = t.value(_subject(node))
    if not isinstance(subject, nodes.Name | nodes.Literal) or _is_set(node, subject):
        subject = t.pinned(subject)
    around = t.hidden("match")

    def cases() -> None:
        for case in node.cases:
            _case(t, case, subject, around)

    t.write(t.at(node).labelled(around, t.block(cases, node)))


def _subject(node: ast.Match) -> ast.expr:
    """Returns what is matched: a tuple that no case keeps as a whole is never seen."""
    kept = any(isinstance(case.pattern, ast.MatchAs) and case.pattern.name for case in node.cases)
    if isinstance(node.subject, ast.Tuple) and not kept:
        return ast.copy_location(ast.List(node.subject.elts, ast.Load()), node.subject)
    return node.subject


def _is_set(node: ast.Match, subject: Node) -> bool:
    """Whether a pattern gives the variable that is matched another value."""
    names = {name for each in ast.walk(node) if (name := getattr(each, "name", None))}
    names |= {each.rest for each in ast.walk(node) if isinstance(each, ast.MatchMapping)}
    return isinstance(subject, nodes.Name) and subject.name in names


def _case(t: Translation, case: ast.match_case, subject: Node, around: str) -> None:
    from rhythm.lang.python.expressions import truth

    at, names = t.at(case.pattern), list[tuple[str, Node]]()
    fits = _question(t, case.pattern, subject, names)

    def run() -> None:
        t.statements(case.body)
        t.write(at.leave(around))

    def taken() -> None:
        _bind(t, at, names)
        if case.guard is None:
            return run()
        asked = truth(t, case.guard)
        return t.write(at.when(asked, t.block(run, case.pattern)))

    if fits == at.literal(True):  # `case _`: there is nothing to ask
        taken()
    else:
        t.write(at.when(fits, t.block(taken, case.pattern)))


def _bind(t: Translation, at: Make, names: Names) -> None:
    for name, value in names:
        t.write(at.assign(name, value))


def _question(t: Translation, pattern: ast.pattern, value: Node, names: Names) -> Node:
    """Returns the condition for the value to fit the pattern; adds what it captures to `names`."""
    at = t.at(pattern)
    match pattern:
        case ast.MatchValue(value=expected):
            return at.call("py.eq", value, t.value(expected))
        case ast.MatchSingleton(value=expected):
            return at.equal(value, at.literal(expected))
        case ast.MatchAs(pattern=inner, name=name):
            fits = _question(t, inner, value, names) if inner else at.literal(True)
            names += [(name, value)] if name else []
            return fits
        case ast.MatchOr(patterns=patterns):
            return _one_of(t, patterns, value, at)
        case ast.MatchSequence(patterns=patterns):
            return _sequence(t, patterns, value, names, at)
        case ast.MatchMapping():
            return _mapping(t, pattern, value, names, at)
        case ast.MatchClass():
            return _class(t, pattern, value, names, at)
    return t.refuse("P080", pattern, "this pattern is not there in a workflow")


def _both(at: Make, questions: list[Node]) -> Node:
    made = questions[0] if questions else at.literal(True)
    for each in questions[1:]:
        made = nodes.Logic(at.start, at.end, "&&", made, each)
    return made


def _one_of(t: Translation, patterns: list[ast.pattern], value: Node, at: Make) -> Node:
    inner = list[tuple[str, Node]]()
    questions = [_question(t, each, value, inner) for each in patterns]
    if inner:
        return t.refuse(
            "P080", patterns[0], "a choice of patterns takes no names here", "write a case for each"
        )
    made = questions[0]
    for each in questions[1:]:
        made = nodes.Logic(at.start, at.end, "||", made, each)
    return made


def _sequence(
    t: Translation, patterns: list[ast.pattern], value: Node, names: Names, at: Make
) -> Node:
    stars = [i for i, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
    size = at.call("py.len", value)
    least = at.literal(len(patterns) - len(stars))
    questions: list[Node] = [
        at.call("py.isinstance", value, at.literal(["list"])),
        at.call("py.ge" if stars else "py.eq", size, least),
    ]
    for i, each in enumerate(patterns):
        if isinstance(each, ast.MatchStar):
            after = len(patterns) - i - 1
            end = at.literal(-after) if after else at.literal(None)
            rest = at.call("py.slice", value, at.literal(i), end, at.literal(None))
            names += [(each.name, rest)] if each.name else []
            continue
        place = i - len(patterns) if stars and i > stars[0] else i
        questions.append(_question(t, each, at.call("py.item", value, at.literal(place)), names))
    return _both(at, questions)


def _mapping(
    t: Translation, pattern: ast.MatchMapping, value: Node, names: Names, at: Make
) -> Node:
    questions: list[Node] = [at.call("py.isinstance", value, at.literal(["dict"]))]
    for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
        wanted = t.value(key)
        questions.append(at.call("py.contains", value, wanted))
        questions.append(_question(t, inner, at.call("py.item", value, wanted), names))
    if pattern.rest:
        keys = at.list([t.value(key) for key in pattern.keys])
        names.append((pattern.rest, at.call("omit", value, keys)))
    return _both(at, questions)


def _class(t: Translation, pattern: ast.MatchClass, value: Node, names: Names, at: Make) -> Node:
    cls = t.outside(pattern.cls)
    plain = {str: "str", int: "int", float: "float", bool: "bool", list: "list", dict: "dict"}
    if cls in plain and not pattern.kwd_patterns and len(pattern.patterns) <= 1:
        questions: list[Node] = [at.call("py.isinstance", value, at.literal([plain[cls]]))]
        questions += [_question(t, each, value, names) for each in pattern.patterns]
        return _both(at, questions)
    model = model_of(cls)
    if model is None or pattern.patterns:
        return t.refuse(
            "P080",
            pattern,
            "a class pattern names the fields of a model here",
            "write case Order(status=…)",
        )
    return t.refuse(
        "P080",
        pattern,
        f"`{model.cls.__name__}` is kept as its fields, without its class",
        "match on a field: match order.status",
    )
