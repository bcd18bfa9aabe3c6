"""Who acts: whoever is logged in, or a name that is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments

if TYPE_CHECKING:
    from rhythm.app.actors import Actor


def actor(args: Arguments, roles: tuple[str, ...] | None = None) -> Actor:
    from rhythm.app.actors import Actor, user

    return Actor(args.by or user(), roles, source="cli")
