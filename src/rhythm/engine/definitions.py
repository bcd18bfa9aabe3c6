"""A program as it is stored, and what its annotations ask of the database."""

from __future__ import annotations

from rhythm.ir.codec import dump_program
from rhythm.ir.program import Program
from rhythm.store.base import Definition


def definition_of(program: Program, source: str, name: str | None = None) -> Definition:
    """`name`: under which it is registered, if not its own."""
    options = program.options
    return Definition(
        name or program.name, program.version, program.language, source, dump_program(program), program.file,
        on=tuple(dict.fromkeys(options.get("on", ()))), queue=options.get("queue") or "default", timeout_s=options.get("timeout"),
    )  # fmt: skip
