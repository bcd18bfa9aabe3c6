"""A worker: claims what is ready, takes turns of workflows, runs tasks, and commits it in groups.

One thread decides (`run_round`), handlers run beside it. Whatever has ended while a commit was
under way goes into the next one, so commits grow with the load and wait for nothing when there is
none. The owner of a workflow runs the tasks it awaits itself where it can: no queue row, no second
claim, no resume.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rhythm.engine.planning import over_limit
from rhythm.errors import StoreError
from rhythm.ids import child_id
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Committed, TurnCommit
from rhythm.store.interfaces.workers import Beat, Declaration
from rhythm.worker.attempts import Attempts, RunsHandlers
from rhythm.worker.claiming import Claimer
from rhythm.worker.committer import Committer
from rhythm.worker.context import Context
from rhythm.worker.dispatch import Dispatcher
from rhythm.worker.handlers import Task
from rhythm.worker.heartbeat import Heartbeat
from rhythm.worker.liveness import Liveness
from rhythm.worker.loading import Loader, Programs
from rhythm.worker.local_workers import HOST, MACHINE
from rhythm.worker.narration import Narrator
from rhythm.worker.ownership import OwnedWorkflow, Ownership
from rhythm.worker.quarantine import MissingHandlers, Suspects
from rhythm.worker.settings import WorkerSettings
from rhythm.worker.slots import Slots
from rhythm.worker.turns import Catalogue, Turns

AFTER_A_BUG_S = 1.0  # before the next round


class Worker:
    """Drives executions of one store. `run_round` does everything once and never blocks for long.

    `declared`: how a task was declared on other workers. `gives_up`: whether to stop asking a
    database that has not answered a commit for so long. `connect`: opens the connection of the
    heartbeats; if it is given, another thread sends them.
    """

    def __init__(
        self,
        store: Store,
        programs: Programs,
        tasks: Mapping[str, Task[..., Any]],
        handlers: RunsHandlers,
        name: str,
        settings: WorkerSettings,
        *,
        now: Callable[[], float],
        rng: random.Random,
        narrator: Narrator | None = None,
        declared: Callable[[str], Declaration | None] = lambda name: None,
        why_missing: Callable[[str], str] = lambda name: "no worker has a handler of this name",
        sleep: Callable[[float], None] = time.sleep,
        gives_up: Callable[[float], bool] = lambda waited_s: False,
        connect: Callable[[], Store] | None = None,
        version: str = "",
    ) -> None:
        self.narrator = narrator or Narrator()
        context = Context(store, name, settings, now, rng, self.narrator, sleep)
        self.store, self.name, self.settings, self.now = store, name, settings, now
        self.sleep, self.version = sleep, version
        self.attempts = attempts = Attempts(handlers, now)
        self.ownership = owned = Ownership(context, attempts)
        suspects, missing = Suspects(context, owned), MissingHandlers(context, why_missing)
        self.slots = Slots(context, tasks, attempts, owned, suspects)
        apart, beats_to = connect is not None, connect or (lambda: store)
        self.heart = Heartbeat(beats_to, self._beat, owned.fences, settings.heart, now, apart)
        self.liveness = Liveness(context, self.heart, owned)
        self.dispatcher = Dispatcher(context, tasks, attempts, owned, missing)
        self.claimer = Claimer(context, owned, self.slots, suspects, self.dispatcher)
        self.loader = Loader(context, programs, owned)
        catalogue = Catalogue(programs, tasks, declared)
        self.turns = Turns(
            context, catalogue, attempts, owned, self.slots, self.claimer, self.dispatcher
        )
        self.committer = Committer(context, gives_up)
        self._checked_at = float("-inf")  # whether running tasks were cancelled, or queues paused

    def run_round(self, wait_s: float = 0.0) -> bool:
        """One round: take in what has ended, claim, load, decide, commit, begin.

        Whether anything happened.
        """
        ended = self.attempts.ended(wait_s)
        try:
            self.dispatcher.take_ends(ended)
            self.liveness.catch_up()
            claimed = self.claimer.claim()
            self._check_on_running()
            self.loader.load_stale()
            committed = self._commit()
            self.claimer.begin_suspects()
            return committed or claimed or bool(ended)
        except StoreError as problem:
            self.narrator.unanswered(problem)
        except Exception as problem:  # a bug; what is owned is loaded anew, and the others go on
            self.narrator.bug(problem)
            self.sleep(AFTER_A_BUG_S)
        self.ownership.unsure = True
        return True

    def _commit(self) -> bool:
        """Decides for everything that is owned, and commits it at once. Whether there was any."""
        decided = self.turns.decide_all()
        for workflow in decided.takeovers:
            self.dispatcher.begin_owned(workflow)
        turns, ends = decided.commits, self.ownership.take_ends()
        if turns or ends:
            try:
                answers = self.committer.commit(list(turns.values()), ends)
            except StoreError:
                self.ownership.ends += ends  # sent again, or found to be committed, later
                raise
            for answer in answers:
                workflow = self.ownership.workflows[answer.id]
                self.turns.follow(workflow, *self._within_limits(answer, turns[answer.id]))
        if decided.parks:
            self._park(decided.parks)
        return bool(turns or ends)

    def _park(self, workflows: Sequence[OwnedWorkflow]) -> None:
        """Lets go of those that have nothing to do, unless something has happened meanwhile."""
        claims = [Claim(each.id, 0, "", each.fence, each.wakes, 0, 0) for each in workflows]
        for answer in self.store.claims.park(claims):
            self.turns.follow(self.ownership.workflows[answer.id], answer, None)

    def _within_limits(self, answer: Committed, turn: TurnCommit) -> tuple[Committed, TurnCommit]:
        """In place of a turn that would start more than there may be, the execution fails."""
        if answer.outcome != "full":
            return answer, turn
        instead = over_limit(turn, answer.refusal)
        return self.committer.commit([instead], [])[0], instead

    def _check_on_running(self) -> None:
        """Ends queued tasks that run here and that nobody wants any more; hears of paused
        queues."""
        ownership = self.ownership
        idle = not (ownership.tasks or ownership.workflows)
        if idle or self.now() - self._checked_at < self.settings.check_interval_s:
            return
        self._checked_at = self.now()
        self.slots.paused = self.store.workers.paused_queues()
        if ownership.tasks:
            for id in sorted(self.store.turns.cancelled(list(ownership.tasks))):
                ownership.cancel_task(id)

    # for whoever drives it

    @property
    def idle(self) -> bool:
        """Whether nothing is under way here."""
        return self.ownership.empty and not self.attempts.running

    @property
    def unsure(self) -> bool:
        """Whether the database did not answer."""
        return self.ownership.unsure

    def drain(self) -> None:
        """Claims nothing more; what runs here may end. Any thread."""
        self.slots.draining = True

    @property
    def draining(self) -> bool:
        return self.slots.draining

    def rest_s(self) -> float:
        """Seconds until something that runs here must be looked at: it is late, or long."""
        settings, running, ownership = self.settings, self.attempts.running, self.ownership
        workflows = ownership.workflows.values()
        owned = {child_id(each.id, n) for each in workflows for n in each.running}
        limits = [running[id].began + settings.owner_run_limit_s for id in owned if id in running]
        limits += [
            each.began + each.timeout_s for each in running.values() if each.timeout_s is not None
        ]
        if ownership.tasks or ownership.workflows:
            limits.append(self._checked_at + settings.check_interval_s)
        return max(0.0, min(limits, default=float("inf")) - self.now())

    def stop(self) -> None:
        """Gives everything back, and takes its leave: who has left is not waited for."""
        self.give_back()
        self.store.workers.leave(self.name)

    def give_back(self) -> None:
        """Commits what has ended, and gives back what has not."""
        for id in list(self.attempts.running):
            self.attempts.stop(id)
        claims, ends = self.ownership.fences(), self.ownership.take_ends()
        self.ownership.workflows.clear()
        self.ownership.tasks.clear()
        try:
            if ends:
                self.committer.commit([], ends)
        finally:
            if claims:
                self.store.claims.release(claims)

    def _beat(self) -> Beat:
        """How it is, for the others. Any thread."""
        settings, running = self.settings, len(self.attempts.running)
        return Beat(
            self.name,
            HOST,
            os.getpid(),
            settings.queues,
            settings.concurrency,
            running,
            self.draining,
            self.version,
            MACHINE,
            settings.dead_after_s,
        )
