"""Ids of executions: UUIDv7 in lower-case Crockford base 32, so that they sort by the time they
were made.

A child's id is its parent's with a dot and its number; an id that a user chooses contains neither
dot nor slash.
"""

from __future__ import annotations

from rhythm.limits import TEXTS

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 26
MAX_ID_CHARACTERS = TEXTS.id


def encode_id(time_ms: int, random_bits: int) -> str:
    """The id for a moment and at least 74 random bits."""
    number = (
        (time_ms & (1 << 48) - 1) << 80
        | 0x7 << 76
        | (random_bits >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | random_bits & (1 << 62) - 1
    )
    return "".join(_DIGITS[number >> shift & 31] for shift in range(5 * (LENGTH - 1), -1, -5))


def child_id(parent: str, n: int) -> str:
    return f"{parent}.{n}"


def problem_with_id(id: str) -> str:
    """Why a user's own id cannot be used; empty if it can."""
    if not id or len(id) > MAX_ID_CHARACTERS:
        return f"an id has 1 to {MAX_ID_CHARACTERS} characters"
    if not id.isprintable() or any(c in id for c in "./ "):
        return "an id contains no dot, slash, space or control character"
    return ""


class PersonalKey(str):
    """The key of a request that may come twice, as one person's: what others write can never be the
    same."""

    __slots__ = ()


def personal_key(person: str, key: str) -> PersonalKey:
    """The key that a person has given, whatever others give: the two are hashed together, so it is
    as long as every other."""
    from hashlib import sha256

    # neither of them can have a NUL in it
    both = f"{person}\0{key}".encode("utf-8", "surrogatepass")
    return PersonalKey(f"person:{sha256(both).hexdigest()}")


def is_personal(key: str) -> bool:
    """Whether a text has the form of a personal key: nobody may choose one."""
    return key.startswith("person:") and len(key) == 71 and not key[7:].strip("0123456789abcdef")
