"""Ids of executions: UUIDv7 in lower-case Crockford base 32, so that they sort by creation time.

A child's id is its parent's id, a dot, and its number. An id that a user chooses contains neither a
dot nor a slash.
"""

from __future__ import annotations

from rhythm.limits import TEXTS

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 26
# Two digits at a time take half as long.
_PAIRS = [first + second for first in _DIGITS for second in _DIGITS]
_SHIFTS = range(5 * (LENGTH - 2), -1, -10)
RANDOM = 16  # digits after those of the time, and random bytes for an id of many
# Digits for random bytes: any, that with the version (0111r), and that with the variant (r10rr).
_ANY, _VERSION, _VARIANT = (
    "".join(_DIGITS[byte & keeps | sets] for byte in range(256)).encode()
    for keeps, sets in ((0b11111, 0), (0b00001, 0b01110), (0b10011, 0b01000))
)
MAX_ID_CHARACTERS = TEXTS.id


def encode_id(time_ms: int, random_bits: int) -> str:
    """Returns the id for this time and at least 74 random bits."""
    number = (
        (time_ms & (1 << 48) - 1) << 80
        | 0x7 << 76
        | (random_bits >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | random_bits & (1 << 62) - 1
    )
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


def encode_ids(time_ms: int, random: bytes) -> list[str]:
    """Returns new ids of one time in rising order, one for each 16 random bytes.

    Each byte makes a digit. It takes a tenth of the time of as many calls of `encode_id`.
    """
    digits = bytearray(random.translate(_ANY))
    digits[::RANDOM] = digits[::RANDOM].translate(_VERSION)
    digits[3::RANDOM] = digits[3::RANDOM].translate(_VARIANT)
    text, time = digits.decode(), encode_id(time_ms, 0)[:-RANDOM]
    return sorted([time + text[n : n + RANDOM] for n in range(0, len(text), RANDOM)])


def child_id(parent: str, n: int) -> str:
    """Returns the id of the parent's n-th child."""
    return f"{parent}.{n}"


def is_root(id: str) -> bool:
    """Returns whether an execution with this id has no parent."""
    return "." not in id


def root_of(id: str) -> str:
    """Returns the id of the root that an execution is below; its own, if it is one."""
    return id.partition(".")[0]


def problem_with_id(id: str) -> str:
    """Returns why a user cannot choose this id, or an empty text if they can."""
    if not id or len(id) > MAX_ID_CHARACTERS:
        return f"an id has 1 to {MAX_ID_CHARACTERS} characters"
    if not id.isprintable() or any(c in id for c in "./ "):
        return "an id contains no dot, slash, space or control character"
    return ""


class PersonalKey(str):
    """An idempotency key of one person: no key that anybody else writes can be equal to it."""

    __slots__ = ()


def personal_key(person: str, key: str) -> PersonalKey:
    """Returns one person's own form of the key that they sent.

    Two people may send the same key and get different ones. Person and key are hashed together, so
    the result always has the same length.
    """
    from hashlib import sha256

    # Neither of them can contain a NUL, so the pair is unambiguous.
    both = f"{person}\0{key}".encode("utf-8", "surrogatepass")
    return PersonalKey(f"person:{sha256(both).hexdigest()}")


def is_personal(key: str) -> bool:
    """Tells whether a text has the form of a personal key. Users may not choose such a key."""
    return key.startswith("person:") and len(key) == 71 and not key[7:].strip("0123456789abcdef")
