"""What one worker owns: the workflows and queued tasks that it has claimed, with their fences.

A worker does not trust itself longer than the others trust it. It owns nothing after the deadline
of a claim, or once its own heartbeats may have been missed. It forgets what it has lost, and stops
what runs for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rhythm.engine.planning import Planned, Standpoint
from rhythm.ids import child_id
from rhythm.ir.program import Program
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.turns import Loaded, TaskEnd
from rhythm.store.lifecycle import CANCELLED
from rhythm.store.verdicts import BY_REQUEST
from rhythm.vm import commands as c
from rhythm.vm.machine import Inputs, Outcome, Signal
from rhythm.vm.snapshot import Snapshot
from rhythm.worker.attempts import Attempts
from rhythm.worker.context import Context
from rhythm.worker.ended import AttemptEnd

NEVER, FOREVER = float("-inf"), float("inf")


class TaskAttempt(NamedTuple):
    """An attempt at an owned task that has ended."""

    command: c.StartTask
    ended: AttemptEnd
    number: int
    took_s: float


class OwnedWorkflow:
    """A workflow that this worker owns, as the worker knows it."""

    def __init__(self, claim: Claim, deadline: float, since: float) -> None:
        self._claim = claim
        self.id = claim.id
        self.fence = claim.fence
        self.wakes = claim.wakes
        self.crashes = claim.crashes
        self.deadline = deadline  # on the local clock: after it another worker may own it
        self.since, self.turns = since, 0  # when this worker claimed it, and its turns here
        self.stale = True  # must be loaded before anything is decided
        self.deferred = 0  # how many rounds ago it should have been loaded
        self.loaded: Loaded | None = None
        self.loaded_at = 0.0
        self.program: Program | None = None
        self.snapshot = Snapshot()
        self.inputs: Inputs | None = None  # what was loaded and no turn has used yet
        self.known: Inputs | None = None  # the part of it that later turns may know too
        # Of what it awaits: those that were loaded, and those of its own tasks since.
        self.outcomes: dict[int, Outcome] = {}
        # Of the items of loops over `completed`: the first to end that were loaded, and not taken
        # by a turn.
        self.items: dict[int, Outcome] = {}
        # Of its mailbox: those that were loaded and that no turn has consumed.
        self.signals: Sequence[Signal] = ()
        self.owned: dict[int, c.StartTask] = {}  # awaited tasks that have no row
        self.running: set[int] = set()  # those of `owned` whose handlers run here
        self.begun_at = 0.0  # when the first of them began, or earlier
        self.ended: list[TaskAttempt] = []  # not committed yet
        self.planned: Planned | None = None  # its state once the commit has succeeded
        # Its first turn, while its task has begun and it is not committed; and when it was taken.
        self.ahead: Planned | None = None
        self.ahead_at = 0.0
        self.said_at = 0.0  # when its last turn that says something was taken
        self.refused = ""  # why the store refused its turn, which is taken again

    @property
    def claim(self) -> Claim:
        """The claim under which it is owned, with the wakes that were seen since."""
        return self._claim.replace(wakes=self.wakes)

    @property
    def is_as_stored(self) -> bool:
        """Whether nothing that it did waits for its commit."""
        return self.planned is None and self.ahead is None

    @property
    def row(self) -> Loaded:
        """Its row, as it was last read."""
        assert self.loaded is not None, "it is loaded before anything is decided"
        return self.loaded

    def position(self, running_s: dict[int, float]) -> Standpoint:
        """Returns where it stands, as the planner needs it."""
        return Standpoint(
            self.row,
            self.snapshot,
            self.fence,
            self.wakes,
            self.owned,
            running_s,
            crashes=self.crashes if self.row.seq == 0 else 0,
        )


class Ownership:
    """Everything that one worker owns, and until when."""

    def __init__(self, context: Context, attempts: Attempts) -> None:
        self.worker, self.narrator, self.now = context.worker, context.narrator, context.now
        self.attempts = attempts
        # How long after it was made or extended a claim can be relied on.
        self.trusted_s = context.settings.claim_ttl_s - context.settings.margin_s
        self.workflows: dict[str, OwnedWorkflow] = {}
        self.tasks: dict[str, Claim] = {}  # queued tasks that run here
        self.ends: list[TaskEnd] = []  # ends of queued tasks that are not committed yet
        self.sending: list[TaskEnd] = []  # those whose commit is under way
        # On the local clock: after it the others may take this worker for dead.
        self.alive_until = NEVER
        # A call had no answer: what is owned must be compared with the database.
        self.unsure = False

    @property
    def empty(self) -> bool:
        """Whether nothing is owned, and no end of a task is left to commit."""
        return not (self.workflows or self.tasks or self.ends)

    def fences(self) -> dict[str, int]:
        """Returns id -> fence of everything that is owned. May be called from any thread."""
        workflows, tasks = list(self.workflows.values()), list(self.tasks.values())
        return {each.id: each.fence for each in workflows} | {each.id: each.fence for each in tasks}

    def deadline(self, since: float) -> float:
        """Returns until when a claim that was made or extended at `since` can be relied on."""
        return since + self.trusted_s

    def may_begin(self, deadline: float = FOREVER) -> bool:
        """Returns whether a claim with this deadline is certainly still this worker's.

        Checked right before a handler begins.
        """
        return self.now() < min(deadline, self.alive_until)

    def take(self, claim: Claim, deadline: float) -> None:
        """Owns a claimed workflow from now on."""
        self.workflows[claim.id] = OwnedWorkflow(claim, deadline, self.now())

    def lose(self, id: str) -> None:
        """Forgets an execution whose claim has passed to another worker, and reports it."""
        self.narrator.claim_lost(id)
        self.forget(id)

    def lose_older(self, id: str) -> None:
        """Loses an earlier claim on something that was claimed again just now.

        What runs under the old claim must not answer for the new one.
        """
        workflow = self.workflows.get(id)
        if workflow is not None and workflow.planned is not None:
            # Its commit is under way, and has parked it: it was woken, and claimed again, since.
            self.forget(id)
        elif workflow is not None or id in self.tasks:
            self.lose(id)
        # It runs here for a workflow that another worker has taken over since.
        elif id in self.attempts.running:
            self.lose(id.rpartition(".")[0])

    def forget(self, id: str) -> None:
        """Stops what runs for an execution, and owns it no more."""
        workflow = self.workflows.pop(id, None)
        for n in workflow.running if workflow else ():
            self.stop(child_id(id, n))
        if self.tasks.pop(id, None):
            self.stop(id)

    def load_anew(self, workflow: OwnedWorkflow) -> None:
        """Has a workflow loaded again, since nobody knows what became of its commit.

        A task that has begun before its turn was committed is given up: the database may know
        nothing of it.
        """
        workflow.stale, workflow.planned = True, None
        if workflow.ahead is not None:
            for n in workflow.running:
                self.stop(child_id(workflow.id, n))
            workflow.ahead, workflow.owned = None, {}
            workflow.running, workflow.ended = set(), []

    def lapse(self) -> None:
        """Gives up everything, since others may take this worker for dead, and its claims."""
        for id in [*self.workflows, *self.tasks]:
            self.forget(id)
        self.unsure = True

    def stop(self, id: str) -> None:
        """Gives up an attempt that is running here."""
        if attempt := self.attempts.running.get(id):
            self.narrator.task_stopped(attempt)
        self.attempts.stop(id)

    # queued tasks

    def end_task(self, end: TaskEnd) -> None:
        """Ends a queued task; the end goes into the next commit."""
        self.tasks.pop(end.id, None)
        self.ends.append(end)

    def cancel_task(self, id: str) -> None:
        """Stops a queued task that was cancelled, and ends it."""
        fence = self.tasks[id].fence
        self.stop(id)
        self.end_task(TaskEnd(id, fence, CANCELLED, BY_REQUEST.value, worker=self.worker))

    def take_ends(self) -> list[TaskEnd]:
        """Returns the ends to commit, and forgets them: the caller must commit them."""
        ends, self.ends = self.ends, []
        self.sending = ends
        return ends

    def ends_answered(self) -> None:
        """Forgets the ends whose commit was under way: it has been answered."""
        self.sending = []
