"""What the parts of `Rhythm` have in common: the database, the settings, who acts, and the workers of this process to wake."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rhythm.app.checks import several, valid_name, valid_text
from rhythm.limits import TEXTS
from rhythm.rights import Scope, prefixes, within
from rhythm.store.access import Actor

if TYPE_CHECKING:
    from rhythm.app.handle import Id
    from rhythm.ir.program import Program
    from rhythm.settings import Settings
    from rhythm.store.base import Execution, Store

By = Actor | str | None  # who acts: None is the user of the operating system


class Part:
    """A part of the application: its methods are methods of `Rhythm`, which has those that several parts need."""

    store: Store
    settings: Settings

    def _wake(self) -> None:
        raise NotImplementedError

    def _execution(self, id: Id) -> Execution:
        raise NotImplementedError

    def program(self, name: str, version: str | None = None) -> Program | None:
        raise NotImplementedError

    def _names(self, scope: Scope) -> tuple[str, ...] | None:
        """The names of all executions that somebody started and that are in this scope; None: all of them.

        From here on databases are asked for names, not for patterns: one function says what a pattern means.
        """
        return None if scope is None else tuple(name for name in self.store.names(prefixes(scope)) if within(scope, name))


def acting(by: By, source: str = "python") -> Actor:
    """Whoever asks, as it is recorded."""
    actor = by if isinstance(by, Actor) else Actor(by or user(), source=source)
    valid_name(actor.name, "the name of whoever acts")
    if isinstance(actor.roles, str):  # every letter would be a role, and every part of a word
        raise ValueError(f"the roles of {actor.name} are several texts, not one: Actor({actor.name!r}, ({actor.roles!r:.80},))")
    if actor.roles is not None:
        several(actor.roles, "a role")
    for value, what in ((actor.token, "the id of a token"), (actor.source, "where whoever acts is")):
        valid_text(value or "", what, TEXTS.name)
    return actor


def user() -> str:
    """The user that this process runs as."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name, as in some containers
        return f"uid-{os.getuid()}" if hasattr(os, "getuid") else "unknown"
