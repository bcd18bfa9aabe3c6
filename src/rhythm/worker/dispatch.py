"""Begins attempts at tasks, and collects their ends.

A task runs either for the workflow that awaits it, without a row of its own, or under a claim of
its own. Its end goes the same way back: to the workflow, or into the commit that ends its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rhythm.engine.payload import dump_trusted, load, unshared
from rhythm.engine.rows import task_error
from rhythm.ids import child_id
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.turns import TaskEnd
from rhythm.store.lifecycle import COMPLETED, FAILED
from rhythm.worker.attempts import Attempt, Attempts
from rhythm.worker.context import Context
from rhythm.worker.ended import AttemptEnd, retry_s, stored_end, text_of
from rhythm.worker.handlers import Task
from rhythm.worker.narration import brief
from rhythm.worker.ownership import OwnedWorkflow, Ownership, TaskAttempt
from rhythm.worker.quarantine import ClaimedTask, MissingHandlers
from rhythm.worker.transactional import Transactional


class Dispatcher:
    """Runs the tasks of one worker."""

    def __init__(
        self,
        context: Context,
        tasks: Mapping[str, Task[..., Any]],
        attempts: Attempts,
        ownership: Ownership,
        missing: MissingHandlers,
    ) -> None:
        self.store, self.narrator, self.now = context.store, context.narrator, context.now
        self.rng, self.tasks, self.attempts = context.rng, tasks, attempts
        self.lines = context.lines
        self.ownership, self.missing = ownership, missing

    # beginning

    def begin_owned(self, workflow: OwnedWorkflow) -> None:
        """Begins the tasks that a workflow awaits and that have no row.

        It begins none after the deadline of the claim on the workflow, since another worker may own
        it then: the workflow is lost instead.
        """
        # A task may have ended while the turn before was committed.
        ended = {each.command.n for each in workflow.ended} if workflow.ended else ()
        for n, command in workflow.owned.items():
            if n in workflow.running or n in ended:
                continue
            if not self.ownership.may_begin(workflow.deadline):
                return self.ownership.lose(workflow.id)
            if not workflow.running:
                workflow.begun_at = self.now()
            workflow.running.add(n)
            id, options = child_id(workflow.id, n), command.options
            inputs = unshared(command.inputs)  # its handler may change them
            attempt = self._attempt(id, command.name, inputs, options, 1, workflow.deadline)
            attempt.current.fence = workflow.fence
            self._begin(attempt)
        return None

    def begin_claimed(self, claimed: ClaimedTask) -> None:
        """Begins a claimed task, unless it must not run, or cannot run here.

        If the claim is too old, it is lost. A task that has ended is dropped, a cancelled one is
        ended. One without a handler here is put back, or fails.
        """
        claim, task = claimed.claim, claimed.task
        if not self.ownership.may_begin(claimed.deadline):
            return self.ownership.lose(claim.id)
        self.ownership.tasks[claim.id] = claim
        if task.ended:
            del self.ownership.tasks[claim.id]
            return self.store.claims.drop({claim.id: claim.fence})
        if task.cancel_requested:
            return self.ownership.cancel_task(claim.id)
        if task.name not in self.tasks:
            return self.ownership.end_task(self.missing.end(claim, task))
        try:
            inputs, options = load(task.inputs), load(task.options)
        except Exception as problem:
            return self._fail(claim, problem)
        deadline = claimed.deadline
        attempt = self._attempt(claim.id, task.name, inputs, options, claim.attempt, deadline)
        attempt.current.fence = claim.fence
        if attempt.task.transactional:
            end = TaskEnd(claim.id, claim.fence, COMPLETED, "null", worker=self.ownership.worker)
            attempt.current.within = Transactional(self.store, attempt.current, end)
        return self._begin(attempt)

    def _attempt(
        self,
        id: str,
        name: str,
        inputs: Any,
        options: Mapping[str, Any],
        number: int,
        deadline: float,
    ) -> Attempt:
        attempt = Attempt(id, self.tasks[name], inputs, options, number, self.now())
        attempt.current.may_begin = lambda: self.ownership.may_begin(deadline)
        attempt.current.lines = self.lines
        if self.narrator.observe:
            attempt.current.on_progress = lambda progress: self.narrator.say(
                "progress", id, brief(progress)
            )
        return attempt

    def _begin(self, attempt: Attempt) -> None:
        """Begins an attempt; it fails at once if the inputs or the store do not fit the task."""
        task = attempt.task
        if problem := task.problem_with(attempt.inputs) or self._problem_with_store(task):
            return self._route(attempt, AttemptEnd(error=task_error(task.name, problem)))
        self.narrator.task_begins(attempt)
        return self.attempts.start(attempt)

    def _problem_with_store(self, task: Task[..., Any]) -> str:
        lends = self.store.lends_connections
        needs = task.transactional and not lends
        return "it is transactional, which needs PostgreSQL" if needs else ""

    # ending

    def take_ends(self, ended: Iterable[tuple[Attempt, AttemptEnd]]) -> None:
        """Collects the ends of attempts.

        A bug with the end of one queued task does not keep the others from being collected: that
        task fails.
        """
        for attempt, end in ended:
            try:
                self._route(attempt, end)
            except Exception as problem:
                if attempt.id not in self.ownership.tasks:
                    raise
                self._fail(self.ownership.tasks[attempt.id], problem)

    def _route(self, attempt: Attempt, ended: AttemptEnd) -> None:
        """Passes the end to the workflow that awaits it or, if the task was queued, to its row."""
        took_s = self.now() - attempt.began
        owner, _, number = attempt.id.rpartition(".")
        workflow = self.ownership.workflows.get(owner)
        if workflow and number.isdigit() and int(number) in workflow.running:
            n = int(number)
            workflow.running.discard(n)
            end = TaskAttempt(workflow.owned[n], ended, attempt.number, took_s)
            workflow.ended.append(end)
        elif claim := self.ownership.tasks.get(attempt.id):
            self._end_claimed(claim, attempt, ended, took_s)

    def _end_claimed(
        self, claim: Claim, attempt: Attempt, ended: AttemptEnd, took_s: float
    ) -> None:
        name, inputs = attempt.task.name, attempt.inputs
        if ended.lost:
            return self.ownership.lose(claim.id)
        if ended.kept:
            del self.ownership.tasks[claim.id]
            return self.narrator.task_ended(claim.id, name, inputs, ended, None, took_s)
        wait_s = retry_s(ended, attempt.task, attempt.options, claim.attempt, self.rng)
        self.narrator.task_ended(claim.id, name, inputs, ended, wait_s, took_s)
        status, value = stored_end(ended)
        end = TaskEnd(
            claim.id,
            claim.fence,
            status,
            value,
            wait_s,
            counts=ended.delay_s is None,
            worker=self.ownership.worker,
            took_us=int(took_s * 1e6),
        )
        self.narrator.sizes.end(name, end)
        return self.ownership.end_task(end)

    def _fail(self, claim: Claim, problem: Exception) -> None:
        """Fails a claimed task because of a bug, or because its row cannot be read."""
        self.narrator.bug(problem, claim.id)
        what = f"Rhythm itself failed with this task: {type(problem).__name__}: {problem}"
        error = {"code": "InternalError", "message": text_of(what), "data": None}
        worker = self.ownership.worker
        end = TaskEnd(claim.id, claim.fence, FAILED, dump_trusted(error), worker=worker)
        self.ownership.end_task(end)
