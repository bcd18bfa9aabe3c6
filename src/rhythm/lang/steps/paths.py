"""Paths into the context, and texts with `${path}` in them, as expressions.

The context is one object: the inputs, the data that a person gave when resuming, and the results of
the steps so far. A path that begins with `ctx` leads into what the execution knows about itself
instead.
"""

from __future__ import annotations

import re
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.lang.steps.document import Json
from rhythm.lang.steps.problems import StepProblems, one_of

CONTEXT = ir.Local("$context")
CTX = ["id", "workflow", "version", "started_at", "attempt", "parent_id", "resume_data"]
MAX_PATH_PARTS = 16  # the most parts that a path may have
_HOLE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_POSITION = re.compile(r"-?(?:0|[1-9][0-9]{0,8})")


def read_path(place: Json, problems: StepProblems) -> tuple[str, ...] | None:
    """Returns the parts of a path, or None if it is wrong, which is reported.

    A path is text with dots between the parts, or a list of texts if a key itself contains a dot.
    """
    parts = place.value.split(".") if isinstance(place.value, str) else place.value
    if (
        isinstance(parts, list)
        and 0 < len(parts) <= MAX_PATH_PARTS
        and all(isinstance(part, str) and part.strip() == part != "" for part in parts)
    ):
        return tuple(parts) if _is_known(tuple(parts), place, problems) else None
    problems.at(
        "S011",
        "this is no path into the context",
        place,
        'write "order.total", or ["order", "a.b"] for a key with a dot in it',
    )
    return None


def _is_known(parts: tuple[str, ...], place: Json, problems: StepProblems) -> bool:
    if parts[0] != "ctx" or (len(parts) > 1 and parts[1] in CTX):
        return True
    problems.at(
        "S011", "`ctx` has no such part", place, one_of(parts[1] if len(parts) > 1 else "", CTX)
    )
    return False


def at_path(parts: tuple[str, ...], at: int, optional: bool = False) -> ir.Expression:
    """Returns the expression for the value at a path.

    At run time an absent value is an error that names the nearest one; if optional, it is null.
    """
    target: ir.Expression = CONTEXT
    if parts[0] == "ctx":
        target, parts = ir.Local("ctx"), parts[1:]
    for part in parts:
        if _POSITION.fullmatch(part):
            target = ir.Index(target, ir.Const(int(part)), optional, at)
        else:
            target = ir.Member(target, part, optional, at)
    return target


def filled(place: Json, problems: StepProblems) -> ir.Expression:
    """Returns the expression for a value whose texts may contain `${path}`.

    A text that is nothing but one `${path}` gives the value at the path, whatever its type.
    """
    if isinstance(place.value, str):
        return _filled_text(place, problems)
    if not _has_holes(place.value):
        return ir.Const(place.value)
    if place.items:
        return ir.ListOf(tuple(filled(item, problems) for item in place.items), place.start)
    return ir.ObjectOf(
        tuple((key, filled(inner, problems)) for key, inner in place.entries.items()), place.start
    )


def _has_holes(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_holes, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and "${" in value


def _filled_text(place: Json, problems: StepProblems) -> ir.Expression:
    parts, last = list[ir.Expression](), 0
    for hole in _HOLE.finditer(place.value):
        parts.append(ir.Const(place.value[last : hole.start()]))
        parts.append(ir.Const("${") if hole[1] is None else _hole(hole, place, problems))
        last = hole.end()
    parts.append(ir.Const(place.value[last:]))
    parts = [part for part in parts if part != ir.Const("")]
    if all(isinstance(part, ir.Const) for part in parts):
        return ir.Const("".join(str(part.value) for part in parts if isinstance(part, ir.Const)))
    return parts[0] if len(parts) == 1 else ir.Template(tuple(parts), place.start)


def _hole(hole: re.Match[str], place: Json, problems: StepProblems) -> ir.Expression:
    if not hole[2]:
        problems.at(
            "S011",
            "`${` that is never closed",
            place,
            "close it with }, or write $${ for the two characters themselves",
        )
    path = read_path(place.replace(value=hole[1].strip()), problems) if hole[2] else None
    return at_path(path, place.start) if path else ir.Const(None)
