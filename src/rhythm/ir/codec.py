"""Programs as JSON and back.

A node is an object: `is` is its class in lower case, then the fields that differ from their defaults. Only classes of
`instructions` can come out, and only from data: nothing stored is ever evaluated.
"""

from __future__ import annotations

import json
from typing import Any

from rhythm.errors import InvalidProgram
from rhythm.ir import instructions
from rhythm.ir.instructions import IR_VERSION, Const
from rhythm.ir.program import Program
from rhythm.record import Record

_CLASSES: dict[str, type[Record]] = {
    name.lower(): cls for name, cls in vars(instructions).items() if isinstance(cls, type) and issubclass(cls, Record) and cls._fields
}
_HEADER = ("ir", "name", "language", "version", "file", "options")


def encode_program(program: Program) -> dict[str, Any]:
    """The program as JSON data."""
    data = {name: getattr(program, name) for name in _HEADER}
    data["lines"] = list(program.lines)
    data["branches"] = list(program.branches)
    data["handlers"] = [_encode(handler) for handler in program.handlers]
    data["code"] = [_encode(instruction) for instruction in program.code]
    return data


def decode_program(data: Any) -> Program:
    """The program that `encode_program` wrote; `InvalidProgram` if it is damaged or from a newer Rhythm."""
    try:
        if data["ir"] > IR_VERSION:
            raise InvalidProgram(
                f"program {data['name']!r} has IR version {data['ir']}, this Rhythm knows up to {IR_VERSION}: upgrade the worker"
            )
        return Program(
            **{name: data[name] for name in _HEADER},
            lines=tuple(data["lines"]),
            branches=tuple(data["branches"]),
            handlers=_decode(data["handlers"]),
            code=_decode(data["code"]),
        )
    except (KeyError, TypeError, ValueError, RecursionError) as problem:
        raise InvalidProgram(f"not a stored program: {type(problem).__name__}: {problem}") from problem


def dump_program(program: Program) -> str:
    """The program as one line of JSON text, the same for the same program."""
    return json.dumps(encode_program(program), ensure_ascii=False, separators=(",", ":"))


def load_program(text: str | bytes) -> Program:
    """The program in JSON text."""
    try:
        return decode_program(json.loads(text))
    except ValueError as problem:
        raise InvalidProgram(f"not JSON: {problem}") from problem


def _encode(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if not isinstance(value, Record):
        return value
    encoded = {"is": type(value).__name__.lower()}
    for name, field in value.__dict__.items():
        if field != getattr(type(value), name, _encode):
            encoded[name] = field if isinstance(value, Const) else _encode(field)
    return encoded


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple([_decode(item) for item in value])
    if not isinstance(value, dict):
        return value
    cls = _CLASSES[value["is"]]
    if cls is Const:
        return Const(value["value"])
    return cls(**{name: _decode(field) for name, field in value.items() if name != "is"})
