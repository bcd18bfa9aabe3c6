"""Ids of executions: what is in them, and their order."""

from __future__ import annotations

import os

from rhythm.ids import LENGTH, RANDOM, encode_id, encode_ids

DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
TIME_MS = 1_790_000_000_000


def test_ids_made_together_are_such_as_are_made_one_by_one() -> None:
    for given in (os.urandom(RANDOM * 200), b"\xff" * RANDOM, b"\0" * RANDOM):
        for id in encode_ids(TIME_MS, given):
            number = sum(DIGITS.index(digit) << 5 * n for n, digit in enumerate(reversed(id)))
            random = (number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1
            assert len(id) == LENGTH
            assert encode_id(TIME_MS, random) == id


def test_ids_made_together_rise_and_all_their_random_bits_count() -> None:
    ids = encode_ids(TIME_MS, os.urandom(RANDOM * 5000))
    assert ids == sorted(set(ids))
    assert len(ids) == 5000
    assert encode_ids(TIME_MS, b"") == []
    assert encode_id(TIME_MS - 1, -1) < ids[0]
    assert ids[-1] < encode_id(TIME_MS + 1, 0)
    places = [{*place} for place in zip(*ids, strict=True)]
    # ten digits of the time, one with the version, one with the variant
    assert [len(place) for place in places] == [1] * 10 + [2, 32, 32, 8] + [32] * 12
