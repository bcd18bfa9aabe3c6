"""Snapshots are stored as they are or compressed, and come back from both."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.errors import InvalidProgram
from rhythm.vm.snapshot import COMPRESS_BYTES, Snapshot, decode_snapshot, encode_snapshot, pack

LOCALS = st.dictionaries(
    st.text(st.characters(codec="utf-8")),
    st.lists(st.text(st.characters(codec="utf-8")) | st.integers(-9, 9)),
)


@given(LOCALS, st.integers(1, 300))
def test_whatever_is_packed_comes_back(locals: dict[str, Any], times: int) -> None:
    snapshot = Snapshot(3, {name: value * times for name, value in locals.items()})
    data = encode_snapshot(snapshot)
    assert decode_snapshot(pack(data)) == snapshot
    assert len(pack(data)) <= len(data)


def test_small_snapshot_is_stored_as_it_is() -> None:
    data = encode_snapshot(Snapshot(locals={"x": "y" * 1000}))
    assert pack(data) is data


def test_large_snapshot_is_compressed_where_that_saves() -> None:
    data = encode_snapshot(Snapshot(locals={"x": ["tea"] * 1000}))
    assert len(pack(data)) < len(data) // 10
    noise = b"{" + random.Random(1).randbytes(COMPRESS_BYTES)
    assert pack(noise) is noise


@pytest.mark.parametrize("stored", [b"z123", b"@", b"\x09new", b"", b"z"])
def test_damaged_bytes_are_refused(stored: bytes) -> None:
    with pytest.raises(InvalidProgram, match="not a snapshot"):
        decode_snapshot(stored)
