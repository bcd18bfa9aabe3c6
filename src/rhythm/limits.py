"""Every limit of the language, of the interpreter and of the texts that people give, with its
default.

Exceeding a limit is a clear error or a yield, never a hang and never a dead process.
"""

from __future__ import annotations

from rhythm.record import Record


class Limits(Record):
    """What one workflow may use.

    To change a limit, pass another instance to `compile` or `advance`.
    """

    source_bytes: int = 256 * 1024
    # words, numbers and signs of a source: the time to compile depends on them, not on the bytes
    tokens: int = 50_000
    workflows: int = 200  # in one file
    annotations: int = 50  # of one workflow
    schedules: int = 200  # in one file: all are created in the transaction that registers it
    program_bytes: int = 4 * 1024 * 1024  # all programs of one file, as they are stored
    cached_programs: int = 1000  # in one process
    # all cached programs, as they are stored; loaded, they take several times as much
    cached_program_bytes: int = 8 * 1024 * 1024
    # `return`, `break` and `continue`, each counted once for every `finally` that it passes
    exits: int = 10_000
    nesting: int = 64  # of blocks, brackets and templates in a source
    identifier_bytes: int = 255
    type_parts: int = 1000  # words, values, lists and objects in the types of one header
    # in scope at one place: each await of a program lists the variables that it keeps
    variables: int = 500
    diagnostics: int = 100  # shown for one file; the rest is only counted
    turn_instructions: int = 100_000  # then the turn yields (`Continue`)
    # work inside one statement (comprehensions, builtins), measured in instructions
    statement_work: int = 1_000_000
    lifetime_instructions: int = 100_000_000
    # more of them, for the `finally` blocks of an execution that is over a limit
    cleanup_instructions: int = 1_000_000
    text_bytes: int = 1024 * 1024
    entries: int = 100_000  # of one list or object
    depth: int = 64  # nesting of a stored value: a snapshot, an input, a result
    generations: int = 64  # of workflows and branches, one below the other
    # children of one execution that have not ended; the number of ended ones is not limited
    children: int = 50_000
    # executions below a root that have not ended; it is counted by sampling, so about a tenth
    # more are possible
    family: int = 100_000
    fan_out: int = 10_000  # operations in one all/any/race/completed, or started by one statement
    snapshot_bytes: int = 4 * 1024 * 1024
    # of what the `finally` blocks of an execution that is over a limit still read
    cleanup_bytes: int = 8 * 1024 * 1024
    snapshot_warn_bytes: int = 1024 * 1024
    payload_bytes: int = 1024 * 1024  # inputs or result of one task, child, signal or event
    payload_warn_bytes: int = 256 * 1024
    signals: int = 10_000  # in the mailbox of one execution
    # rows read to retry an execution: it and everything below it, with timers and signals
    retry_rows: int = 200_000
    # size of the snapshots read for a retry (of executions that did not complete), both as they
    # are stored and unpacked
    retry_bytes: int = 64 * 1024 * 1024

    def state_bytes(self, over: bool) -> int:
        """Returns how large the state of an execution may be; `over`: it is over a limit."""
        return max(self.snapshot_bytes, self.cleanup_bytes) if over else self.snapshot_bytes

    def instructions(self, over: bool) -> int:
        """Returns how many instructions an execution may run; `over`: it is over a limit."""
        return self.lifetime_instructions + (self.cleanup_instructions if over else 0)


class TextLimits(Record):
    """The longest names, ids, reasons and other short texts: everything but payloads.

    In characters, unless the name says bytes. They are short because lists read them and databases
    index them.
    """

    # of a task, workflow, queue, signal, event, schedule, token, role, attribute or actor
    name: int = 200
    id: int = 200  # that a user chooses, for an execution, signal or event
    key: int = 200  # idempotency and decision keys
    known_id: int = 20_000  # of something stored: a child's id is longer than its parent's
    cron: int = 200
    time_zone: int = 100
    time: int = 100  # a date, time or duration as text
    reason: int = 1000  # of a pause, a resume, a bulk act
    metadata_bytes: int = 4096  # what is kept with a pause or a resume, as JSON
    comment: int = 4000  # of a decision; also the reason of an approval, which people read
    roles: int = 100  # how many roles of a kind a token or an actor has
    escalations: int = 20  # how many stages an approval has
    where_bytes: int = 4096  # the condition that an event must meet to end a wait
    attributes: int = 50  # how many an execution has
    attribute_bytes: int = 4096  # the value of one attribute
    attributes_bytes: int = 16 * 1024  # all attributes of an execution together
    filter: int = 2000  # a filter of executions
    filter_terms: int = 20
    filter_values: int = 20  # alternatives in one term
    searched_bytes: int = 600  # the value of an attribute, as JSON, that can be searched for


class LogLimits(Record):
    """How much is kept of what executions say: lines of logs, and reports of progress.

    What is over a limit is cut or dropped, and counted. Nothing fails because of it.
    """

    lines: int = 10_000  # of one root and everything below it
    progress: int = 1_000  # reports of progress that are kept in addition, where these are reached
    bytes: int = 4 * 1024 * 1024  # the texts and fields of all of these
    message: int = 4096  # characters of one line
    fields_bytes: int = 4096  # the fields of one line, as JSON
    waiting: int = 10_000  # lines that wait in one worker for the database
    waiting_bytes: int = 8 * 1024 * 1024
    group: int = 500  # lines that are written in one transaction
    counted: int = 1_000  # roots of which one worker counts what it has dropped
    pruned: int = 20_000  # lines that are deleted in one transaction, with at least one root


# The data of a `LimitExceeded` that is no fault of the program alone: too much was under way.
REFUSED = {"refused": True}
DEFAULT_LIMITS = Limits()
TEXTS = TextLimits()
LOGS = LogLimits()

LONGEST_NAME = TEXTS.name
INT_MAX = 2**63 - 1
INT_MIN = -(2**63)
