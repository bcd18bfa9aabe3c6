"""The group commit, and what became of a commit whose answer was lost.

No answer is not a failure: what was committed is found by its witness, the row of the history with
its fence. The rest is sent again if this worker still owns it. The database that answers now may
have taken over from another one, and may have given the same fence to another worker.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count

from rhythm.engine.planning import in_place_of, task_in_place_of
from rhythm.errors import StoreError
from rhythm.ids import child_id
from rhythm.record import Record
from rhythm.store.interfaces.turns import Committed, TaskEnd, TurnCommit
from rhythm.worker.context import Context
from rhythm.worker.ended import text_of


class Witnessed(Record):
    """What the database knows about turns whose answers were lost."""

    witnesses: Mapping[str, int] = {}  # id -> fence of its commit; only turns that are committed
    wakes: Mapping[str, int] = {}  # id -> wakes; only workflows that are still claimed
    claimed: Mapping[str, int] = {}  # id -> fence; everything that this worker has claimed


class CommitGroup(Record):
    """What is committed together: turns by workflow, and ends of queued tasks."""

    turns: Mapping[str, TurnCommit]
    ends: Sequence[TaskEnd]

    @property
    def promotes(self) -> bool:
        """Whether a turn gives a row to a task that is running: its end must find that row."""
        return any(turn.promoted for turn in self.turns.values())


class Committer:
    """Commits the turns and the ends of tasks of one worker, one group at a time.

    `gives_up` says whether to stop asking a database that has not answered for this many seconds.
    `has_thread`: groups may be committed by a thread of its own.
    """

    def __init__(
        self, context: Context, gives_up: Callable[[float], bool], has_thread: bool = True
    ) -> None:
        self.has_thread = has_thread
        self.under_way: CommitGroup | None = None  # the group whose answers were not taken yet
        self._answers: Callable[[], list[Committed]] | None = None
        self._future: Future[list[Committed]] | None = None
        self._thread: CommitThread | None = None
        self.store, self.worker, self.narrator = context.store, context.worker, context.narrator
        self.claim_ttl_s = context.settings.claim_ttl_s
        self.now, self.sleep, self.gives_up = context.now, context.sleep, gives_up

    def begin(self, group: CommitGroup, done: Callable[[], object] | None = None) -> None:
        """Begins to commit a group; `answers` returns what became of it.

        With `done` the thread commits it, and calls that when it has. Without, or without a thread,
        it is committed when its answers are asked for.
        """
        assert self.under_way is None, "one group at a time"
        work = partial(self.commit, list(group.turns.values()), group.ends)
        self.under_way = group
        if done is None or not self.has_thread:
            self._answers = work
            return
        if self._thread is None:
            self._thread = CommitThread()
        self._future = self._thread.run(work, done)
        self._answers = self._future.result

    @property
    def answered(self) -> bool:
        """Whether `answers` need not wait for another thread."""
        return self._future is None or self._future.done()

    def answers(self) -> list[Committed]:
        """Returns what became of each turn of the group that is under way; waits for that."""
        answers, self._answers, self._future, self.under_way = self._answers, None, None, None
        assert answers is not None, "a group is under way"
        return answers()

    def commit(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> list[Committed]:
        """Commits all of it in one transaction; returns what became of each turn.

        A turn or an end that cannot be stored does not hold up the others. They are sent one by one
        then, and the execution that cannot be stored fails. Raises `StoreError` if the database
        does not answer and `gives_up` says so.
        """
        try:
            return self._send(turns, ends)
        except StoreError:
            raise
        except Exception as problem:
            self.narrator.bug(problem)
            if len(turns) + len(ends) > 1:
                return self._one_by_one(turns, ends)
            message = text_of(f"it cannot be stored: {type(problem).__name__}: {problem}")
            instead = [in_place_of(turn, "InternalError", message) for turn in turns]
            failing = [task_in_place_of(end, "InternalError", message) for end in ends]
            return self._send(instead, failing)

    def _one_by_one(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> list[Committed]:
        answers = [answer for turn in turns for answer in self.commit([turn], [])]
        for end in ends:
            self.commit([], [end])
        return answers

    def _send(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> list[Committed]:
        """Sends until every turn and end is settled: answered, found, or lost."""
        answers: list[Committed] = []
        began = self.now()
        for tries in count(1):
            try:
                committed = self.store.turns.commit(turns, ends)[0]
                self.narrator.answered()
                self.narrator.metrics.committed(len(turns) + len(ends))
                first = tries == 1
                return [*answers, *(committed if first else self._repeated(turns, committed))]
            except StoreError as problem:
                self.narrator.unanswered(problem, "commit_unknown")
                self._rest(tries, problem, began)
            found = self._find(turns)
            answers += [_settled(turn, found) for turn in turns if turn.id in found.witnesses]
            turns = [turn for turn in turns if turn.id not in found.witnesses]
            gone = [turn for turn in turns if found.claimed.get(turn.id) != turn.fence]
            answers += self._repeated(gone, [Committed(turn.id, "lost") for turn in gone])
            turns = [turn for turn in turns if found.claimed.get(turn.id) == turn.fence]
            ends = [end for end in ends if found.claimed.get(end.id) == end.fence]
            if not turns and not ends:
                break
        return answers

    def _repeated(
        self, turns: Sequence[TurnCommit], committed: Sequence[Committed]
    ) -> list[Committed]:
        """Returns the answers to a commit that was sent more than once.

        A turn that is answered as lost may have lost to its own first sending, which did get
        through.
        """
        lost = {answer.id for answer in committed if answer.outcome == "lost"}
        doubtful = [turn for turn in turns if turn.id in lost]
        found = self._find(doubtful) if doubtful else Witnessed()
        settled = {
            turn.id: _settled(turn, found) for turn in doubtful if turn.id in found.witnesses
        }
        return [settled.get(answer.id, answer) for answer in committed]

    def _find(self, turns: Sequence[TurnCommit]) -> Witnessed:
        """Asks the database what became of the turns, until it answers."""
        began = self.now()
        for tries in count(1):
            try:
                witnesses = {
                    turn.id: self.store.turns.witness(turn.id, turn.seq + 1) for turn in turns
                }
                fences = {turn.id: turn.fence for turn in turns}
                wakes = self.store.claims.extend(fences, self.claim_ttl_s)
                there = {id: fence for id, fence in witnesses.items() if fence is not None}
                return Witnessed(there, wakes, self.store.claims.claimed_by(self.worker))
            except StoreError as problem:
                self.narrator.unanswered(problem)
                self._rest(tries, problem, began)
        raise AssertionError("it was asked until there was an answer")

    def _rest(self, tries: int, problem: StoreError, began: float) -> None:
        """Waits before the database is asked again, longer each time.

        Raises `problem` if it is time to give up.
        """
        if self.gives_up(self.now() - began):
            raise problem
        self.sleep(min(0.05 * 2 ** min(tries, 7), 5.0))


class CommitThread:
    """A thread that commits, one group after the other. It is a daemon: a database that does not
    answer cannot keep the process alive."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="rhythm commits", daemon=True).start()

    def run(
        self, work: Callable[[], list[Committed]], done: Callable[[], object]
    ) -> Future[list[Committed]]:
        """Runs `work` there. Returns its answer, or its error, as soon as there is one."""
        answer: Future[list[Committed]] = Future()

        def asked() -> None:
            try:
                answer.set_result(work())
            except BaseException as problem:
                answer.set_exception(problem)
            done()

        self._asked.put(asked)
        return answer

    def _run(self) -> None:
        while True:
            self._asked.get()()


def _settled(turn: TurnCommit, found: Witnessed) -> Committed:
    """Returns the outcome of a turn that was committed, by this worker or by another one."""
    promoted = {
        n: fence
        for n in turn.promoted
        if (fence := found.claimed.get(child_id(turn.id, n))) is not None
    }
    if found.witnesses[turn.id] != turn.fence:
        return Committed(turn.id, "lost", promoted=promoted)
    if turn.id not in found.wakes:
        return Committed(turn.id, "finished", promoted=promoted)
    return Committed(turn.id, "woken", found.wakes[turn.id], promoted)
