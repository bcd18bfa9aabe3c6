"""Every limit of the language, of the interpreter and of the texts that people give: one name, one
default, one place.

Going over a limit is a clear error or a yield, never a hang and never a dead process.
"""

from __future__ import annotations

from rhythm.record import Record


class Limits(Record):
    """What one workflow may use. Pass another instance to `compile` or `advance` to change it."""

    source_bytes: int = 256 * 1024
    # words, numbers and signs of a source: they, not the bytes, are what compiling costs
    tokens: int = 50_000
    workflows: int = 200  # in one file
    annotations: int = 50  # of one workflow
    schedules: int = 200  # of one file: all are made in the transaction that registers it
    program_bytes: int = 4 * 1024 * 1024  # of the programs of one file, as they are stored
    cached_programs: int = 1000  # in one process
    # of these, as they are stored; loaded, they take several times as much
    cached_program_bytes: int = 8 * 1024 * 1024
    # `return`, `break` and `continue`, each counted once for every `finally` that it has to pass
    exits: int = 10_000
    nesting: int = 64  # of blocks, brackets and templates in a source
    identifier_bytes: int = 255
    variables: int = 500  # in scope at one place: each await of a program names those that it keeps
    diagnostics: int = 100  # shown for one file; the rest is counted
    turn_instructions: int = 100_000  # then the turn yields (`Continue`)
    # instructions' worth of work inside one statement (comprehensions, builtins)
    statement_work: int = 1_000_000
    lifetime_instructions: int = 100_000_000
    text_bytes: int = 1024 * 1024
    entries: int = 100_000  # of one list or object
    depth: int = 64  # of a value that is stored: a snapshot, an input, a result
    generations: int = 64  # of workflows and branches, one below the other
    # of one execution, that have not ended; of ended ones there may be any number
    children: int = 50_000
    # below an execution that nobody else started, likewise; counted by samples, so about a tenth
    # more
    family: int = 100_000
    fan_out: int = 10_000  # operations in one all/any/race/completed, or started by one statement
    snapshot_bytes: int = 4 * 1024 * 1024
    snapshot_warn_bytes: int = 1024 * 1024
    payload_bytes: int = 1024 * 1024  # inputs or result of one task, child, signal or event
    payload_warn_bytes: int = 256 * 1024
    signals: int = 10_000  # unconsumed, for one execution
    # that are read to retry an execution: it and all below it, their timers and signals
    retry_rows: int = 200_000
    # of the snapshots among them that did not end well, as they are stored, and unpacked
    retry_bytes: int = 64 * 1024 * 1024


class TextLimits(Record):
    """How long the texts are that people and workflows give besides payloads, in characters unless
    the name says bytes.

    All of them are stored in rows that lists read and databases index; some are computed with. So
    they are short.
    """

    # of a task, workflow, queue, signal, event, schedule, token, role, attribute, or of whoever
    # acts
    name: int = 200
    id: int = 200  # that somebody chooses: of an execution, signal or event
    key: int = 200  # idempotency and decision keys
    known_id: int = 20_000  # of what there is already: a child's id is longer than its parent's
    cron: int = 200
    time_zone: int = 100
    time: int = 100  # a date, time or duration as text
    reason: int = 1000  # of a pause, a resume, a bulk act
    comment: int = 4000  # of a decision, and the reason of an approval, which people read
    roles: int = 100  # how many of a kind a token, or whoever acts, has
    escalations: int = 20  # how many stages an approval has
    where_bytes: int = 4096  # what a wait asks of an event
    attributes: int = 50  # how many an execution has
    attribute_bytes: int = 4096  # the value of one
    attributes_bytes: int = 16 * 1024  # all of them


DEFAULT_LIMITS = Limits()
TEXTS = TextLimits()

LONGEST_NAME = TEXTS.name
INT_MAX = 2**63 - 1
INT_MIN = -(2**63)
