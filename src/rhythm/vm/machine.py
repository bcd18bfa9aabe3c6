"""What one turn works with: its inputs, and the counters and lists it fills while it runs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from rhythm.limits import Limits
from rhythm.record import Record
from rhythm.vm.commands import Command
from rhythm.vm.snapshot import Snapshot
from rhythm.vm.values import LimitFault


class Outcome(Record):
    """How something awaited has ended. `value` is its result, or its error `{code, message,
    data}`."""

    status: str  # completed, failed, cancelled
    value: Any = None
    ended_at: float = 0.0  # orders what has ended: the first to end wins a race
    takes: tuple[str, ...] = ()  # ids of the signals that this outcome consumes


class Signal(Record):
    """A signal in the execution's mailbox, not yet consumed. The mailbox is in the order of
    sending."""

    id: str
    name: str
    payload: Any = None
    received_at: float = 0.0


class Inputs(Record):
    """Everything a turn may know besides its program and snapshot. Time, identity and chance come
    in here."""

    now: str  # ISO 8601, UTC
    seed: str  # what uuid() and random() are derived from: another one for each turn
    inputs: Any = None
    # id, workflow, version, started_at, attempt, parent_id, resume_data
    ctx: Mapping[str, Any] = {}
    outcomes: Mapping[int, Outcome] = {}  # of children, by number, as far as they have ended
    signals: Sequence[Signal] | None = ()  # the mailbox; None: nobody has looked into it
    cancel: bool = False
    # what a person gave when resuming the execution, since the last turn
    resume_data: Mapping[str, Any] | None = None
    # operations that those who asked for the execution might not have done themselves
    forbidden: frozenset[str] = frozenset()
    # of children from earlier turns, those whose ends would be in `outcomes`; None: all
    asked: Container[int] | None = None


STARTED = "$started"  # the local that keeps `plans` in the snapshot
RESUMED = "$resumed"  # the local that keeps what `ctx.resume_data` gives
ORIGINS = "$origins"  # the local that keeps `origins`
CONTEXT = "$context"  # the local of a program, if it has one, that what a person gives goes into
# what asking for something costs, in instructions: so a turn's commit has some ten thousand
# commands at most
COMMAND_WORK = 10


class Ends(Record):
    """What has ended of a group, as one turn knows it."""

    order: list[int]  # positions of those that its loop has not had, the first to end first
    gone: list[int]  # positions of all that have ended, in order
    taken: int  # how many its loop had had before


class Machine:
    """The moving parts of one turn. Expressions reach it as the local `$m`."""

    __slots__ = (
        "attributes",
        "awaiting",
        "cancelled",
        "commands",
        "ctx",
        "draws",
        "drew",
        "ends",
        "first_new",
        "fuel",
        "id",
        "inputs",
        "keep",
        "known",
        "limits",
        "mail",
        "mark",
        "matched",
        "next_child",
        "origins",
        "plans",
        "result",
        "resumed",
        "started",
        "taken",
        "work_floor",
    )

    def __init__(self, snapshot: Snapshot, inputs: Inputs, limits: Limits) -> None:
        self.inputs = inputs
        self.limits = limits
        self.id = str(inputs.ctx.get("id", ""))
        self.resumed = (
            snapshot.locals.get(RESUMED) if inputs.resume_data is None else dict(inputs.resume_data)
        )
        self.ctx = {**inputs.ctx, "resume_data": self.resumed}
        self.fuel = limits.turn_instructions
        self.work_floor = -limits.statement_work
        self.commands: list[Command] = []
        # what this turn starts has not ended yet
        self.next_child = self.first_new = snapshot.next_child
        self.awaiting = snapshot.awaiting
        self.cancelled = snapshot.cancelled
        self.keep: tuple[str, ...] = ()
        self.result: Any = None
        # by number: what was started and can be awaited by id
        self.plans: dict[str, Any] = dict(snapshot.locals.get(STARTED, {}))
        # by variable: the place where the error in it arose
        self.origins: dict[str, int] = dict(snapshot.locals.get(ORIGINS, ()))
        self.ends: dict[int, Ends] = {}  # of groups, by number, as far as this turn has looked
        # the numbers of waits of which this turn knows all that decides them
        self.known: set[int] = set()
        # how waits for signals would end, as far as this turn has looked
        self.matched: dict[int, Outcome] = {}
        # the mailbox by names of signals, once this turn has looked
        self.mail: dict[str, list[Signal]] | None = None
        self.mark = 0  # where the commands of the statement which runs begin
        self.started = 0  # operations that the statement which runs has asked for
        self.taken: set[str] = set()  # signals consumed in this turn
        self.attributes: dict[str, int] = {}  # set in this turn, and their bytes
        self.draws = 0
        # whether time or chance went into the turn: then it must be committed before anything acts
        # on it
        self.drew = False

    def charge(self, work: int) -> None:
        """Counts work done inside a statement. A statement may overdraw the turn, but not without
        end."""
        self.fuel -= work
        if self.fuel < self.work_floor:
            raise LimitFault(
                f"one statement did the work of more than {self.limits.statement_work:,} "
                f"instructions"
            )
