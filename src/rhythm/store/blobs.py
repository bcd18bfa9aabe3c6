"""Snapshots that are too large for the row they belong to lie in table `blobs`; the row refers to
them with one byte.

An execution has at most one blob, under its own id. It is written in the transaction of the turn
that left it, in place of the one before, and is there exactly as long as the row says so.
"""

from __future__ import annotations

INLINE_BYTES = 256 * 1024
REFERENCE = b"@"  # no snapshot begins with it


def is_large(snapshot: bytes | None) -> bool:
    return snapshot is not None and len(snapshot) > INLINE_BYTES


def inline(snapshot: bytes | None) -> bytes | None:
    """What stands in the row."""
    return REFERENCE if is_large(snapshot) else snapshot
