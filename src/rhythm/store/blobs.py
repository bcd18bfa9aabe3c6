"""Large snapshots, which are stored in table `blobs`; the row that they belong to refers to them
with one byte.

An execution has at most one blob, under its own id. It is written in the transaction of the turn
that left it, in place of the one before, and exists exactly as long as the row refers to it.
"""

from __future__ import annotations

INLINE_BYTES = 256 * 1024
REFERENCE = b"@"  # no snapshot begins with it


def is_large(snapshot: bytes | None) -> bool:
    """Returns whether a snapshot is too large for its row."""
    return snapshot is not None and len(snapshot) > INLINE_BYTES


def inline(snapshot: bytes | None) -> bytes | None:
    """Returns what is stored in the row: the snapshot, or the reference to its blob."""
    return REFERENCE if is_large(snapshot) else snapshot
