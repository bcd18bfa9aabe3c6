"""Who acts: the actor that the caller names, or the user of the operating system."""

from __future__ import annotations

import os

from rhythm.app.checks import several, valid_name, valid_text
from rhythm.ids import PersonalKey, personal_key
from rhythm.limits import TEXTS
from rhythm.store.access import Actor
from rhythm.store.provenance import person

__all__ = ["Actor", "By", "acting", "own_key_of", "user"]
By = Actor | str | None  # None means the user of the operating system


def acting(by: By, source: str = "python") -> Actor:
    """Returns the actor to record for an act.

    Raises `ValueError` if its name or roles are not valid. `by` is an actor, a name, or None for
    the user of the operating system.
    """
    actor = by if isinstance(by, Actor) else Actor(by or user(), source=source)
    valid_name(actor.name, "the name of whoever acts")
    # In a text every letter would count as a role, and `in` would find every part of a word.
    if isinstance(actor.roles, str):
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
    """Returns the actor's own form of an `Idempotency-Key`.

    Another person who sends the same text gets a different key, so the two never collide.
    """
    return personal_key(person(actor.name), valid_name(key, "an Idempotency-Key"))


def user() -> str:
    """Returns the name of the user that this process runs as."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the user has no name, as in some containers
        return f"uid-{os.getuid()}" if hasattr(os, "getuid") else "unknown"
