"""Conditions to expressions: a comparison of a field, or a group of conditions."""

from __future__ import annotations

from collections.abc import Callable

from rhythm.ir import instructions as ir
from rhythm.lang.steps.document import Json
from rhythm.lang.steps.paths import at_path, filled, read_path
from rhythm.lang.steps.problems import StepProblems, one_of

GROUPS = ("and", "or", "not")
KEYS = ["field", "operator", "value", "default"]
MAX_DEPTH = 10  # the deepest nesting of groups
FALSE = ir.Const(False)  # stands for a condition that could not be read
Compare = Callable[[ir.Expression, ir.Expression, int], ir.Expression]


def _binary(op: str) -> Compare:
    return lambda field, value, at: ir.Binary(op, field, value, at)


def _not(compare: Compare) -> Compare:
    return lambda field, value, at: ir.Unary("!", compare(field, value, at), at)


OPERATORS: dict[str, Compare] = {
    "eq": _binary("=="), "neq": _binary("!="), "gt": _binary(">"), "gte": _binary(">="),
    "lt": _binary("<"), "lte": _binary("<="),
    "in": _binary("in"), "not_in": _not(_binary("in")),
    "contains": lambda field, value, at: ir.Binary("in", value, field, at),
    "matches_prefix": lambda field, value, at: ir.Call("starts_with", (field, value), at),
}  # fmt: skip
NAMES = [*OPERATORS, "exists"]
MEANT = {
    "=": "eq", "==": "eq", "===": "eq", "equals": "eq", "!=": "neq", "!==": "neq", "ne": "neq",
    "not_equals": "neq", ">": "gt", ">=": "gte",
    "ge": "gte", "<": "lt", "<=": "lte", "le": "lte", "nin": "not_in", "includes": "contains",
    "starts_with": "matches_prefix",
    "startsWith": "matches_prefix", "prefix": "matches_prefix",
}  # fmt: skip


def condition(place: Json, problems: StepProblems, depth: int = 0) -> ir.Expression:
    """Returns the expression of a condition; reports what is wrong with it."""
    if depth > MAX_DEPTH:
        problems.at(
            "S002",
            f"groups of conditions nest at most {MAX_DEPTH} deep",
            place,
            "make steps of the inner ones",
        )
        return FALSE
    if not isinstance(place.value, dict):
        problems.at(
            "S006",
            "a condition is an object",
            place,
            'write { "field": "order.total", "operator": "gte", "value": 10000 }',
        )
        return FALSE
    groups = [name for name in GROUPS if name in place.entries]
    if not groups:
        return _comparison(place, problems)
    if len(place.entries) > 1:
        help = 'put the conditions into one list: { "and": [ … ] }'
        problems.at("S012", f'"{groups[0]}" stands alone in its object', place.key(groups[0]), help)
        return FALSE
    return _group(groups[0], place.entries[groups[0]], problems, depth + 1)


def _group(name: str, inner: Json, problems: StepProblems, depth: int) -> ir.Expression:
    if name == "not":
        return ir.Unary("!", condition(inner, problems, depth), inner.start)
    if not inner.items:
        problems.at(
            "S006",
            f'"{name}" takes a list of conditions',
            inner,
            f'write {{ "{name}": [ {{ … }}, {{ … }} ] }}',
        )
        return FALSE
    return _joined(
        "&&" if name == "and" else "||", [condition(item, problems, depth) for item in inner.items]
    )


def _joined(op: str, parts: list[ir.Expression]) -> ir.Expression:
    """Joins the parts in halves, so that a long list does not become a deep tree."""
    half = len(parts) // 2
    return ir.Logic(op, _joined(op, parts[:half]), _joined(op, parts[half:])) if half else parts[0]


def _comparison(place: Json, problems: StepProblems) -> ir.Expression:
    field, operator = place.get("field"), place.get("operator")
    for key in place.entries:
        if key not in KEYS:
            problems.at(
                "S004", f'a condition has no "{key}"', place.key(key), one_of(key, [*KEYS, *GROUPS])
            )
    for key, found in (("field", field), ("operator", operator)):
        if found is None:
            problems.at(
                "S005",
                f'a condition needs "{key}"',
                place,
                'write { "field": "order.total", "operator": "gte", "value": 10000 }',
            )
    path = read_path(field, problems) if field else None
    if operator is None or not _is_operator(operator, problems) or path is None:
        return FALSE
    return (
        _exists(place, path, problems)
        if operator.value == "exists"
        else _compared(place, operator, path, problems)
    )


def _is_operator(operator: Json, problems: StepProblems) -> bool:
    if operator.value in NAMES if isinstance(operator.value, str) else False:
        return True
    meant = MEANT.get(operator.value) if isinstance(operator.value, str) else None
    problems.at(
        "S007",
        "there is no such operator",
        operator,
        f'did you mean "{meant}"?' if meant else one_of(operator.value, NAMES),
    )
    return False


def _exists(place: Json, path: tuple[str, ...], problems: StepProblems) -> ir.Expression:
    wanted, default = place.get("value"), place.get("default")
    if wanted and not isinstance(wanted.value, bool):
        problems.at("S006", '"value" of "exists" is true or false', wanted, "leave it out for true")
    if default:
        problems.at(
            "S012",
            '"exists" takes no "default"',
            place.key("default"),
            "remove it: what is absent does not exist",
        )
    return ir.Binary(
        "==" if wanted and wanted.value is False else "!=",
        at_path(path, place.start, True),
        ir.Const(None),
        place.start,
    )


def _compared(
    place: Json, operator: Json, path: tuple[str, ...], problems: StepProblems
) -> ir.Expression:
    value, default = place.get("value"), place.get("default")
    if value is None:
        problems.at(
            "S005", f'"{operator.value}" needs a "value"', place, "say what to compare with"
        )
        return FALSE
    templated = isinstance(value.value, str) and "${" in value.value
    if operator.value in ("in", "not_in") and not isinstance(value.value, list) and not templated:
        problems.at(
            "S006",
            f'"value" of "{operator.value}" is a list',
            value,
            'write [ "a", "b" ]; to look into the field, use "contains"',
        )
    field = at_path(path, place.start, default is not None)
    if default is not None:
        field = ir.Logic("??", field, filled(default, problems))
    return OPERATORS[operator.value](field, filled(value, problems), place.start)
