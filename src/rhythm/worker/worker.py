"""A worker: claims what is ready, takes turns of workflows, runs tasks, and commits all of it in groups.

One thread decides (`step`), handlers run beside it. Whatever has ended while a commit was under way goes into the next one, so
commits grow with the load and wait for nothing when there is none. The holder of a workflow runs the tasks it awaits itself
where it can: no queue row, no second claim, no resume.
"""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from rhythm.durations import show_duration
from rhythm.engine.payload import dump_trusted, load
from rhythm.engine.retry import backoff_of
from rhythm.engine.turns import (
    CANCELLED_ERROR,
    Asking,
    Planner,
    Programs,
    dump_options,
    dump_owned,
    inputs_of,
    load_owned,
    moment,
    needed,
    resumed,
    seen,
    status_of,
)
from rhythm.errors import InvalidProgram, NewerFormat, StoreError
from rhythm.ids import child_id
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.base import (
    BLOCKED,
    CANCELLED,
    COMPLETED,
    FAILED,
    ORDERLY,
    STATUS_NAMES,
    SYSTEM_QUEUE,
    TASK,
    TERMINAL,
    Beat,
    Claim,
    Committed,
    Declaration,
    Done,
    Loaded,
    LoadedTask,
    NewExecution,
    Store,
    TaskEnd,
    TurnCommit,
)
from rhythm.vm import commands as c
from rhythm.vm.interpreter import Suspended, Turn, advance
from rhythm.vm.machine import Inputs, Outcome
from rhythm.vm.snapshot import Snapshot, decode_snapshot
from rhythm.worker import told
from rhythm.worker.bodies import Bodies, Body, RunsHandlers
from rhythm.worker.ended import Ended, task_error, text_of
from rhythm.worker.handlers import Task
from rhythm.worker.heartbeat import Answer, Heartbeat, HeartSettings
from rhythm.worker.metrics import Metrics
from rhythm.worker.neighbours import HOST, MACHINE
from rhythm.worker.sizes import Sizes
from rhythm.worker.transactional import Transactional

Observer = Callable[[str, str, str], None]  # what happened, to which execution, detail
LAST = 2**62  # a child number beyond all others
AFTER_A_BUG_S = 1.0
FIRST_MISS_S = 0.2  # before a task without a handler here is looked at again: another worker may be quicker
REMEMBERED = 1000  # tasks without a handler, before those are forgotten that others have taken
FRAMES, FRAME = 20, 300  # of Python that are kept with an error, and characters of each


class WorkerSettings(Record):
    """How a worker behaves."""

    queues: tuple[str, ...] = ("default",)
    one_queue: bool = False  # everything goes to the first of `queues`, whatever a workflow says: nobody else is there
    concurrency: int = 100  # handlers at once
    batch: int = 100  # rows claimed at once
    claim_ttl_s: float = 300.0  # claims expire after this long; those of a living worker are prolonged
    beat_s: float = 5.0  # between two heartbeats
    dead_after_s: float = 30.0  # a worker that was silent for so long is dead to the others, and its work theirs
    margin_s: float = 6.0  # before it may be dead to the others, or a claim expires, nothing more is begun
    look_s: float = 1.0  # how often a busy worker looks whether its tasks were cancelled, or a queue paused
    share_s: float = 2.0  # how long a workflow may keep its worker, and a slot between two tasks of its own, while others wait
    share_turns: int = 1000  # and how many turns
    turn_s: float = 0.25  # how long a turn computes before it yields; its fuel ends most of them sooner
    owner_run: bool = True
    owner_run_limit_s: float = 1.0  # a task that lasts longer gets a row of its own
    crash_limit: int = 3
    patience_s: float = 60.0  # how long a runner waits for a database that has gone away
    alone_s: float = 10.0  # how long nothing else begins beside a task that has its last chance before it is taken for what kills workers
    suspect_retry_s: float = 1.0  # before another such task is looked at again
    missing_task_grace_s: float = 600.0
    missing_task_retry_s: float = 5.0
    newer_retry_s: float = 5.0  # before a workflow is looked at again that only a newer Rhythm can run
    asking: Asking = Asking()

    @property
    def heart(self) -> HeartSettings:
        return HeartSettings(self.beat_s, self.dead_after_s, self.claim_ttl_s, self.margin_s)


class Held:
    """A workflow that this worker owns, as it knows it."""

    def __init__(self, claim: Claim, deadline: float, since: float) -> None:
        self.id, self.fence, self.wakes, self.crashes = claim.id, claim.fence, claim.wakes, claim.crashes
        self.deadline = deadline  # on the local clock: beyond it somebody else may own it
        self.since, self.turns = since, 0  # for how long it has had this worker
        self.stale = True  # must be loaded before anything is decided
        self.loaded: Loaded | None = None
        self.loaded_at = 0.0
        self.program: Program | None = None
        self.snapshot = Snapshot()
        self.inputs: Inputs | None = None  # what was loaded and is not decided on yet
        self.known: Inputs | None = None  # of that, what later turns may know too
        self.outcomes: dict[int, Outcome] = {}  # of what it awaits: as loaded, and of its own tasks since
        self.owned: dict[int, c.StartTask] = {}  # awaited tasks that have no row
        self.running: set[int] = set()  # of these, the ones whose handlers run here
        self.ended: list[tuple[c.StartTask, Ended, int, float]] = []  # not committed yet: command, end, attempt, seconds
        self.planned: tuple[Snapshot, Mapping[int, c.StartTask], bool] | None = None  # what it is once the commit has succeeded


