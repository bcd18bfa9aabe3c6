"""Inputs against the signature of a workflow: what is missing, unknown, or of another type.

A Python workflow declares its inputs by its parameters. The program keeps them, so that everyone
who starts it can check them, whoever has the function: `{name: {"types": […], "required": …}}`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rhythm.engine.typed import WORDS, hints_of, kind_of
from rhythm.errors import InvalidInputs
from rhythm.suggest import nearest

Declared = Mapping[str, Mapping[str, Any]]


def declared_inputs(function: Callable[..., Any], signature: inspect.Signature) -> Declared:
    """Returns the inputs that a function's parameters declare."""
    hints = hints_of(function)
    return {
        p.name: {
            "types": sorted(_types(hints.get(p.name, Any), p.default)),
            "required": p.default is p.empty,
        }
        for p in signature.parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }


def _types(hint: Any, default: Any) -> frozenset[str]:
    """Returns the JSON types that a value of this hint may have; empty if it may have any."""
    kind = kind_of(hint)
    takes = kind.takes if kind else frozenset[str]()
    return takes | {"null"} if takes and default is None else takes


def check_inputs(workflow: str, declared: Declared, inputs: Any) -> None:
    """Raises `InvalidInputs` if a workflow that declares its inputs cannot take these."""
    given = {} if inputs is None else inputs
    takes = f"it takes {', '.join(declared)}" if declared else "it takes no inputs"
    if not isinstance(given, dict):
        word = WORDS.get(type(given), "another value")
        raise InvalidInputs(
            f"the inputs of workflow `{workflow}` are an object, not {word}; {takes}"
        )
    for name in given:
        if name not in declared:
            near = nearest(name, declared)
            help = f"did you mean `{near}`?" if near else takes
            raise InvalidInputs(f"workflow `{workflow}` has no input `{name}`; {help}")
    missing = [name for name, one in declared.items() if one["required"] and name not in given]
    if missing:
        names = " and ".join(f"`{name}`" for name in missing)
        many = "s" if len(missing) > 1 else ""
        raise InvalidInputs(f"workflow `{workflow}` also needs the input{many} {names}; {takes}")
    for name, value in given.items():
        types, word = declared[name]["types"], WORDS[type(value)]
        if types and word not in types:
            raise InvalidInputs(
                f"the input `{name}` of workflow `{workflow}` is {' or '.join(types)}, not {word}"
            )
