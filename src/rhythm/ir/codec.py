"""Programs to JSON and back.

A node is an object: `is` names its class in lower case, the other keys are the fields that differ
from their defaults. Decoding makes only classes of `instructions`, and only from data: nothing that
is stored is ever evaluated. Every decoded field has the type that its class declares. Whether the
program also makes sense is checked by `verify`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from rhythm.errors import InvalidProgram, NewerFormat
from rhythm.ir import instructions
from rhythm.ir.instructions import IR_VERSION, Const
from rhythm.ir.program import Program
from rhythm.record import Record

_CLASSES: dict[str, type[Record]] = {
    name.lower(): cls
    for name, cls in vars(instructions).items()
    if isinstance(cls, type) and issubclass(cls, Record) and cls._fields
}
_HEADER = ("ir", "name", "language", "version", "file", "options")


def encode_program(program: Program) -> dict[str, Any]:
    """Returns the program as JSON data."""
    data = {name: getattr(program, name) for name in _HEADER}
    data["lines"] = list(program.lines)
    if program.first_line != 1:
        data["first_line"] = program.first_line
    if program.steps:
        data["steps"] = [list(step) for step in program.steps]
    data["branches"] = list(program.branches)
    data["handlers"] = [_encode(handler) for handler in program.handlers]
    data["code"] = [_encode(instruction) for instruction in program.code]
    return data


def decode_program(data: Any) -> Program:
    """Returns the program that `encode_program` wrote.

    Raises `InvalidProgram` if the data is damaged, `NewerFormat` if a newer Rhythm wrote it.
    """
    try:
        _check_version(data)
        program = Program(
            **{name: data[name] for name in _HEADER},
            lines=_decode(data["lines"]),
            first_line=data.get("first_line", 1),
            steps=_decode(data.get("steps", [])),
            branches=_decode(data["branches"]),
            handlers=_decode(data["handlers"]),
            code=_decode(data["code"]),
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise InvalidProgram(
            f"not a stored program: {type(problem).__name__}: {problem}"
        ) from problem
    except RecursionError:
        raise InvalidProgram("not a stored program: nested too deep") from None
    _check_fields(program)
    if not program.lines:
        raise InvalidProgram("not a stored program: `lines` is empty")
    return program


def _check_version(data: Any) -> None:
    if type(data["ir"]) is not int or data["ir"] < 1:
        raise InvalidProgram(f"not a stored program: `ir` is {data['ir']!r:.60}")
    if data["ir"] > IR_VERSION:
        raise NewerFormat(
            f"program {data.get('name')!r:.80} has IR version {data['ir']}, this Rhythm "
            f"knows up to {IR_VERSION}: upgrade the worker"
        )


def dump_program(program: Program) -> str:
    """Returns the program as one line of JSON text: always the same text for the same program."""
    return "".join(_parts(program))


def dump_without_places(program: Program) -> str:
    """Returns what a program does, as JSON text: all but where it is in its file."""
    parts = (program.code, program.handlers, program.branches, program.steps)
    return _json([program.options, *(_encode(part, places=False) for part in parts)])


def dump_within(program: Program, limit: int) -> str | None:
    """Returns the text of `dump_program`, or None if it has more than `limit` bytes.

    The text may be far larger than the source. It is not built to the end once it is over the
    limit.
    """
    parts, size = list[str](), 0
    for part in _parts(program):
        size += len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass"))
        if size > limit:
            return None
        parts.append(part)
    return "".join(parts)


def _parts(program: Program) -> Iterator[str]:
    head = _json(encode_program(program.replace(code=())))
    assert head.endswith("[]}")
    yield head.removesuffix("]}")
    for number, instruction in enumerate(program.code):
        yield ("," if number else "") + _json(_encode(instruction))
    yield "]}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def load_program(text: str | bytes) -> Program:
    """Returns the program in a JSON text. Raises `InvalidProgram` as `decode_program` does."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InvalidProgram(f"not JSON: {problem}") from problem
    return decode_program(data)


def _encode(value: Any, places: bool = True) -> Any:
    if isinstance(value, tuple):
        return [_encode(item, places) for item in value]
    if not isinstance(value, Record):
        return value
    encoded = {"is": type(value).__name__.lower()}
    for name, field in value.__dict__.items():
        if field != getattr(type(value), name, _encode) and (places or name != "at"):
            encoded[name] = field if isinstance(value, Const) else _encode(field, places)
    return encoded


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple([_decode(item) for item in value])
    if not isinstance(value, dict):
        return value
    name = value.get("is")
    cls = _CLASSES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InvalidProgram(
            f"not a stored program: it holds {name!r:.60}, which this Rhythm does not know"
        )
    decoded = {
        field: inner if cls is Const else _decode(inner)
        for field, inner in value.items()
        if field != "is"
    }
    odd = decoded.keys() ^ set(cls._fields)
    if any(field in decoded or not hasattr(cls, field) for field in odd):
        raise InvalidProgram(
            f"not a stored program: `{name}` has the fields {', '.join(decoded)}; it "
            f"takes {', '.join(cls._fields)}"
        )
    record = cls(**decoded)
    _check_fields(record)
    return record


def _check_fields(record: Record) -> None:
    cls: Any = type(record)
    for name, wanted in _hints(cls).items():
        if not _fits(value := getattr(record, name), wanted):
            raise InvalidProgram(
                f"not a stored program: `{name}` of {cls.__name__.lower()} cannot be {value!r:.60}"
            )


@cache
def _hints(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {name: hints[name] for name in cls._fields}


def _fits(value: Any, wanted: Any) -> bool:
    """Whether the value has the type. Here true and false are not ints."""
    if wanted is Any:
        return True
    args = get_args(wanted)
    if isinstance(wanted, UnionType):
        return any(_fits(value, one) for one in args)
    if get_origin(wanted) is tuple:
        rest = args[:1] * len(value) if args[-1] is ... and isinstance(value, tuple) else args
        return isinstance(value, tuple) and len(value) == len(rest) and all(map(_fits, value, rest))
    kind = get_origin(wanted) or wanted
    return type(value) is kind or (issubclass(kind, Record) and isinstance(value, kind))
