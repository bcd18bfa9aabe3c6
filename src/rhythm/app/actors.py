"""Who acts: whoever is named, or the user of the operating system."""

from __future__ import annotations

import os

from rhythm.app.checks import several, valid_name, valid_text
from rhythm.ids import PersonalKey, personal_key
from rhythm.limits import TEXTS
from rhythm.store.access import Actor
from rhythm.store.provenance import person

__all__ = ["Actor", "By", "acting", "own_key_of", "user"]
By = Actor | str | None  # None is the user of the operating system


def acting(by: By, source: str = "python") -> Actor:
    """Whoever asks, as it is recorded."""
    actor = by if isinstance(by, Actor) else Actor(by or user(), source=source)
    valid_name(actor.name, "the name of whoever acts")
    if isinstance(actor.roles, str):  # every letter would be a role, and every part of a word
        raise ValueError(
            f"the roles of {actor.name} are several texts, not one: Actor({actor.name!r}, "
            f"({actor.roles!r:.80},))"
        )
    if actor.roles is not None:
        several(actor.roles, "a role")
    for value, what in (
        (actor.token, "the id of a token"),
        (actor.source, "where whoever acts is"),
    ):
        valid_text(value or "", what, TEXTS.name)
    return actor


def own_key_of(actor: Actor, key: str) -> PersonalKey:
    """Whoever's `Idempotency-Key`: another person who uses the same text does not meet it."""
    return personal_key(person(actor.name), valid_name(key, "an Idempotency-Key"))


def user() -> str:
    """The user that this process runs as."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name, as in some containers
        return f"uid-{os.getuid()}" if hasattr(os, "getuid") else "unknown"
