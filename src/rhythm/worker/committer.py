"""The group commit, and what became of a commit whose answer was lost.

No answer is not a failure: what was committed is found by its witness, the row of the history with
its fence. The rest is sent again if this worker still owns it. The database that answers now may
have taken over from another one, and may have given the same fence to another worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count

from rhythm.engine.planning import in_place_of, task_in_place_of
from rhythm.errors import StoreError
from rhythm.ids import child_id
from rhythm.record import Record
from rhythm.store.interfaces.turns import Committed, TaskEnd, TurnCommit
from rhythm.worker.context import Context
from rhythm.worker.ended import text_of

Sent = Callable[[], list[Committed]]  # waits for the answer to a commit that is under way


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
    """

    def __init__(self, context: Context, gives_up: Callable[[float], bool]) -> None:
        self.under_way: CommitGroup | None = None  # the group whose answers were not taken yet
        self._sent: Sent | None = None  # waits for the database's answer to it, if it was sent
        self.store, self.worker, self.narrator = context.store, context.worker, context.narrator
        self.claim_ttl_s = context.settings.claim_ttl_s
        self.now, self.sleep, self.gives_up = context.now, context.sleep, gives_up

    def begin(self, group: CommitGroup, apart: bool = False) -> bool:
        """Begins to commit a group; `answers` returns what became of it.

        With `apart` it is sent now, if the store can do that without waiting for the answer.
        Otherwise it is committed when its answers are asked for. Returns whether it was sent.
        """
        assert self.under_way is None, "one group at a time"
        self.under_way, self._sent = group, None
        if apart and self.store.turns.commits_apart:
            try:
                turns = list(group.turns.values())
                self._sent = self.store.turns.begin_commit(turns, group.ends)
            # As if the database had answered so: it is dealt with where answers are.
            except Exception as problem:
                self._sent = partial(_raise, problem)
        return self._sent is not None

    def answers(self) -> list[Committed]:
        """Returns what became of each turn of the group that is under way; waits for that."""
        group, sent = self.under_way, self._sent
        assert group is not None, "a group is under way"
        self.under_way = self._sent = None
        return self.commit(list(group.turns.values()), group.ends, sent)

    def commit(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd], sent: Sent | None = None
    ) -> list[Committed]:
        """Commits all of it in one transaction; returns what became of each turn.

        With `sent`, it is on its way already. A turn or an end that cannot be stored does not hold
        up the others. They are sent one by one then, and the execution that cannot be stored fails.
        Raises `StoreError` if the database does not answer and `gives_up` says so.
        """
        try:
            return self._send(turns, ends, sent)
        except StoreError:
            raise
        except Exception as problem:
            self.narrator.bug(problem)
            if len(turns) + len(ends) > 1:
                return self._one_by_one(turns, ends)
            message = text_of(f"it cannot be stored: {type(problem).__name__}: {problem}")
            instead = [in_place_of(turn.first or turn, "InternalError", message) for turn in turns]
            failing = [task_in_place_of(end, "InternalError", message) for end in ends]
            return self._send(instead, failing)

    def _one_by_one(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> list[Committed]:
        answers = [answer for turn in turns for answer in self.commit([turn], [])]
        for end in ends:
            self.commit([], [end])
        return answers

    def _send(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd], sent: Sent | None = None
    ) -> list[Committed]:
        """Sends until every turn and end is settled: answered, found, or lost."""
        answers: list[Committed] = []
        began = self.now()
        for tries in count(1):
            try:
                committed = sent() if sent else self.store.turns.commit(turns, ends)[0]
                self.narrator.answered()
                self.narrator.metrics.committed(len(turns) + len(ends))
                first = tries == 1
                return [*answers, *(committed if first else self._repeated(turns, committed))]
            except StoreError as problem:
                self.narrator.unanswered(problem, "commit_unknown")
                self._rest(tries, problem, began)
            sent = None
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


def _raise(problem: Exception) -> list[Committed]:
    raise problem


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
