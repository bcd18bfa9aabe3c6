"""The actor of a command: the name given with --by, else the user who is logged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments

if TYPE_CHECKING:
    from rhythm.app.actors import Actor


def actor(args: Arguments, roles: tuple[str, ...] | None = None) -> Actor:
    """Returns who acts: the name given with --by, else the user of this machine."""
    from rhythm.app.actors import Actor, user

    return Actor(args.by or user(), roles, source="cli")
