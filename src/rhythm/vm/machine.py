"""The state of one turn: its inputs, and the counters and lists that it fills while it runs."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from typing import Any

from rhythm.limits import Limits
from rhythm.record import Record
from rhythm.vm.commands import Command
from rhythm.vm.snapshot import Snapshot
from rhythm.vm.values import LimitFault


class Outcome(Record):
    """How something awaited has ended.

    `value` is its result, or its error `{code, message, data}`.
    """

    status: str  # completed, failed, cancelled
    value: Any = None
    ended_at: float = 0.0  # gives the order of ends: the first to end wins a race
    takes: tuple[str, ...] = ()  # ids of the signals that this outcome consumes


class Signal(Record):
    """A signal in the execution's mailbox, not yet consumed.

    The mailbox is in the order of sending.
    """

    id: str
    name: str
    payload: Any = None
    received_at: float = 0.0


class Inputs(Record):
    """Everything a turn may know besides its program and snapshot.

    Time, identity and randomness come in here.
    """

    now: str  # ISO 8601, UTC
    seed: str  # uuid() and random() are derived from it; each turn has another one
    inputs: Any = None
    # id, workflow, version, started_at, attempt, parent_id, resume_data
    ctx: Mapping[str, Any] = {}
    outcomes: Mapping[int, Outcome] = {}  # of the children that have ended, by number
    signals: Sequence[Signal] = ()  # the mailbox, of each name from its first signal on
    cancel: bool = False
    # The data that people gave since the last turn when they resumed the execution.
    resume_data: Mapping[str, Any] | None = None
    # Commands (`publish`, `send`) that are refused: those who asked for the execution may not do
    # them.
    forbidden: frozenset[str] = frozenset()
    # Why the store refused this turn before: it would start more executions than allowed.
    refused: str = ""
    # The children of earlier turns that were looked up: their ends, if any, are in `outcomes`.
    # None: all. Also the numbers of groups about which everything was read.
    asked: Container[int] | None = None
    # Those of `outcomes` that were read for loops over `completed`, as the first items to end.
    firsts: Container[int] = ()
    # The names of signals of which all were read. None: all names.
    read: Container[str] | None = None
    # The groups, by number, that cannot end yet: nothing was read of their items.
    undecided: Container[int] = ()
    # Of groups with a limit of concurrency, by number: how many of their items may begin now, from
    # the first one on. If it was not counted, it follows from `outcomes`.
    may_begin: Mapping[int, int] = {}


STARTED = "$started"  # the local that keeps `plans` in the snapshot
RESUMED = "$resumed"  # the local that keeps the value of `ctx.resume_data`
ORIGINS = "$origins"  # the local that keeps `origins`
# The local, if the program has it, into which the data of a resume is merged.
CONTEXT = "$context"
# What a command costs, in instructions. It limits a turn's commit to some ten thousand commands.
COMMAND_WORK = 10


class Ends(Record):
    """Which items of a group have ended, as far as one turn knows."""

    order: list[int]  # positions of those not yet taken by its loop, in the order of ending
    gone: int  # a bit for each position that has ended
    taken: int  # how many its loop had taken before this turn


class Machine:
    """The mutable state of one turn. Expressions reach it as the local `$m`."""

    # If this turn began the current await: the index after the last command that it asked for.
    begun: int | None = None
    keep: tuple[str, ...] = ()
    result: Any = None
    mark = 0  # the index of the current statement's first command
    started = 0  # how many operations the current statement has asked for
    draws = 0
    # Whether the turn used the time or random numbers. Then it must be committed before anything
    # acts on it.
    drew = False

    def __init__(self, snapshot: Snapshot, inputs: Inputs, limits: Limits) -> None:
        self.inputs = inputs
        self.limits = limits
        self.id = str(inputs.ctx.get("id", ""))
        locals = snapshot.locals
        self.resumed = (
            locals.get(RESUMED) if inputs.resume_data is None else dict(inputs.resume_data)
        )
        self.ctx = {**inputs.ctx, "resume_data": self.resumed}
        self.fuel = limits.turn_instructions
        self.work_floor = -limits.statement_work
        self.commands: list[Command] = []
        # Children from `first_new` on are started by this turn, and cannot have ended yet.
        self.next_child = self.first_new = snapshot.next_child
        self.awaiting = snapshot.awaiting
        self.cancelled = snapshot.cancelled
        # `{error, at}` of the limit that the execution is over; None if it is over none.
        self.limit = snapshot.limit
        # By number: the plans of what was started and can be awaited by id.
        self.plans: dict[str, Any] = {**locals[STARTED]} if STARTED in locals else {}
        # By variable: the place where the error in it arose.
        self.origins: dict[str, int] = dict(locals[ORIGINS]) if ORIGINS in locals else {}

    # Most turns need none of these, so each is made when it is first asked for.

    @cached_property
    def ends(self) -> dict[int, Ends]:
        """Of groups, by number, once this turn has counted them."""
        return {}

    @cached_property
    def known(self) -> set[int]:
        """The numbers of the waits about which this turn knows everything that decides them."""
        return set()

    @cached_property
    def matched(self) -> dict[int, Outcome]:
        """How waits for signals, and groups, would end, once this turn has resolved them."""
        return {}

    @cached_property
    def mail(self) -> dict[str, list[Signal]]:
        """The mailbox by names of signals.

        It is sorted once a turn: thousands of waits may be for one name, and thousands of signals
        may have other names.
        """
        mail: dict[str, list[Signal]] = {}
        for signal in self.inputs.signals:
            mail.setdefault(signal.name, []).append(signal)
        return mail

    @cached_property
    def first_free(self) -> dict[str, int]:
        """By name: before this place in `mail`, all were consumed in this turn."""
        return {}

    @cached_property
    def taken(self) -> set[str]:
        """The signals that were consumed in this turn."""
        return set()

    @cached_property
    def attributes(self) -> dict[str, int]:
        """The attributes that were set in this turn, with their bytes."""
        return {}

    def draw(self) -> bytes:
        """Returns 32 random bytes: each draw has others, the same whenever the turn is computed."""
        self.drew = True
        self.draws += 1
        return hashlib.sha256(f"{self.inputs.seed}:{self.draws}".encode()).digest()

    def charge(self, work: int) -> None:
        """Counts work done inside a statement; raises LimitFault if one statement does too much.

        A statement may use more than the turn has left, but only up to a limit.
        """
        self.fuel -= work
        if self.fuel < self.work_floor:
            raise LimitFault(
                f"one statement did the work of more than {self.limits.statement_work:,} "
                f"instructions"
            )
