"""Makes the stored form of a program, with what its annotations ask of the database."""

from __future__ import annotations

import json

from rhythm.errors import InvalidProgram
from rhythm.ir.codec import dump_within
from rhythm.ir.program import Program
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces.definitions import Definition


def definition_of(
    program: Program, source: str, name: str | None = None, room: int = DEFAULT_LIMITS.program_bytes
) -> Definition:
    """Returns the row of a workflow. Its `name` is the program's own if none is given.

    Raises `InvalidProgram` if the stored program would have more than `room` bytes.
    """
    options, text = program.options, dump_within(program, room)
    if text is None:
        raise InvalidProgram(
            f"the workflow `{program.name}` makes its file over a limit: the programs of one "
            f"file have at most {DEFAULT_LIMITS.program_bytes:,} bytes as they are stored. "
            "Split the file, or the workflow: each await names all variables that are in scope"
        )
    declared = options.get("inputs")
    return Definition(
        name or program.name,
        program.version,
        program.language,
        source,
        text,
        program.file,
        inputs=None if declared is None else json.dumps(declared),
        on=tuple(dict.fromkeys(options.get("on", ()))),
        queue=options.get("queue") or "default",
        timeout_s=options.get("timeout"),
        schedules=tuple(options.get("schedule", ())),
    )
