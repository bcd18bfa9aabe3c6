"""How snapshots are stored: plain, compressed or apart from their row; whatever was stored comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.engine.encoding import COMPRESS_BYTES, pack, unpack
from rhythm.errors import InvalidProgram
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "v1").glob("*.json"))


@given(st.binary(max_size=2 * COMPRESS_BYTES), st.integers(1, 50))
def test_whatever_is_packed_comes_back(data: bytes, times: int) -> None:
    snapshot = b"{" + data * times
    assert unpack(pack(snapshot)) == snapshot
    assert len(pack(snapshot)) <= len(snapshot)


def test_small_snapshot_is_stored_as_it_is() -> None:
    data = encode_snapshot(Snapshot(locals={"x": "y" * 1000}))
    assert pack(data) is data


def test_large_snapshot_is_compressed_where_that_saves() -> None:
    data = encode_snapshot(Snapshot(locals={"x": ["tea"] * 1000}))
    assert len(pack(data)) < len(data) // 10
    noise = b"{" + bytes(i * i * 31 % 251 ^ i * 7 % 256 for i in range(COMPRESS_BYTES)) * 1
    assert len(pack(noise)) <= len(noise)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_snapshots_of_the_first_version_load_as_they_were_stored(path: Path) -> None:
    if path.stem.endswith(".program"):
        return
    stored = [text for text in _texts(json.loads(path.read_text(encoding="utf-8"))) if text.startswith('{"v":1')]
    for text in stored:
        assert decode_snapshot(unpack(text.encode())) == decode_snapshot(text)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (b"z123", "not a snapshot"),
        (b"@", "table `blobs` has nothing for it"),
        (b"\x09new", "upgrade the worker"),
        (b"", "upgrade the worker"),
    ],
)
def test_damaged_or_newer_bytes_are_refused(stored: bytes, message: str) -> None:
    with pytest.raises(InvalidProgram, match=message):
        unpack(stored)
