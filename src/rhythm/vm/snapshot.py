"""`Snapshot`: the state of an execution between two turns, as one flat JSON object, and its codec.

`{"v", "statement_index", "locals", "awaiting", "next_child", "instructions", "cancelled"}`, and
"limit" once the execution is over a limit (version 2). A loop over `completed` that has taken many
items keeps a text of bits in place of their list (version 3, `ir/awaiting.with_taken`). No call
stack, no closures, no syntax. Every format version that was ever written must load for ever: golden
files in the tests check this. A snapshot says the lowest version that has all it uses, so that
older workers go on with what they can.

It is stored as that JSON, or compressed. The first byte tells which: JSON begins with `{`.
"""

from __future__ import annotations

import zlib
from typing import Any

import orjson

from rhythm.errors import InvalidProgram, NewerFormat
from rhythm.ir.awaiting import is_packed
from rhythm.record import Record

SNAPSHOT_VERSION = 3
COMPRESSED = b"z"
# PostgreSQL moves larger values out of their page, which costs more than compressing them.
COMPRESS_BYTES = 2048
# Reduces a typical snapshot to 36 %. Level 6 reduces it to 31 %, and takes two to three times as
# long.
LEVEL = 1


class Snapshot(Record):
    """Where an execution is.

    `awaiting` says in plain JSON what it waits for, for `why` and `doctor` to read.
    """

    statement_index: int = 0
    locals: dict[str, Any] = {}
    awaiting: dict[str, Any] | None = None
    next_child: int = 1
    instructions: int = 0  # run so far, for the limit per execution
    cancelled: bool = False  # the cancellation has been thrown: now only `finally` blocks run
    # `{error, at}` of the limit that it is over: now only `finally` blocks run. Since version 2.
    limit: dict[str, Any] | None = None


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Returns the snapshot as JSON bytes."""
    newer = {} if snapshot.limit is None else {"limit": snapshot.limit}
    return orjson.dumps(
        {
            "v": 3 if _has_packed(snapshot) else 2 if newer else 1,
            "statement_index": snapshot.statement_index,
            "locals": snapshot.locals,
            "awaiting": snapshot.awaiting,
            "next_child": snapshot.next_child,
            "instructions": snapshot.instructions,
            "cancelled": snapshot.cancelled,
            **newer,
        }
    )


def _has_packed(snapshot: Snapshot) -> bool:
    for name, value in snapshot.locals.items():
        if type(value) is dict and name.startswith("$") and is_packed(value):
            return True
    return is_packed(snapshot.awaiting)


def pack(data: bytes) -> bytes:
    """Returns the bytes to store for the JSON of a snapshot: compressed if that is worth it."""
    if len(data) < COMPRESS_BYTES:
        return data
    packed = zlib.compress(data, LEVEL)
    return COMPRESSED + packed if len(packed) < len(data) * 7 // 8 else data


def decode_snapshot(data: bytes | str) -> Snapshot:
    """Returns the snapshot that was encoded, packed or not.

    Raises `InvalidProgram` if it is damaged, `NewerFormat` if a newer Rhythm wrote it.
    """
    try:
        if isinstance(data, bytes) and data.startswith(COMPRESSED):
            data = zlib.decompress(data[1:])
        fields = orjson.loads(data)
        version = fields.pop("v")
        if version > SNAPSHOT_VERSION:
            raise NewerFormat(
                f"the snapshot has format {version}, this Rhythm knows up to "
                f"{SNAPSHOT_VERSION}: upgrade the worker"
            )
        return _checked(Snapshot(**fields), version)
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as problem:
        raise InvalidProgram(f"not a snapshot: {type(problem).__name__}: {problem}") from problem


def _checked(snapshot: Snapshot, version: int) -> Snapshot:
    if version < 1:
        raise ValueError(f"format {version}")
    for name, value in snapshot.__dict__.items():
        if type(value) not in _TYPES[name]:
            raise TypeError(f"`{name}` cannot be {value!r:.60}")
    return snapshot


_TYPES: dict[str, tuple[type, ...]] = {
    "statement_index": (int,), "locals": (dict,), "awaiting": (dict, type(None)),
    "next_child": (int,), "instructions": (int,),
    "cancelled": (bool,), "limit": (dict, type(None)),
}  # fmt: skip
