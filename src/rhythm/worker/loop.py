"""A worker: claims what is ready, takes turns of workflows, runs tasks, commits in groups.

One thread decides (`run_round`); handlers run beside it, or between its rounds. Commits grow with
the load, and do not wait when there is none. Under load, half of what there is to decide is decided
and sent, and while that commit is on its way, the other half. Where it can, the owner of a workflow
runs the tasks that it awaits itself: no ready row, no second claim, no resume.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rhythm.engine.due import next_due_s
from rhythm.errors import StoreError
from rhythm.ids import child_id
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Committed, TurnCommit
from rhythm.store.interfaces.workers import Beat, Declaration
from rhythm.worker.attempts import Attempts, RunsHandlers
from rhythm.worker.claiming import Claimer
from rhythm.worker.committer import CommitGroup, Committer
from rhythm.worker.context import Context
from rhythm.worker.dispatch import Dispatcher
from rhythm.worker.handlers import Task
from rhythm.worker.heartbeat import Heartbeat
from rhythm.worker.lines import LineBuffer
from rhythm.worker.liveness import Liveness
from rhythm.worker.loading import Loader, Programs
from rhythm.worker.local_workers import HOST, MACHINE
from rhythm.worker.narration import Narrator
from rhythm.worker.ownership import OwnedWorkflow, Ownership
from rhythm.worker.quarantine import MissingHandlers, Suspects
from rhythm.worker.queue_hints import QueueHints
from rhythm.worker.settings import WorkerSettings
from rhythm.worker.slots import Slots
from rhythm.worker.turns import Catalogue, NextActions, Turns

AFTER_A_BUG_S = 1.0  # delay before the next round


class Worker:
    """Runs the executions of one store, round by round (`run_round`).

    - `declared` returns how a task was declared on other workers.
    - `gives_up` says whether to stop asking a database that has not answered a commit for this many
      seconds.
    - `connect` opens the connection for heartbeats; if it is given, another thread sends them.
    - `hints` says whether it is worth asking for work; without it, every round asks.
    - `expect` is told in how many seconds something that was committed here is due.
    - `lines` takes what its executions say; without it, that is not kept.
    - `commits_apart`: under load, a commit is under way while the next one is decided; else that
      is what the store says.
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
        hints: QueueHints | None = None,
        expect: Callable[[float], None] = lambda delay_s: None,
        commits_apart: bool | None = None,
        version: str = "",
        lines: LineBuffer | None = None,
    ) -> None:
        self.narrator = narrator or Narrator()
        context = Context(store, name, settings, now, rng, self.narrator, sleep, lines)
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
        self.claimer = Claimer(context, owned, self.slots, suspects, self.dispatcher, hints)
        self.loader = Loader(context, programs, owned)
        catalogue = Catalogue(programs, tasks, declared)
        self.turns = Turns(
            context, catalogue, attempts, owned, self.slots, self.claimer, self.dispatcher
        )
        self.committer = Committer(context, gives_up)
        self.commits_apart = store.turns.commits_apart if commits_apart is None else commits_apart
        # False after a group that could not be sent apart; after the next one it is tried again.
        self._in_halves = True
        self.expect = expect
        # When it last asked whether running tasks were cancelled, or queues paused.
        self._checked_at = float("-inf")

    def run_round(self, wait_s: float = 0.0) -> bool:
        """Does one round: collects what has ended, claims, loads, decides, commits, begins tasks.

        Returns whether anything happened. It never blocks for long: it waits up to `wait_s` for the
        end of a task if there is none yet.
        """
        ended = self.attempts.ended(0.0 if self.committer.under_way else wait_s)
        try:
            self.dispatcher.take_ends(ended)
            if self.liveness.doubts:
                self._follow_commit()
            self.liveness.catch_up()
            just_claimed = self.claimer.claim()
            self._check_on_running()
            self.loader.load_stale(just_claimed)
            committed = self._commit()
            self.claimer.begin_suspects()
            return committed or bool(just_claimed.claims or ended)
        except StoreError as problem:
            self.narrator.unanswered(problem)
        # A bug: everything that is owned is loaded again, and the worker goes on.
        except Exception as problem:
            self.narrator.bug(problem)
            self.sleep(AFTER_A_BUG_S)
        self.ownership.unsure = True
        return True

    def _commit(self) -> bool:
        """Decides for what is owned, and commits that at once; returns whether there was anything.

        If there is more to do than that, the commit is only sent. Its answers are taken after the
        next decisions.
        """
        decided = self.turns.decide(self._most_turns())
        followed = self._follow_commit()
        for workflow in decided.takeovers:
            self.dispatcher.begin_owned(workflow)
        group = CommitGroup(decided.commits, self.ownership.take_ends())
        if committing := bool(group.turns or group.ends):
            apart = self.commits_apart and self._has_more(decided) and not group.promotes
            sent = self.committer.begin(group, apart)
            self._in_halves = sent or not apart
            if not sent:
                self._follow_commit()
        if decided.parks:
            self._park(decided.parks)
        return followed or committing

    def _most_turns(self) -> int:
        """Returns how many turns are decided before they are sent: half of them, under load.

        All of them, if nothing could be decided while the last ones were committed.
        """
        owned, halves = len(self.ownership.workflows), self.commits_apart and self._in_halves
        return max(self.settings.min_group, -(-owned // 2)) if halves else owned

    def _has_more(self, decided: NextActions) -> bool:
        """Returns whether there is something to do while a commit is under way."""
        return bool(decided.rest or self.attempts.running or self.claimer.full)

    def _follow_commit(self) -> bool:
        """Waits for the commit that is under way, and acts on its answers. False: there is none."""
        group = self.committer.under_way
        if group is None:
            return False
        try:
            answers = self.committer.answers()
        except BaseException:
            # The ends are sent again later, or found to be committed; the turns are loaded anew.
            self.ownership.ends += group.ends
            for id in group.turns:
                if workflow := self.ownership.workflows.get(id):
                    self.ownership.load_anew(workflow)
            raise
        finally:
            self.ownership.ends_answered()
        if (due_s := next_due_s(group.turns.values(), group.ends)) is not None:
            self.expect(due_s)
        for answer in answers:
            self._follow(answer, group.turns[answer.id])
        return True

    def _follow(self, answer: Committed, turn: TurnCommit) -> None:
        """Acts on the answer to a turn, unless its workflow was lost while it was under way."""
        workflow = self.ownership.workflows.get(answer.id)
        if workflow is None or workflow.planned is None or workflow.fence != turn.fence:
            return
        if answer.outcome == "full":
            turn = self.turns.refuse(workflow, turn, answer.refusal)
            [answer] = self.committer.commit([turn], [])
        self.turns.follow(workflow, answer, turn)

    def _park(self, workflows: Sequence[OwnedWorkflow]) -> None:
        """Parks workflows that have nothing to do, unless they were woken in the meantime."""
        claims = [each.claim for each in workflows]
        for answer in self.store.claims.park(claims):
            self.turns.follow(self.ownership.workflows[answer.id], answer, None)

    def _check_on_running(self) -> None:
        """Ends queued tasks that run here and were cancelled; reads which queues are paused."""
        ownership = self.ownership
        idle = not (ownership.tasks or ownership.workflows)
        if idle or self.now() - self._checked_at < self.settings.check_interval_s:
            return
        self._checked_at = self.now()
        self.slots.paused = self.store.workers.paused_queues()
        if ownership.tasks:
            for id in sorted(self.store.turns.cancelled(list(ownership.tasks))):
                ownership.cancel_task(id)

    # for the caller that runs it

    @property
    def idle(self) -> bool:
        """Whether nothing is under way here."""
        busy = self.attempts.running or self.committer.under_way
        return self.ownership.empty and not busy

    @property
    def unsure(self) -> bool:
        """Whether a call to the database had no answer, and claims must be compared with it."""
        return self.ownership.unsure

    def drain(self) -> None:
        """Stops claiming; what runs here may end. Call it from any thread."""
        self.slots.draining = True

    @property
    def draining(self) -> bool:
        """Whether it claims nothing more."""
        return self.slots.draining

    def rest_s(self) -> float:
        """Returns the seconds until something that runs here must be checked.

        An attempt may run out of time, or have run so long that it should get a row of its own. A
        workflow that is to be loaded is not kept waiting.
        """
        settings, running, ownership = self.settings, self.attempts.running, self.ownership
        workflows = ownership.workflows.values()
        if any(each.stale and each.is_as_stored for each in workflows):
            return 0.0
        owned = {child_id(each.id, n) for each in workflows for n in each.running}
        limits = [running[id].began + settings.owner_run_limit_s for id in owned if id in running]
        limits += [
            each.began + each.timeout_s for each in running.values() if each.timeout_s is not None
        ]
        if ownership.tasks or ownership.workflows:
            limits.append(self._checked_at + settings.check_interval_s)
        return max(0.0, min(limits, default=float("inf")) - self.now())

    def stop(self) -> None:
        """Gives everything back, and signs off: others need not wait for a worker that has left."""
        self.give_back()
        self.store.workers.leave(self.name)

    def give_back(self) -> None:
        """Commits what has ended, and gives back what has not."""
        self._follow_commit()
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
        """Returns the state of this worker, for its heartbeat. May be called from any thread."""
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