class Worker:
    """Drives executions of one store. `step` does one round of everything and never blocks for long."""

    def __init__(
        self,
        store: Store,
        programs: Programs,
        tasks: Mapping[str, Task[..., Any]],
        handlers: RunsHandlers,
        name: str,
        settings: WorkerSettings,
        now: Callable[[], float],
        chance: random.Random,
        observe: Observer | None = None,
        complain: Observer | None = None,
    ) -> None:
        self.store, self.programs, self.tasks, self.name, self.settings = store, programs, tasks, name, settings
        self.now, self.chance, self.observe = now, chance, observe  # told everything, which costs a little
        self.complain = complain or self._say  # told what goes wrong around it: lost claims, a database that does not answer
        self.bodies = Bodies(handlers, now)
        self.held: dict[str, Held] = {}
        self.claims: dict[str, Claim] = {}  # of queued tasks that run here
        self.ends: list[TaskEnd] = []
        self.draining = False
        self.version = ""  # of Rhythm, for those who look at the workers
        self.alive_until = float("-inf")  # on the local clock: beyond it this worker may be dead to the others
        self.polled_at: float | None = None  # when it last asked for work, and was answered
        self.suspects: list[tuple[Claim, LoadedTask, float]] = []  # tasks that were there when workers died, not begun yet
        self.suspect = ""  # a task that may have killed other workers, and runs here
        self.still_until = 0.0
        self.crowded = False  # all that it could take was resumes
        self.full = False  # there was more work than it could take
        self.paused: frozenset[str] = frozenset()  # queues
        self.declared: Callable[[str], Declaration | None] = lambda name: None  # a task that other workers have
        self.heart = Heartbeat(store, self._beat, self._claims, settings.heart, now)
        self._unknown: Mapping[str, int] = {}  # claims that the database had of this worker at the last beat, and it knew nothing of
        self.sleep: Callable[[float], None] = time.sleep  # between two questions to a database that does not answer
        self.gives_up: Callable[[float], bool] = lambda waited_s: False  # on a commit without an answer, after so long
        self._era = store.era
        self.away = False  # the database did not answer when it was last asked
        self.unsure = False  # a call had no answer: what is held here must be compared with the database
        self.reserved = 0  # slots for the tasks of the turns that are being decided
        self.missing: dict[str, tuple[float, float]] = {}  # tasks without a handler here: when they were first and last found
        self._told_missing: set[str] = set()
        self._looked_at = float("-inf")  # whether running tasks were cancelled, or queues paused
        self.sizes, self.metrics = Sizes(), Metrics()
        self.why_missing: Callable[[str], str] = lambda name: "no worker has a handler of this name"
        only_queue = settings.queues[0] if settings.one_queue else None
        self.planner = Planner(name, programs, self._runs, self._attempts, self._queue_of, self._reserve, only_queue, settings.asking)

    def step(self, wait_s: float = 0.0) -> bool:
        """One round: take in what has ended, claim, load, decide, commit, begin. Whether anything happened."""
        ended = self.bodies.ended(wait_s)
        try:
            for body, end in ended:
                self._take_end(body, end)
            self._live()
            if self.unsure or self.store.era != self._era:
                self._reconcile()
            claimed = self._claim()
            self._look()
            self._load([held for held in self.held.values() if held.stale])
            committed = self._commit()
            self._begin_suspects()
            return committed or claimed or bool(ended)
        except StoreError as problem:
            self._unanswered(problem)
        except Exception as problem:  # a bug; what is held here is looked at anew, and the others go on
            self.complain("bug", "", "".join(traceback.format_exception(problem)))
            self.sleep(AFTER_A_BUG_S)
        self.unsure = True
        return True

    def _reconcile(self) -> None:
        """After a call without an answer, of mine or of a service: what the database says is mine, and I do not know of, goes back; what
        it says is not mine, however it came to that, is lost; the rest is looked at anew."""
        self._era = self.store.era
        mine, known = self.store.held_by(self.name), self._claims()
        for id, fence in known.items():
            if mine.get(id) != fence:
                self._lost(id)
        ending = {end.id for end in self.ends}
        self.store.release({id: fence for id, fence in mine.items() if known.get(id) != fence and id not in ending})
        for held in self.held.values():
            held.stale = True
        self.unsure = False
        self._back()

    def _unanswered(self, problem: StoreError, what: str = "database_unanswered", id: str = "") -> None:
        self.away = True
        self.complain(what, id, str(problem))

    def _back(self) -> None:
        if self.away:
            self.away = False
            self.complain("database_back", "", "it answers again")

    @property
    def idle(self) -> bool:
        """Whether nothing is under way here."""
        return not (self.held or self.claims or self.ends or self.bodies.running)

    def rest_s(self) -> float:
        """Seconds until something that runs here must be looked at, whoever else speaks up before: it is late, or long."""
        now, settings = self.now(), self.settings
        owned = {child_id(held.id, n) for held in self.held.values() for n in held.running}
        limits = [body.began + settings.owner_run_limit_s for id, body in self.bodies.running.items() if id in owned]
        limits += [body.began + body.timeout_s for body in self.bodies.running.values() if body.timeout_s is not None]
        limits += [self._looked_at + settings.look_s] if self.claims or self.held else []
        return max(0.0, min(limits, default=float("inf")) - now)

    def stop(self) -> None:
        """Gives everything back, and takes its leave: who has left is not waited for."""
        self.give_back()
        self.store.leave(self.name)

    def give_back(self) -> None:
        """Commits what has ended, and gives back what has not."""
        for id in list(self.bodies.running):
            self.bodies.stop(id)
        claims = self._claims()
        self.held.clear()
        self.claims.clear()
        ends, self.ends = self.ends, []
        try:
            if ends:
                self._flush([], ends)
        finally:
            if claims:
                self.store.release(claims)

    # living

    def _beat(self) -> Beat:
        return Beat(
            self.name, HOST, os.getpid(), self.settings.queues, self.settings.concurrency, len(self.bodies.running), self.draining,
            self.version, MACHINE, self.settings.dead_after_s,
        )  # fmt: skip

    def _claims(self) -> dict[str, int]:
        """What is held here, with its fences. Any thread."""
        return {held.id: held.fence for held in list(self.held.values())} | {claim.id: claim.fence for claim in list(self.claims.values())}

    def _live(self) -> None:
        """Takes in what the database has answered to the heartbeats, and sends them where nobody else does."""
        if not self.heart.apart:
            self.heart.lapse()
        self._take_beats()
        if not self.heart.apart and self.heart.rest_s <= 0:
            self.heart.run_once()
            self._take_beats()

    def _take_beats(self) -> None:
        for answer in self.heart.answers():
            if answer is None:
                self._lapsed()
            else:
                self._took_beat(answer)

    def _took_beat(self, answer: Answer) -> None:
        """What is no longer mine is dropped before anything is begun on the strength of the beat."""
        known = self._claims()
        for id, fence in answer.claims.items():
            if known.get(id) == fence and answer.fence(id) != fence:
                self._lost(id)
        for held in self.held.values():
            if answer.fence(held.id) == held.fence and answer.wakes(held.id) > held.wakes:
                held.stale, held.wakes = True, answer.wakes(held.id)
            if answer.prolongs(held.id):
                held.deadline = answer.sent_at + self.settings.claim_ttl_s - self.settings.margin_s
        self.alive_until = answer.sent_at + self.settings.heart.trusted_s
        self._give_back_unknown({id: fence for id, (fence, _) in answer.mine.items()})

    def _give_back_unknown(self, mine: Mapping[str, int]) -> None:
        """Claims whose answer was lost. What ended since the beat was sent is not among them twice."""
        known = self._claims() | {end.id: end.fence for end in self.ends}
        unknown = {id: fence for id, fence in mine.items() if known.get(id) != fence}
        again = {id: fence for id, fence in unknown.items() if self._unknown.get(id) == fence}
        self._unknown = unknown
        if again:
            self.store.release(again)

    def _lapsed(self) -> None:
        """No beat got through in time: others may take this worker for dead. What runs here is stopped, and nothing more is begun."""
        if self.held or self.claims:
            self.complain(
                "worker_lapsed", "", f"no heartbeat for {show_duration(self.settings.heart.trusted_s)}: what ran here is given up"
            )
        for id in [*self.held, *self.claims]:
            self._forget(id)
        self.unsure = True

    def _may_begin(self, deadline: float) -> bool:
        """Whether what was claimed is certainly mine still: asked right before a body begins."""
        return self.now() < min(deadline, self.alive_until)

    # claims

    def _claim(self) -> bool:
        """Without a free slot turns are taken all the same: a cancel, a timer or a signal may be what frees one."""
        room = min(self.settings.batch, self._free())
        if self.draining or not self._may_begin(float("inf")):
            return False
        deadline, queues = self._deadline(), self._queues() if room > 0 else ()
        limit = room if room > 0 else self.settings.batch
        claims = self.store.claim(self.name, queues, limit, self.settings.claim_ttl_s)
        self.polled_at, self.full = self.now(), len(claims) == limit
        self.crowded = bool(queues) and self.full and all(claim.queue == SYSTEM_QUEUE for claim in claims)
        tasks = {claim.id: claim for claim in claims if claim.kind == TASK}
        for claim in claims:
            self._lose_older(claim.id)
            if claim.kind != TASK:
                self.held[claim.id] = Held(claim, deadline, self.now())
        if tasks:
            loaded = {task.id: task for task in self.store.load_tasks(list(tasks))}
            if gone := {id: claim.fence for id, claim in tasks.items() if id not in loaded}:
                self.store.drop(gone)
            for id, task in self._one_suspect(tasks, loaded).items():
                if tasks[id].crashes:
                    self.claims[id] = tasks[id]
                    self.suspects.append((tasks[id], task, deadline))
                else:
                    self._begin_queued(tasks[id], task, deadline)
        return bool(claims)

    def _queues(self) -> tuple[str, ...]:
        """Where to look, in this order. Workflows that go on come first, but not twice in a row where they leave no room for others."""
        return (*self.settings.queues, SYSTEM_QUEUE) if self.crowded else self.settings.queues

    @property
    def _keeps_still(self) -> bool:
        """Whether a task has its last chance here, and nothing else is to begin for a while: that might be what kills them both."""
        return self.suspect in self.claims and self.now() < self.still_until

    def _one_suspect(self, claims: Mapping[str, Claim], tasks: Mapping[str, LoadedTask]) -> Mapping[str, LoadedTask]:
        """What to begin. A task that was there each time a worker died, and may do so once more before it fails, runs beside no other
        such task: else one that kills workers would take those with it that only were beside it."""
        suspects = [id for id in tasks if claims[id].crashes >= max(1, self.settings.crash_limit - 1)]
        first = None if self._keeps_still else next(iter(suspects), None)
        if first:
            self.suspect, self.still_until = first, self.now() + self.settings.alone_s
        later = {id: claims[id].fence for id in suspects if id != first}
        if later:
            self.store.release(later, self.settings.suspect_retry_s)
        return {id: task for id, task in tasks.items() if id not in later}

    @property
    def _busy(self) -> int:
        """Slots that are taken."""
        return len(self.bodies.running) + len(self.suspects)

    def _begin_suspects(self) -> None:
        """What may kill this worker begins when the turns that came with it are committed: those are not to be blamed for its death."""
        suspects, self.suspects = self.suspects, []
        for claim, task, deadline in suspects:
            if self.claims.get(claim.id) is claim:  # else it was lost meanwhile
                self._begin_queued(claim, task, deadline)

    def _free(self) -> int:
        """Slots for what is claimed now. A workflow between two of its own tasks keeps its slot for the next, else that would go to the
        queue; but not for ever: others shall have their turn."""
        if self._keeps_still:
            return 0
        recent = self.now() - self.settings.share_s
        between = sum(not held.running and held.since >= recent for held in self.held.values())
        return self.settings.concurrency - self._busy - between

    def _deadline(self) -> float:
        return self.now() + self.settings.claim_ttl_s - self.settings.margin_s

    def _look(self) -> None:
        """Tasks that run here under claims of their own, and that nobody wants any more; queues that were paused."""
        if not (self.claims or self.held) or self.now() - self._looked_at < self.settings.look_s:
            return
        self._looked_at = self.now()
        self.paused = self.store.paused_queues()
        for id in sorted(self.store.cancelled(list(self.claims))) if self.claims else ():
            self._cancel_queued(id)

    def _lost(self, id: str) -> None:
        self.complain("claim_lost", id, "the claim has passed to another worker")
        self._forget(id)

    def _lose_older(self, id: str) -> None:
        """What is claimed now was lost before, if it was held here: what runs under the old claim must not answer for the new one."""
        if id in self.held or id in self.claims:
            self._lost(id)
        elif id in self.bodies.running:  # for a workflow that another has taken over, and queued its tasks
            self._lost(id.rpartition(".")[0])

    def _forget(self, id: str) -> None:
        held = self.held.pop(id, None)
        for n in held.running if held else ():
            self._stop(child_id(id, n))
        if self.claims.pop(id, None):
            self._stop(id)

    # loading

    def _load(self, stale: Sequence[Held]) -> None:
        if not stale:
            return
        began = self.now()
        rows = {row.id: row for row in self.store.load([held.id for held in stale])}
        here = [held for held in stale if self._took_row(held, rows.get(held.id), began)]
        if here:
            outcomes = self.store.outcomes([needed(held.id, held.snapshot) for held in here])
            mail = self.store.mail([held.id for held in here])
            for held in here:
                assert held.loaded
                held.inputs = inputs_of(
                    held.loaded, held.snapshot, outcomes.get(held.id, ()), mail.get(held.id, ()), self._seed(), held.loaded.now
                )
                held.known = held.inputs.replace(outcomes={}, asked=(), signals=None)
                held.outcomes, held.stale = dict(held.inputs.outcomes), False

    def _took_row(self, held: Held, row: Loaded | None, began: float) -> bool:
        """Whether there is anything to decide for the workflow."""
        if row is None or row.status >= TERMINAL:
            self._forget(held.id)
            self.store.drop({held.id: held.fence})
            return False
        if row.fence > held.fence:
            self._lost(held.id)
            return False
        held.loaded, held.loaded_at = row, began
        try:
            held.program = self.programs(row.name, row.version)
            held.snapshot = decode_snapshot(row.snapshot) if row.snapshot else Snapshot()
        except NewerFormat as problem:
            self.complain("program_newer", held.id, f"{problem}; it is left to those")
            self._forget(held.id)
            self.store.release({held.id: held.fence}, self.settings.newer_retry_s)
            return False
        except InvalidProgram as problem:
            held.program = None
            self.complain("program_broken", held.id, str(problem))
        if not held.running:
            held.owned = load_owned(row.owned)
        return True

    def _seed(self) -> str:
        return f"{self.chance.getrandbits(64):016x}"

    # deciding

    def _commit(self) -> bool:
        turns: dict[str, TurnCommit] = {}
        parks: list[Held] = []
        self.reserved = 0
        for held in list(self.held.values()):
            if not held.stale:
                try:
                    turn = self._decided(held)
                except StoreError as problem:  # of a program that had to be read; the others are not to wait for it
                    self._unanswered(problem, id=held.id)
                    self.unsure = True
                    continue
                if turn is not None:
                    turns[held.id] = turn
                    self.sizes.turn(held.loaded.name if held.loaded else "", turn)
                elif held.inputs is not None and not held.running:
                    parks.append(held)
        ends, self.ends = self.ends, []
        if turns or ends:
            try:
                answers = self._flush(list(turns.values()), ends)
            except StoreError:
                self.ends += ends  # sent again, or found to be committed, when the database is back
                raise
            for answer in answers:
                self._after(self.held[answer.id], *self._within_limits(answer, turns[answer.id]))
        if parks:
            claims = [Claim(held.id, 0, "", held.fence, held.wakes, 0, 0) for held in parks]
            for answer in self.store.park(claims):
                self._after(self.held[answer.id], answer, None)
        return bool(turns or ends)

    def _within_limits(self, answer: Committed, turn: TurnCommit) -> tuple[Committed, TurnCommit]:
        """In place of a turn that would start more than there may be: like any other limit, this one ends the execution."""
        if answer.outcome != "full":
            return answer, turn
        error = {"code": "LimitExceeded", "message": answer.refusal, "data": None}
        instead = _failing(turn, error).replace(done=turn.done, statement=turn.statement)
        return self._flush([instead], [])[0], instead

    def _flush(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> list[Committed]:
        """The group commit. One item that cannot be stored is not to hold up the others: they are sent one by one, and it fails."""
        try:
            return self._sent(turns, ends)
        except StoreError:
            raise
        except Exception as problem:
            self.complain("bug", "", "".join(traceback.format_exception(problem)))
            if len(turns) + len(ends) > 1:
                answers = [answer for turn in turns for answer in self._flush([turn], [])]
                for end in ends:
                    self._flush([], [end])
                return answers
            error = {"code": "InternalError", "message": text_of(f"it cannot be stored: {type(problem).__name__}: {problem}"), "data": None}
            return self._sent([_failing(turn, error) for turn in turns], [_failing_task(end, error) for end in ends])

    def _sent(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> list[Committed]:
        """No answer is not a failure: what was committed is found by its witness, the rest is sent again if it is still mine. The database
        that answers may have taken over from another, and have given the same fence to somebody else."""
        answers: list[Committed] = []
        began = self.now()
        for tries in count(1):
            try:
                committed = self.store.commit(turns, ends)[0]
                self._back()
                self.metrics.committed(len(turns) + len(ends))
                return [*answers, *(committed if tries == 1 else self._sent_again(turns, committed))]
            except StoreError as problem:
                self._unanswered(problem, "commit_unknown")
                self._rest(tries, problem, began)
            witnesses, wakes, mine = self._witnesses(turns)
            answers += [self._settled(turn, witnesses[turn.id], wakes, mine) for turn in turns if turn.id in witnesses]
            turns = [turn for turn in turns if turn.id not in witnesses]
            gone = [turn for turn in turns if mine.get(turn.id) != turn.fence]
            answers += self._sent_again(gone, [Committed(turn.id, "lost") for turn in gone])
            turns = [turn for turn in turns if mine.get(turn.id) == turn.fence]
            ends = [end for end in ends if mine.get(end.id) == end.fence]
            if not turns and not ends:
                break
        return answers

    def _sent_again(self, turns: Sequence[TurnCommit], committed: Sequence[Committed]) -> list[Committed]:
        """The answers to a repetition: what it has lost, it may have lost to its first sending, which came through after all."""
        lost = {answer.id for answer in committed if answer.outcome == "lost"}
        doubtful = [turn for turn in turns if turn.id in lost]
        witnesses, wakes, mine = self._witnesses(doubtful) if doubtful else ({}, {}, {})
        settled = {turn.id: self._settled(turn, witnesses[turn.id], wakes, mine) for turn in doubtful if turn.id in witnesses}
        return [settled.get(answer.id, answer) for answer in committed]

    def _witnesses(self, turns: Sequence[TurnCommit]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """With which fence each turn was committed, if it was; the wakes of those held; what is mine. Asked until there is an answer."""
        began = self.now()
        for tries in count(1):
            try:
                found = {turn.id: self.store.witness(turn.id, turn.seq + 1) for turn in turns}
                wakes = self.store.extend({turn.id: turn.fence for turn in turns}, self.settings.claim_ttl_s)
                return {id: fence for id, fence in found.items() if fence is not None}, wakes, self.store.held_by(self.name)
            except StoreError as problem:
                self._unanswered(problem)
                self._rest(tries, problem, began)
        raise AssertionError("it was asked until there was an answer")

    def _rest(self, tries: int, problem: StoreError, began: float) -> None:
        """The database does not answer: less and less often is it asked again."""
        if self.gives_up(self.now() - began):
            raise problem
        self.sleep(min(0.05 * 2 ** min(tries, 7), 5.0))

    def _settled(self, turn: TurnCommit, witness: int, wakes: Mapping[str, int], mine: Mapping[str, int]) -> Committed:
        """What became of a turn that is known to be committed, by me or by another."""
        if witness != turn.fence or turn.id not in wakes:
            return Committed(turn.id, "finished" if witness == turn.fence else "lost", promoted=self._promoted(turn, mine))
        return Committed(turn.id, "woken", wakes[turn.id], self._promoted(turn, mine))

    @staticmethod
    def _promoted(turn: TurnCommit, mine: Mapping[str, int]) -> dict[int, int]:
        return {n: fence for n in turn.promoted if (fence := mine.get(child_id(turn.id, n))) is not None}

    def _decided(self, held: Held) -> TurnCommit | None:
        """A bug that one workflow meets is not to stop the others: it fails, and can be retried when we know better."""
        try:
            return self._decide(held)
        except StoreError:
            raise
        except Exception as problem:
            self.complain("bug", held.id, "".join(traceback.format_exception(problem)))
            what = f"Rhythm itself failed in a turn of this workflow: {type(problem).__name__}: {problem}"
            return self._failure(held, "InternalError", text_of(what))

    def _decide(self, held: Held) -> TurnCommit | None:
        """The next commit of a workflow, or nothing: it waits for its own tasks, or for what has not happened."""
        loaded, inputs = held.loaded, held.inputs
        if loaded is None or (inputs is None and not held.ended):
            return self._promotion(held)
        if held.program is None:
            return self._failure(held, "InvalidProgram", f"version {loaded.version[:12]} of `{loaded.name}` cannot be run by this worker")
        if loaded.paused and not loaded.ending:
            return self._pause(held, loaded)
        cancelled_now = loaded.ending and not held.snapshot.cancelled  # what its `finally` awaits is run like any other task
        if held.owned and not held.running and not held.ended and not cancelled_now:
            return self._take_over(held)
        return self._turn(held, loaded, held.program)

    def _turn(self, held: Held, loaded: Loaded, program: Program) -> TurnCommit | None:
        done, retries = self._ended_rows(held, loaded)
        inputs = self._inputs_now(held, loaded, done)
        until = self.now() + self.settings.turn_s
        turn = advance(program, held.snapshot, inputs, over=lambda: self.now() >= until)
        if self.observe:
            self._tell(held, loaded, inputs, turn)
        if isinstance(turn, Suspended) and turn.snapshot is held.snapshot:
            return self._unchanged(held, loaded, done, retries)
        left = {n: command for n, command in held.owned.items() if n not in {d.n for d in done} and n not in {r.child_no for r in retries}}
        mail_read, reserved = held.inputs is not None, self.reserved
        step = self.planner.plan(loaded, program, held.snapshot, turn, held.fence, held.wakes, done, left, mail_read)
        self.sizes.snapshot(loaded.name, held.id, step.size)
        commit, running = step.commit, tuple(new.child_no for new in step.commit.starts if new.child_no in held.running)
        if running or retries:
            starts = [self._begun(new) if new.child_no in running else new for new in commit.starts]
            commit = commit.replace(starts=(*starts, *retries), promoted=running, claim_ttl_s=self.settings.claim_ttl_s)
        held.turns += 1
        if commit.end == "own" and not held.running and (self.draining or self._had_its_share(held)):
            commit, self.reserved = commit.replace(end="yield"), reserved
        held.planned, held.inputs, held.ended = (step.snapshot, step.owned, step.look_again), None, []
        return commit

    def _had_its_share(self, held: Held) -> bool:
        """Whether a workflow that always has something to do should let others have the worker."""
        return self.full and (self.now() - held.since > self.settings.share_s or held.turns > self.settings.share_turns)

    def _unchanged(self, held: Held, loaded: Loaded, done: tuple[Done, ...], retries: tuple[NewExecution, ...]) -> TurnCommit | None:
        """Nothing follows yet, but some of its tasks may have ended."""
        if not done and not retries:
            if held.running:
                held.inputs = None  # looked at; what runs here may still be promoted
            return None
        gone = {d.n for d in done} | {r.child_no for r in retries}
        left = {n: command for n, command in held.owned.items() if n not in gone}
        held.planned, held.ended, held.inputs = (held.snapshot, left, False), [], None
        return TurnCommit(
            held.id, loaded.seq, held.fence, held.wakes, "own" if left else "park", self.name, "task", done=done, starts=retries,
            statement=held.snapshot.statement_index, owned=dump_owned(left.values()), awaiting=dump_trusted(held.snapshot.awaiting),
            status=status_of(held.snapshot.awaiting),
        )  # fmt: skip

    def _inputs_now(self, held: Held, loaded: Loaded, done: Sequence[Done]) -> Inputs:
        """What the turn may know: what was loaded, and the ends of the tasks that ran here since."""
        now_us = loaded.now + int((self.now() - held.loaded_at) * 1e6)
        assert held.known
        inputs = held.inputs or held.known.replace(now=moment(now_us), seed=self._seed())
        for d in done:
            status = {COMPLETED: "completed", CANCELLED: "cancelled"}.get(d.status, "failed")
            value = load(d.value)
            held.outcomes[d.n] = Outcome(status, value if d.status == COMPLETED else seen(value), now_us / 1e6)
        return inputs.replace(outcomes={**inputs.outcomes, **held.outcomes}) if held.outcomes else inputs

    def _ended_rows(self, held: Held, loaded: Loaded) -> tuple[tuple[Done, ...], tuple[NewExecution, ...]]:
        """The rows of owned tasks that have ended for good, and of those that go to the queue to be tried again."""
        done: list[Done] = []
        retries: list[NewExecution] = []
        for command, ended, attempt, took_s in held.ended:
            again_s = self._retry_s(command.name, command.options, attempt, ended)
            self._tell_attempt(child_id(loaded.id, command.n), command.name, command.inputs, ended, again_s, took_s)
            if again_s is not None and not loaded.cancel_requested:
                counted = attempt if ended.delay_s is None else attempt - 1
                again = self.planner.task_row(loaded, command, counted, max(again_s, 1e-6), took_s)
                retries.append(again.replace(failed=_end(ended)[1] if counted else None))
            else:
                status, value = _end(ended)
                queue = self.planner.queue(loaded, command)
                row = Done(command.n, command.name, queue, dump_trusted(command.inputs), status, value, attempt, int(took_s * 1e6))
                done.append(row if status == COMPLETED else row.replace(options=dump_options(command)))
        return tuple(done), tuple(retries)

    def _failure(self, held: Held, code: str, message: str) -> TurnCommit:
        loaded = held.loaded
        assert loaded
        held.inputs = None
        error = dump_trusted({"code": code, "message": message, "data": None})
        return TurnCommit(
            held.id, loaded.seq, held.fence, held.wakes, "finish", self.name, code, status=FAILED, value=error, owned=None,
            resumed=resumed(loaded),
        )  # fmt: skip

    def _pause(self, held: Held, loaded: Loaded) -> TurnCommit | None:
        """A paused workflow keeps what it has and takes no turn. Tasks that run here go on, and are committed when they end."""
        if held.ended:
            return self._unchanged(held, loaded, *self._ended_rows(held, loaded))
        if held.running:
            held.inputs = None
        return None

    def _take_over(self, held: Held) -> TurnCommit | None:
        """Awaited tasks without rows: run them, or, if that has killed a worker before, let the queue count their attempts."""
        loaded = held.loaded
        assert loaded
        if held.crashes == 0 and all(self.planner.runs_here(loaded, command) for command in held.owned.values()):
            held.inputs = None
            self._begin_owned(held)
            return None
        done, starts = [], []
        for command in held.owned.values():
            if held.crashes >= self.settings.crash_limit:
                error = dump_trusted(task_error(command.name, f"its worker died {held.crashes} times"))
                self.complain(
                    "execution_quarantined", child_id(held.id, command.n), f"{command.name}: its worker died {held.crashes} times"
                )
                done.append(Done(command.n, command.name, loaded.queue, dump_trusted(command.inputs), FAILED, error, held.crashes, 0,
                                 dump_options(command)))  # fmt: skip
            else:
                starts.append(self.planner.task_row(loaded, command, held.crashes))
        held.planned, held.inputs = (held.snapshot, {}, bool(done)), None
        return TurnCommit(
            held.id, loaded.seq, held.fence, held.wakes, "own" if done else "park", self.name, "queued",
            done=tuple(done), starts=tuple(starts), statement=held.snapshot.statement_index, awaiting=dump_trusted(held.snapshot.awaiting),
            status=status_of(held.snapshot.awaiting),
        )  # fmt: skip

    def _begun(self, new: NewExecution) -> NewExecution:
        """The row of a task that is running here since a while."""
        return new.replace(attempt=1, later_us=-int((self.now() - self.bodies.running[new.id].began) * 1e6))

    def _promotion(self, held: Held) -> TurnCommit | None:
        """Owned tasks that last get rows of their own, so that people see them and they outlive the claim."""
        loaded, limit = held.loaded, self.now() - self.settings.owner_run_limit_s
        ids = {n: child_id(held.id, n) for n in held.running}
        long = [n for n, id in ids.items() if self.bodies.running[id].began <= limit]
        if not long or loaded is None or held.stale:
            return None
        starts = tuple(self._begun(self.planner.task_row(loaded, held.owned[n])) for n in long)
        left = {n: command for n, command in held.owned.items() if n not in long}
        held.planned = (held.snapshot, left, False)
        return TurnCommit(
            held.id, loaded.seq, held.fence, held.wakes, "own" if left else "park", self.name, "promoted",
            starts=starts, promoted=tuple(long),
            statement=held.snapshot.statement_index, owned=dump_owned(left.values()), awaiting=dump_trusted(held.snapshot.awaiting),
            status=status_of(held.snapshot.awaiting),
            claim_ttl_s=self.settings.claim_ttl_s,
        )  # fmt: skip

    # after a commit

    def _after(self, held: Held, answer: Committed, turn: TurnCommit | None) -> None:
        planned, held.planned = held.planned, None
        self._adopt_promoted(held, turn, answer)
        if answer.outcome == "lost":
            return self._lost(held.id)
        if turn is not None:
            self._tell_end(turn)
            self._cancel_here(turn)
            if answer.outcome == "finished" and held.loaded:
                self.metrics.finished(held.loaded.name, turn.status)
        if answer.outcome in ("parked", "finished"):
            if self.observe and answer.outcome == "parked":
                self._tell_wait(held.id, (planned[0] if planned else held.snapshot).awaiting)
            return self._forget(held.id)
        again = False
        if turn is not None and planned is not None and held.loaded is not None:
            if planned[0] is not held.snapshot:
                held.outcomes = {}
            held.snapshot, owned, again = planned
            held.owned, held.crashes = dict(owned), 0
            for n in [n for n in held.running if n not in held.owned]:
                held.running.discard(n)
                self._stop(child_id(held.id, n))
            held.loaded = held.loaded.replace(seq=held.loaded.seq + 1, resumes=None if turn.resumed is not None else held.loaded.resumes)
            if turn.resumed is not None and held.known:
                held.known = held.known.replace(resume_data=None)
        if answer.outcome == "woken" or answer.wakes != held.wakes or again:
            held.wakes, held.stale = max(answer.wakes, held.wakes), True
        else:
            self._begin_owned(held)
        return None

    def _adopt_promoted(self, held: Held, turn: TurnCommit | None, answer: Committed) -> None:
        """Tasks that were promoted are queued tasks from now on, claimed by this worker."""
        for n in turn.promoted if turn else ():
            id = child_id(held.id, n)
            held.running.discard(n)
            fence = answer.promoted.get(n)
            if fence is None:
                self.bodies.stop(id)
            elif id in self.bodies.running:
                self.claims[id] = Claim(id, TASK, "", fence, 0, self.bodies.running[id].attempt, 0)

    # tasks

    def _runs(self, name: str, queue: str) -> bool:
        """Whether a task may be run without a row of its own. A transactional one needs its row: the claim on it fences the transaction."""
        task, room = self.tasks.get(name), self._busy + self.reserved < self.settings.concurrency
        mine = task is not None and not task.transactional and queue in self.settings.queues and queue not in self.paused
        return self.settings.owner_run and not self.draining and mine and room and not self._keeps_still

    def _reserve(self, count: int) -> bool:
        """Whether there are slots for so many tasks; then they are taken."""
        fits = self._busy + self.reserved + count <= self.settings.concurrency
        self.reserved += count if fits else 0
        return fits

    def _known(self, name: str) -> Task[..., Any] | Declaration | None:
        """A task as it was declared, here or where its handler is."""
        return self.tasks.get(name) or self.declared(name)

    def _queue_of(self, name: str) -> str | None:
        task = self._known(name)
        return task.queue or None if task else None

    def _attempts(self, command: c.StartTask) -> int:
        task = self._known(command.name)
        return int(command.options.get("retries", task.retries if task else 0)) + 1

    def _begin_owned(self, held: Held) -> None:
        """Starts the awaited tasks that this worker runs for the workflow it owns; never beyond the claim's local deadline."""
        for n, command in held.owned.items():
            if n in held.running:
                continue
            if not self._may_begin(held.deadline):
                return self._lost(held.id)
            held.running.add(n)
            self._begin(child_id(held.id, n), command.name, command.inputs, command.options, 1, held.deadline)
        return None

    def _begin_queued(self, claim: Claim, task: LoadedTask, deadline: float) -> None:
        """Begins a task that was claimed; never beyond the claim's local deadline, when it may be another's already."""
        if not self._may_begin(deadline):
            return self._lost(claim.id)
        self.claims[claim.id] = claim
        if task.ended:
            del self.claims[claim.id]
            return self.store.drop({claim.id: claim.fence})
        if task.cancel_requested:
            return self._end_queued(claim.id, TaskEnd(claim.id, claim.fence, CANCELLED, CANCELLED_ERROR, worker=self.name))
        if task.name not in self.tasks:
            return self._end_queued(claim.id, self._missing(claim, task))
        try:
            inputs, options = load(task.inputs), load(task.options)
        except Exception as problem:
            return self._fail_queued(claim, problem)
        return self._begin(claim.id, task.name, inputs, options, claim.attempt, deadline, claim)

    def _missed_s(self, id: str) -> float:
        """How long a task has been missing its handler. One that was not seen for a while has been with others in between."""
        now, gap_s = self.now(), max(self.settings.missing_task_grace_s / 2, 12 * self.settings.missing_task_retry_s)
        if len(self.missing) > REMEMBERED:
            self.missing = {known: seen for known, seen in self.missing.items() if now - seen[1] <= gap_s}
        first, last = self.missing.get(id, (now, now))
        first = first if now - last <= gap_s else now
        self.missing[id] = first, now
        return now - first

    def _tell_missing(self, task: LoadedTask) -> None:
        if task.name not in self._told_missing and len(self._told_missing) < REMEMBERED:
            self._told_missing.add(task.name)
            grace = show_duration(self.settings.missing_task_grace_s)
            what = f"task `{task.name}` of queue `{task.queue}` has no handler here"
            self.complain("handler_missing", task.id, f"{what}; it is put back for others, and fails after {grace} without one")

    def _missing(self, claim: Claim, task: LoadedTask) -> TaskEnd:
        """No handler of this name here: others may have it, so it is put back, first for a moment, then for longer; at last it fails."""
        settings, missed_s = self.settings, self._missed_s(task.id)
        if missed_s < settings.missing_task_grace_s:
            self._tell_missing(task)
            again_s = min(max(missed_s / 4, FIRST_MISS_S), settings.missing_task_retry_s)
            return TaskEnd(claim.id, claim.fence, FAILED, "null", again_s, counts=False, worker=self.name)
        del self.missing[task.id]
        why = self.why_missing(task.name)
        error = task_error(task.name, why)
        (self.observe or self.complain)("failure", task.id, f"{told.called(task.name, load(task.inputs))}: {why}")
        return TaskEnd(claim.id, claim.fence, FAILED, dump_trusted(error), worker=self.name)

    def _begin(
        self, id: str, name: str, inputs: Any, options: Mapping[str, Any], attempt: int, deadline: float, claim: Claim | None = None
    ) -> None:
        body = Body(id, self.tasks[name], inputs, options, attempt, self.now())
        body.current.may_begin = lambda: self._may_begin(deadline)
        if self.observe:
            body.current.told = lambda progress: self._say("progress", id, told.brief(progress))
        if claim and body.task.transactional:
            body.current.within = Transactional(self.store, body.current, TaskEnd(id, claim.fence, COMPLETED, "null", worker=self.name))
        if problem := body.task.problem_with(inputs) or self._problem_with_store(body.task):
            return self._took_end(body, Ended(error=task_error(name, problem)))
        if self.observe:
            self._say("task", id, told.called(name, inputs) + (f" attempt {attempt}" if attempt > 1 else ""))
        return self.bodies.start(body)

    def _problem_with_store(self, task: Task[..., Any]) -> str:
        return "it is transactional, which needs PostgreSQL" if task.transactional and not self.store.lends_connections else ""

    def _take_end(self, body: Body, ended: Ended) -> None:
        """One end that cannot be taken in is not to keep the others from it: that task fails."""
        try:
            self._took_end(body, ended)
        except Exception as problem:
            if body.id not in self.claims:
                raise
            self._fail_queued(self.claims[body.id], problem)

    def _fail_queued(self, claim: Claim, problem: Exception) -> None:
        """A bug, or a row that cannot be read."""
        self.complain("bug", claim.id, "".join(traceback.format_exception(problem)))
        what = text_of(f"Rhythm itself failed with this task: {type(problem).__name__}: {problem}")
        error = dump_trusted({"code": "InternalError", "message": what, "data": None})
        self._end_queued(claim.id, TaskEnd(claim.id, claim.fence, FAILED, error, worker=self.name))

    def _took_end(self, body: Body, ended: Ended) -> None:
        """The end of an attempt goes to the workflow that owns it, or, if it was queued, back to its own row."""
        owner, _, number = body.id.rpartition(".")
        held = self.held.get(owner)
        took_s = self.now() - body.began
        if held and number.isdigit() and int(number) in held.running:
            held.running.discard(int(number))
            held.ended.append((held.owned[int(number)], ended, body.attempt, took_s))
        elif body.id in self.claims:
            claim = self.claims[body.id]
            if ended.kept:
                del self.claims[body.id]
                return self._tell_attempt(body.id, body.task.name, body.inputs, ended, None, took_s)
            again_s = self._retry_s(body.task.name, body.options, claim.attempt, ended)
            self._tell_attempt(body.id, body.task.name, body.inputs, ended, again_s, took_s)
            status, value = _end(ended)
            took_us = int(took_s * 1e6)
            end = TaskEnd(body.id, claim.fence, status, value, again_s, counts=ended.delay_s is None, worker=self.name, took_us=took_us)
            self.sizes.end(body.task.name, end)
            self._end_queued(body.id, end)

    def _end_queued(self, id: str, end: TaskEnd) -> None:
        self.claims.pop(id, None)
        self.ends.append(end)

    def _retry_s(self, name: str, options: Mapping[str, Any], attempt: int, ended: Ended) -> float | None:
        """How long to wait before the next attempt; None if this was the last."""
        if ended.delay_s is not None:
            return ended.delay_s
        task = self.tasks[name]
        if ended.error is None or not ended.retry or attempt > options.get("retries", task.retries):
            return None
        return backoff_of(dict(options), task.backoff_s).delay_s(attempt, self.chance.random())

    # cancelling what runs here

    def _cancel_here(self, turn: TurnCommit) -> None:
        """What a turn asks to end, and this worker has, need not wait for the next beat to hear of it."""
        failed = turn.end == "finish" and turn.status not in ORDERLY
        ranges = ((0, LAST),) if failed else turn.cancels
        for id in [*self.claims, *self.held] if ranges else ():
            owner, _, n = id.rpartition(".")
            if owner == turn.id and any(first <= int(n) <= last for first, last in ranges):
                if id in self.held:
                    self.held[id].stale = True
                else:
                    self._cancel_queued(id)

    def _cancel_queued(self, id: str) -> None:
        fence = self.claims[id].fence
        self._stop(id)
        self._end_queued(id, TaskEnd(id, fence, CANCELLED, CANCELLED_ERROR, worker=self.name))

    def _stop(self, id: str) -> None:
        """Gives an attempt up that is running here."""
        if self.observe and (body := self.bodies.running.get(id)):
            self._say("stopped", id, told.called(body.task.name, body.inputs))
        self.bodies.stop(id)

    # telling whoever listens

    def _say(self, what: str, id: str, detail: str) -> None:
        if self.observe:
            self.observe(what, id, detail)

    def _tell(self, held: Held, loaded: Loaded, inputs: Inputs, turn: Turn) -> None:
        if loaded.seq == 0:
            self._say("start", held.id, f"branch of {loaded.name}" if held.snapshot.statement_index else loaded.name)
        for command in turn.commands:
            if isinstance(command, c.TakeSignal):
                taken = next(signal for signal in inputs.signals or () if signal.id == command.id)
                self._say("signal", held.id, f"{taken.name} = {told.brief(taken.payload)}")
            elif said := told.of_command(command):
                self._say(said[0], held.id, said[1])

    def _tell_wait(self, id: str, plan: Mapping[str, Any] | None) -> None:
        """Only one who sleeps has not found the signal in its mailbox."""
        if plan and plan["op"] == "signal":
            self._say("wait", id, f"signal {plan['name']}")

    def _tell_attempt(self, id: str, name: str, inputs: Any, ended: Ended, again_s: float | None, took_s: float) -> None:
        self.metrics.attempt(name, ended.error is not None, again_s is not None, took_s)
        if self.observe or ended.error is not None:
            what, detail = told.of_attempt(name, inputs, ended, again_s, took_s)
            (self.observe or self.complain)(what, id, detail)

    def _tell_end(self, turn: TurnCommit) -> None:
        if turn.end == "finish" and turn.status == FAILED:
            tell = self.observe or self.complain
            tell("failed", turn.id, load(turn.value)["message"])
        elif turn.end == "finish":
            self._say(STATUS_NAMES[turn.status], turn.id, load(turn.value)["message"] if turn.status == BLOCKED else "")


def _end(ended: Ended) -> tuple[int, str]:
    """Status and value of an attempt that was the last. An error keeps where in the user's Python it arose, for people."""
    if ended.error is None:
        return COMPLETED, ended.result
    frames = [text_of(frame)[:FRAME] for frame in ended.frames[-FRAMES:]]
    return FAILED, dump_trusted({**ended.error, "frames": frames} if frames else ended.error)


def _failing(turn: TurnCommit, error: dict[str, Any]) -> TurnCommit:
    """In place of a turn that cannot be stored."""
    return TurnCommit(
        turn.id, turn.seq, turn.fence, turn.wakes, "finish", turn.worker, "failed", status=FAILED, value=dump_trusted(error), owned=None
    )


def _failing_task(end: TaskEnd, error: dict[str, Any]) -> TaskEnd:
    return end.replace(status=FAILED, value=dump_trusted(error), retry_s=None)
