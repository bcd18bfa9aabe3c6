"""How a snapshot is stored: its JSON as it is, or compressed. The first byte tells which, and `{` is that of the JSON itself."""

from __future__ import annotations

import zlib

from rhythm.errors import InvalidProgram
from rhythm.store.blobs import REFERENCE

PLAIN, COMPRESSED = b"{", b"z"
COMPRESS_BYTES = 2048  # what is larger leaves its page on PostgreSQL, which costs more than compressing it
LEVEL = 1  # 36 % of the size are left of a typical snapshot; level 6 leaves 31 % and takes two to three times as long


def pack(data: bytes) -> bytes:
    """The bytes to store for the JSON of a snapshot."""
    if len(data) < COMPRESS_BYTES:
        return data
    packed = zlib.compress(data, LEVEL)
    return COMPRESSED + packed if len(packed) < len(data) * 7 // 8 else data


def unpack(stored: bytes) -> bytes:
    """The JSON of a snapshot; `InvalidProgram` if its bytes are damaged or from a newer Rhythm."""
    encoding = stored[:1]
    if encoding == PLAIN:
        return stored
    if encoding == COMPRESSED:
        try:
            return zlib.decompress(stored[1:])
        except zlib.error as problem:
            raise InvalidProgram(f"not a snapshot: {problem}") from problem
    if encoding == REFERENCE:
        raise InvalidProgram("the snapshot is a reference, and table `blobs` has nothing for it")
    raise InvalidProgram(f"the snapshot has an encoding {encoding!r} that this Rhythm does not know: upgrade the worker")
