"""Every limit of the language and the interpreter: one name, one default, one place.

Going over a limit is a clear error or a yield, never a hang and never a dead process.
"""

from __future__ import annotations

from rhythm.record import Record


class Limits(Record):
    """What one workflow may use. Pass another instance to `compile` or `advance` to change it."""

    source_bytes: int = 256 * 1024
    tokens: int = 50_000  # words, numbers and signs of a source: they, not the bytes, are what compiling costs
    exits: int = 10_000  # `return`, `break` and `continue`, each counted once for every `finally` that it has to pass
    nesting: int = 64  # of blocks, brackets and templates in a source
    identifier_bytes: int = 255
    variables: int = 500  # in scope at one place: each await of a program names those that it keeps
    diagnostics: int = 100  # shown for one file; the rest is counted
    turn_instructions: int = 100_000  # then the turn yields (`Continue`)
    statement_work: int = 1_000_000  # instructions' worth of work inside one statement (comprehensions, builtins)
    lifetime_instructions: int = 100_000_000
    text_bytes: int = 1024 * 1024
    entries: int = 100_000  # of one list or object
    depth: int = 64  # of a value that is stored: a snapshot, an input, a result
    generations: int = 64  # of workflows and branches, one below the other
    children: int = 50_000  # of one execution, that have not ended; of ended ones there may be any number
    family: int = 100_000  # below an execution that nobody else started, likewise; counted by samples, so about a tenth more
    fan_out: int = 10_000  # operations in one all/any/race/completed, or started by one statement
    snapshot_bytes: int = 4 * 1024 * 1024
    snapshot_warn_bytes: int = 1024 * 1024
    payload_bytes: int = 1024 * 1024  # inputs or result of one task, child, signal or event
    payload_warn_bytes: int = 256 * 1024
    signals: int = 10_000  # unconsumed, for one execution


DEFAULT_LIMITS = Limits()

LONGEST_NAME = 200  # of a task, workflow, queue, signal, event or attribute, in characters
INT_MAX = 2**63 - 1
INT_MIN = -(2**63)
