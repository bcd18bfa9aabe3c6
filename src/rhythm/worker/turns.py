"""Turns of owned workflows: what to commit next for each, and what follows from the answer.

The decisions are made elsewhere, by pure functions: `vm` advances a program, `engine/planning`
makes the commit. This module gathers what they need, and acts on what they return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

from rhythm.engine.inputs import moment, without_frames
from rhythm.engine.payload import load
from rhythm.engine.planning import Capacity, Planned, Planner, Standpoint, over_limit
from rhythm.engine.reading import known_of_loops
from rhythm.engine.rows import (
    NOTHING_ENDED,
    Asking,
    EndedTasks,
    Names,
    OwnedEnd,
    Referenced,
    names_in,
)
from rhythm.errors import StoreError, UnknownWorkflow
from rhythm.ids import child_id
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.turns import Committed, Done, TurnCommit
from rhythm.store.interfaces.workers import Declaration
from rhythm.store.lifecycle import CANCELLED, COMPLETED, ORDERLY, TASK
from rhythm.vm import commands as c
from rhythm.vm.interpreter import Suspended, advance
from rhythm.vm.machine import Inputs, Outcome
from rhythm.worker.attempts import Attempts
from rhythm.worker.claiming import Claimer
from rhythm.worker.context import Context
from rhythm.worker.dispatch import Dispatcher
from rhythm.worker.ended import retry_s, stored_end, text_of
from rhythm.worker.handlers import Task
from rhythm.worker.loading import Programs
from rhythm.worker.ownership import OwnedWorkflow, Ownership
from rhythm.worker.slots import Slots

ALL_CHILDREN = (0, 2**62)  # a range of numbers that has every child in it


class Catalogue:
    """Looks up by name: programs, and the settings of tasks, here or on other workers."""

    def __init__(
        self,
        programs: Programs,
        tasks: Mapping[str, Task[..., Any]],
        declared: Callable[[str], Declaration | None],
    ) -> None:
        self.programs, self.tasks, self.declared = programs, tasks, declared
        self.here = Referenced(tasks)  # enough for most turns

    def known(
        self, commands: Sequence[c.Command], owned: Mapping[int, c.StartTask], asking: Asking
    ) -> Referenced:
        """Returns what these commands, and the tasks that are owned already, refer to by name."""
        for command in (*commands, *owned.values()):
            if type(command) is not c.StartTask or command.name not in self.tasks:
                return self.read(names_in(commands, owned, asking))
        return self.here

    def read(self, names: Names) -> Referenced:
        """Returns what a commit refers to by name.

        Each name is looked up once, so all children of one turn that have one name have one
        version.
        """
        elsewhere = [name for name in names.tasks if name not in self.tasks]
        if not elsewhere and not names.workflows:
            return self.here
        declared = {
            name: found for name in set(elsewhere) if (found := self.declared(name)) is not None
        }
        programs = {key: self._program(*key) for key in dict.fromkeys(names.workflows)}
        return Referenced({**self.tasks, **declared} if declared else self.tasks, programs)

    def _program(self, name: str, version: str | None) -> Program | str:
        """Returns the program, or a text that says why there is none."""
        try:
            return self.programs(name, version) or f"there is no workflow `{name}`"
        except UnknownWorkflow as advice:
            return str(advice)


class BeginOwned(Record):
    """This worker begins the awaited tasks that have no rows: their owner is gone, or the turn that
    asks for them is committed later.

    Nothing is committed for that. `slots`: how many slots the tasks take.
    """

    slots: int


# What a workflow does next. None: nothing, so it may be parked.
NextAction = Planned | BeginOwned | None


class NextActions(Record):
    """What the workflows of a worker do next: commit a turn, park, or take over their tasks.

    `rest`: there are others that are to be decided.
    """

    commits: Mapping[str, TurnCommit]
    parks: Sequence[OwnedWorkflow]
    takeovers: Sequence[OwnedWorkflow]
    rest: bool = False


class Turns:
    """Decides for the workflows of one worker."""

    def __init__(
        self,
        context: Context,
        catalogue: Catalogue,
        attempts: Attempts,
        ownership: Ownership,
        slots: Slots,
        claimer: Claimer,
        dispatcher: Dispatcher,
    ) -> None:
        self.narrator, self.settings, self.now = context.narrator, context.settings, context.now
        self.rng, self.seed, self.catalogue = context.rng, context.seed, catalogue
        self.attempts, self.ownership, self.slots = attempts, ownership, slots
        self.claimer, self.dispatcher, self.lines = claimer, dispatcher, context.lines
        only_queue = self.settings.queues[0] if self.settings.one_queue else None
        self.planner = Planner(
            context.worker, only_queue, self.settings.asking, self.settings.claim_ttl_s
        )

    # deciding

    def decide(self, most: int) -> NextActions:
        """Returns what the owned workflows do next, with at most so many turns to commit."""
        commits = dict[str, TurnCommit]()
        parks, takeovers = list[OwnedWorkflow](), list[OwnedWorkflow]()
        capacity = self.slots.capacity()
        for workflow in self.ownership.workflows.values():
            if workflow.planned is not None or (workflow.stale and workflow.ahead is None):
                continue
            if len(commits) == most:
                return NextActions(commits, parks, takeovers, rest=True)
            try:
                decided = self._decide_safely(workflow, capacity)
            # A program had to be read, and the database did not answer. The others go on.
            except StoreError as problem:
                self.narrator.unanswered(problem, id=workflow.id)
                self.ownership.unsure = True
                continue
            match decided:
                case Planned(slots=slots):
                    workflow.planned, workflow.inputs = decided, None
                    commit = commits[workflow.id] = self._commit_of(workflow, decided)
                    capacity = capacity.less(slots)
                    self.narrator.sizes.turn(workflow.row.name, commit)
                case BeginOwned(slots):
                    takeovers.append(workflow)
                    workflow.inputs, capacity = None, capacity.less(slots)
                case None if workflow.inputs is not None and not workflow.running:
                    parks.append(workflow)
        return NextActions(commits, parks, takeovers)

    def _decide_safely(self, workflow: OwnedWorkflow, capacity: Capacity) -> NextAction:
        """Returns what a workflow does next. If Rhythm has a bug there, the workflow fails.

        So the bug does not stop the other workflows, and this one can be retried.
        """
        try:
            return self._decide(workflow, capacity)
        except StoreError:
            raise
        except Exception as problem:
            self.narrator.bug(problem, workflow.id)
            kind = f"{type(problem).__name__}: {problem}"
            what = f"Rhythm itself failed in a turn of this workflow: {kind}"
            return self._failure(workflow, "InternalError", text_of(what))

    def _decide(self, workflow: OwnedWorkflow, capacity: Capacity) -> NextAction:
        """Returns what a workflow does next.

        None if it waits for its own tasks, or for something that has not happened yet.
        """
        loaded = workflow.loaded
        if workflow.ahead is not None and (workflow.stale or not workflow.ended):
            return workflow.ahead  # it must not wait any longer
        if loaded is None or (workflow.inputs is None and not workflow.ended):
            return self._promotion(workflow)
        if workflow.program is None:
            version = f"version {loaded.version[:12]} of `{loaded.name}`"
            message = f"{version} cannot be run by this worker"
            return self._failure(workflow, "InvalidProgram", message)
        if loaded.paused and not loaded.ending:
            return self._paused(workflow)
        # Tasks that its `finally` blocks await after a cancel run like any others.
        cancelled_now = loaded.ending and not workflow.snapshot.cancelled
        waits_here = workflow.owned and not workflow.running and not workflow.ended
        if waits_here and not cancelled_now:
            return self._take_over(workflow, capacity)
        return self._turn(workflow, workflow.program, capacity)

    def _turn(self, workflow: OwnedWorkflow, program: Program, capacity: Capacity) -> NextAction:
        """Advances the program, and plans the commit; None if nothing has changed."""
        name, ended = workflow.row.name, self._ended_tasks(workflow)
        inputs = self._inputs(workflow, ended.done)
        until = self.now() + self.settings.turn_s
        turn = advance(program, workflow.snapshot, inputs, over=lambda: self.now() >= until)
        if self.narrator.observe:
            first, branch = workflow.row.seq == 0, workflow.snapshot.statement_index != 0
            self.narrator.turn_taken(workflow.id, name, first, branch, inputs.signals, turn)
        if isinstance(turn, Suspended) and turn.snapshot is workflow.snapshot:
            return self._unchanged(workflow, ended)
        known = self.catalogue.known(turn.commands, workflow.owned, self.settings.asking)
        workflow.turns += 1
        planned = self.planner.turn(
            self._position(workflow),
            program,
            turn,
            known,
            capacity,
            ended,
            inputs,
            keep=not self.slots.draining and not self._had_its_share(workflow),
        )
        self.narrator.sizes.snapshot(name, workflow.id, planned.snapshot_bytes)
        workflow.ended = []
        if planned.commit.said:
            workflow.said_at = self.now()
        return self._go_ahead(workflow, planned) if self._can_wait(planned) else planned

    def _can_wait(self, planned: Planned) -> bool:
        """Returns whether to begin the task of a turn first, and to commit both together.

        That is worth it only for a task that ends before the next round.
        """
        tasks = self.catalogue.tasks
        return planned.can_wait and all(
            self.attempts.is_quick(tasks[each.name]) for each in planned.owned.values()
        )

    def _go_ahead(self, workflow: OwnedWorkflow, planned: Planned) -> BeginOwned:
        """Takes a workflow to its state after a first turn that is not committed yet.

        There is less to update than after a commit (`_take_place`): nothing came before it.
        """
        # Its task is among those that run, so the commit takes no further slot.
        workflow.ahead, workflow.ahead_at = planned.replace(slots=0), self.now()
        workflow.loaded = workflow.row.replace(seq=planned.commit.seq + 1)
        workflow.snapshot, workflow.owned = planned.snapshot, {**planned.owned}
        return BeginOwned(planned.slots)

    def _commit_of(self, workflow: OwnedWorkflow, planned: Planned) -> TurnCommit:
        """Returns the commit of a turn; a first turn that has waited for it goes with it."""
        if (ahead := workflow.ahead) is None:
            return planned.commit
        waited_us = int((self.now() - workflow.ahead_at) * 1e6)
        first = ahead.commit.replace(waited_us=waited_us)
        return first if planned is ahead else planned.commit.replace(first=first)

    def _had_its_share(self, workflow: OwnedWorkflow) -> bool:
        """Returns whether a workflow that always has something to do should yield to others."""
        if not self.claimer.full:
            return False
        long = self.now() - workflow.since > self.settings.share_s
        return long or workflow.turns > self.settings.share_turns

    def _unchanged(self, workflow: OwnedWorkflow, ended: EndedTasks) -> Planned | None:
        """Plans the ends of its tasks, if some have ended, though nothing follows from them yet."""
        if ended.done or ended.retries:
            workflow.ended = []
            return self.planner.tasks_ended(self._position(workflow), ended)
        if workflow.running:
            # The inputs are used up. From now on, what runs here may be promoted.
            workflow.inputs = None
        return None

    def _paused(self, workflow: OwnedWorkflow) -> Planned | None:
        """Plans the ends of the tasks of a paused workflow. It takes no turn.

        Its tasks go on here, and are committed when they end.
        """
        return self._unchanged(workflow, self._ended_tasks(workflow))

    def _take_over(self, workflow: OwnedWorkflow, capacity: Capacity) -> Planned | BeginOwned:
        """Takes over awaited tasks without rows, whose owner is gone: begins or queues them.

        If their owner has died, they go to the queue, which counts their attempts. After
        `crash_limit` deaths they fail.
        """
        commands = workflow.owned.values()
        at = self._position(workflow)
        known = self.catalogue.read(Names([each.name for each in commands]))
        if workflow.crashes == 0 and self.planner.runs_owned(at, known, capacity):
            return BeginOwned(len(commands))
        if workflow.crashes >= self.settings.crash_limit:
            self.narrator.quarantined(workflow.id, list(commands), workflow.crashes)
        return self.planner.queue_owned(at, known, workflow.crashes, self.settings.crash_limit)

    def _promotion(self, workflow: OwnedWorkflow) -> Planned | None:
        """Plans rows for owned tasks that have run for long; None if there are none."""
        limit_s = self.settings.owner_run_limit_s
        if workflow.loaded is None or not workflow.running:
            return None
        # Most tasks are over long before.
        if self.now() - workflow.begun_at < limit_s:
            return None
        at = self._position(workflow)
        long = [n for n, ran_s in at.running_s.items() if ran_s >= limit_s]
        if not long:
            return None
        known = self.catalogue.read(Names([workflow.owned[n].name for n in long]))
        return self.planner.promote(at, long, known)

    def _failure(self, workflow: OwnedWorkflow, code: str, message: str) -> Planned:
        # Without its handlers: the problem may be that one of them is missing.
        return self.planner.failure(workflow.position({}), code, message)

    def _position(self, workflow: OwnedWorkflow) -> Standpoint:
        """Returns where the workflow stands, with the handlers that run for it here."""
        if not workflow.running:
            return workflow.position({})
        now, attempts = self.now(), self.attempts.running
        running_s = {n: now - attempts[child_id(workflow.id, n)].began for n in workflow.running}
        return workflow.position(running_s)

    def _inputs(self, workflow: OwnedWorkflow, done: Sequence[Done]) -> Inputs:
        """Returns what the turn may know: what was loaded, and the ends of tasks here since."""
        now_us = workflow.row.now + int((self.now() - workflow.loaded_at) * 1e6)
        outcomes = workflow.outcomes
        for each in done:
            outcomes[each.n] = _outcome(each, now_us / 1e6)
        if workflow.inputs is None:
            inputs, items = workflow.known, workflow.items
            assert inputs is not None, "it was loaded before"
            changes: dict[str, Any] = {
                "now": moment(now_us),
                "seed": self.seed(),
                "outcomes": {**items, **outcomes},
                "firsts": items,
                "signals": workflow.signals,
            }
        else:
            inputs, changes = workflow.inputs, {}
            if outcomes:
                changes["outcomes"] = {**inputs.outcomes, **outcomes}
            if done:
                # They are all that the workflow awaits: now it may be decided.
                changes["undecided"] = ()
        if workflow.refused:
            changes["refused"] = workflow.refused
        return inputs.replace(**changes) if changes else inputs

    def _ended_tasks(self, workflow: OwnedWorkflow) -> EndedTasks:
        """Returns the rows of its tasks that have ended here."""
        if not workflow.ended:
            return NOTHING_ENDED
        ends = []
        for command, ended, number, took_s in workflow.ended:
            task = self.catalogue.tasks[command.name]
            wait_s = retry_s(ended, task, command.options, number, self.rng)
            id = child_id(workflow.id, command.n)
            self.narrator.task_ended(id, command.name, command.inputs, ended, wait_s, took_s)
            status, value = stored_end(ended)
            counts = ended.delay_s is None
            ends.append(OwnedEnd(command, status, value, number, took_s, wait_s, counts))
        return self.planner.ended_tasks(workflow.row, ends, self.catalogue.here)

    # after a commit

    def refuse(self, workflow: OwnedWorkflow, turn: TurnCommit, refusal: str) -> TurnCommit:
        """Returns the commit in place of a turn that the store refused: it would start too much.

        The turn is taken again, so that the program fails where it starts something, and its
        `finally` blocks run. If what they start is refused too, the workflow fails at once.
        """
        planned = workflow.planned
        ended = planned.ended if planned else None
        if ended is None or turn.cleanup or workflow.refused:
            return over_limit(turn, refusal)
        workflow.planned = self.planner.refused(self._position(workflow), ended)
        workflow.refused = refusal
        return workflow.planned.commit

    def follow(self, workflow: OwnedWorkflow, answer: Committed, turn: TurnCommit | None) -> None:
        """Acts on the answer to a commit or, without a turn, to parking."""
        planned, workflow.planned = workflow.planned, None
        if turn is not None and turn.promoted:
            self._adopt_promoted(workflow, turn.promoted, answer)
        if turn is not None and answer.outcome != "lost":
            self.narrator.committed(turn)
            self._cancel_here(turn)
        if turn is not None and (answer.outcome != "lost" or answer.written):
            self._keep_lines(workflow, turn)
        match answer.outcome:
            case "lost":
                self.ownership.lose(workflow.id)
            case "finished":
                if turn is not None and workflow.loaded:
                    self.narrator.metrics.finished(workflow.loaded.name, turn.status)
                self.ownership.forget(workflow.id)
            case "parked":
                asleep = planned.snapshot if planned else workflow.snapshot
                self.narrator.parked(workflow.id, asleep.awaiting)
                self.ownership.forget(workflow.id)
            case "own" | "woken":
                self._go_on(workflow, answer, turn, planned)
            case "full":
                raise AssertionError("another turn was committed in its place")
            case _:
                assert_never(answer.outcome)

    def _keep_lines(self, workflow: OwnedWorkflow, turn: TurnCommit) -> None:
        """Keeps what a turn has said, and the one that was committed with it: it is true now."""
        if self.lines is None or workflow.loaded is None:
            return
        if turn.first is not None and turn.first.said:
            self.lines.add_turn(turn.first, workflow.loaded.name, workflow.ahead_at)
        if turn.said:
            self.lines.add_turn(turn, workflow.loaded.name, workflow.said_at)

    def _go_on(
        self,
        workflow: OwnedWorkflow,
        answer: Committed,
        turn: TurnCommit | None,
        planned: Planned | None,
    ) -> None:
        """Begins the tasks of a workflow that is still owned here.

        If there may be something new, it is loaded again first.
        """
        again = answer.outcome == "woken" or answer.wakes != workflow.wakes
        if turn is not None and planned is not None:
            self._take_place(workflow, planned, turn)
            again = again or planned.load_again
        if again:
            workflow.wakes, workflow.stale = max(answer.wakes, workflow.wakes), True
        else:
            self.dispatcher.begin_owned(workflow)

    def _take_place(self, workflow: OwnedWorkflow, planned: Planned, turn: TurnCommit) -> None:
        """Updates the owned workflow to its state after the commit."""
        workflow.ahead = None
        if planned.snapshot is not workflow.snapshot:
            workflow.outcomes = {}
            workflow.items = known_of_loops(planned.snapshot, workflow.items)
            workflow.refused = ""
        if turn.consumed:
            consumed = set(turn.consumed)
            workflow.signals = [each for each in workflow.signals if each.id not in consumed]
        workflow.snapshot, workflow.owned = planned.snapshot, {**planned.owned}
        workflow.crashes = 0
        # A task may have ended while the turn that gives it up was committed.
        if workflow.ended:
            owned = planned.owned
            workflow.ended = [each for each in workflow.ended if each.command.n in owned]
        if workflow.running:
            for n in workflow.running - workflow.owned.keys():
                workflow.running.discard(n)
                self.ownership.stop(child_id(workflow.id, n))
        row = workflow.row.replace(seq=turn.seq + 1)
        if turn.resumed is not None:
            row = row.replace(resumes=None)
            if workflow.known:
                workflow.known = workflow.known.replace(resume_data=None)
        workflow.loaded = row

    def _adopt_promoted(
        self, workflow: OwnedWorkflow, promoted: Sequence[int], answer: Committed
    ) -> None:
        """Keeps promoted tasks as queued tasks from now on, claimed by this worker."""
        for n in promoted:
            id = child_id(workflow.id, n)
            workflow.running.discard(n)
            fence, attempt = answer.promoted.get(n), self.attempts.running.get(id)
            if fence is None:
                self.attempts.stop(id)
            elif attempt is not None:
                self.ownership.tasks[id] = Claim(
                    id=id,
                    kind=TASK,
                    queue="",
                    fence=fence,
                    wakes=0,
                    attempt=attempt.number,
                    crashes=0,
                )

    def _cancel_here(self, turn: TurnCommit) -> None:
        """Cancels at once what a turn asks to end and this worker owns.

        So it need not wait for the next check of the database.
        """
        failed = turn.end == "finish" and turn.status not in ORDERLY
        ranges = (ALL_CHILDREN,) if failed else turn.cancels
        workflows, tasks = self.ownership.workflows, self.ownership.tasks
        for id in [*tasks, *workflows] if ranges else ():
            owner, _, n = id.rpartition(".")
            if owner == turn.id and any(first <= int(n) <= last for first, last in ranges):
                if id in workflows:
                    workflows[id].stale = True
                else:
                    self.ownership.cancel_task(id)


def _outcome(done: Done, ended_at: float) -> Outcome:
    """Returns how a task that ran here has ended, as its workflow sees it."""
    value = load(done.value)
    if done.status == COMPLETED:
        return Outcome("completed", value, ended_at)
    status = "cancelled" if done.status == CANCELLED else "failed"
    return Outcome(status, without_frames(value), ended_at)
