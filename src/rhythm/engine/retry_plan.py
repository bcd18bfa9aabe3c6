"""Plans a retry: a new execution that goes on from the last snapshot of one that ended.

`retried` is a pure function from the rows of the old execution to the rows of the new one. Neither
has inputs or results: the database copies them, and here it is enough to know that things ended.
What had completed is copied, and never runs again. What the last snapshot awaits and has not
completed begins again, a child workflow from its own last snapshot. So does what ran in the
background until the end. Everything else stays as it was: a failure that was caught, the loser of a
race. If that leaves nothing to do but to fail again, the retry is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rhythm.engine.inputs import kinds, outcome_of
from rhythm.engine.payload import dump_trusted, load
from rhythm.engine.rows import dump_owned, load_owned
from rhythm.errors import NotRetryable
from rhythm.ids import child_id
from rhythm.ir.awaiting import KINDS, held_back, is_loop
from rhythm.limits import DEFAULT_LIMITS, REFUSED
from rhythm.store.interfaces.executions import (
    Family,
    Reach,
    Retry,
    StoredExecution,
    StoredSignal,
    StoredTimer,
    from_start,
    refuse_large,
)
from rhythm.store.interfaces.turns import UNREAD_ERROR, ChildOutcome
from rhythm.store.lifecycle import (
    BLOCKED,
    CANCELLED,
    COMPLETED,
    FAILED,
    ORDERLY,
    PENDING,
    SUSPENDED,
    TASK,
    TERMINAL,
)
from rhythm.store.verdicts import BY_REQUEST
from rhythm.vm.awaits import Reserved, next_completed, resolve
from rhythm.vm.machine import CONTEXT, RESUMED, STARTED, Inputs, Machine, Outcome, Signal
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot, pack

FAILS_AGAIN = "so going on from there would fail again"


def retried(family: Family, id: str, reach: Reach) -> Family:
    """Returns the rows of a retry with this id.

    Raises `NotRetryable` if the execution has not ended, has a result, was retried before, or
    cannot go on. Raises `RetryTooLarge` if its snapshots, unpacked, are larger than `reach` allows:
    the database can only say how large they are packed.
    """
    root = family.executions[0]
    refuse_unless_ended(root)
    _refuse_second(root, family.retries)
    retry = _Retry(family, reach)
    retry.refuse_repetition(root)
    retry.go_on(root, id, None, id)
    first = retry.executions[0].replace(retry_of=root.id)
    return Family((first, *retry.executions[1:]), tuple(retry.timers), tuple(retry.signals))


def anew(family: Family, id: str, version: str) -> Family:
    """Returns the row of a retry that begins at the beginning, on this version."""
    root = family.executions[0]
    refuse_unless_ended(root)
    return Family((_begun(root, id, None, id, False).replace(retry_of=root.id, version=version),))


def refuse_unless_ended(root: StoredExecution) -> None:
    """Raises `NotRetryable` unless this is a root that failed or was cancelled."""
    if root.parent_id is not None:
        raise NotRetryable(f"{root.id} is part of {root.root_id}: retry that one")
    if root.status < TERMINAL:
        raise NotRetryable(f"{root.id} has not ended: cancel it, or wait")
    if root.status == COMPLETED:
        raise NotRetryable(
            f"{root.id} has completed: start the workflow again if you want another result"
        )
    if root.status == BLOCKED:
        raise NotRetryable(
            f"{root.id} was blocked, which is its outcome: start the workflow again to "
            f"have it decided anew"
        )


def _refuse_second(root: StoredExecution, retries: Sequence[Retry]) -> None:
    """Raises `NotRetryable` if the execution was retried already.

    Retries form one line, each of the one before: a second retry beside the first would do its work
    twice.
    """
    for retry in retries:
        if retry.status == COMPLETED:
            raise NotRetryable(f"{root.id} was retried as {retry.id}, which completed")
    if retries:
        end = "was cancelled" if retries[-1].status == CANCELLED else "failed in turn"
        raise NotRetryable(
            f"{root.id} was retried as {retries[-1].id}, which {end}: retry "
            f"{retries[-1].id} instead"
        )


class _Retry:
    """Walks down from the old execution, and collects the rows of the new one."""

    def __init__(self, family: Family, reach: Reach) -> None:
        self.root, self.reach, self.unpacked = family.executions[0].id, reach, 0
        self.children: dict[str | None, list[StoredExecution]] = {}
        for row in family.executions:
            self.children.setdefault(row.parent_id, []).append(row)
        self.old_timers, self.old_signals = family.timers, family.signals
        self.executions: list[StoredExecution] = []
        self.timers: list[StoredTimer] = []
        self.signals: list[StoredSignal] = []

    def refuse_repetition(self, old: StoredExecution) -> None:
        """Raises `NotRetryable` if the workflow could only fail in the same way again.

        That is so if its own code ended it, unless something that it awaited begins again.
        """
        if old.type == TASK or not _ended_itself(old):
            return
        snapshot = self._snapshot(old)
        if snapshot is None or snapshot.awaiting is None:
            raise NotRetryable(
                f"{old.id} was waiting for nothing when it failed, {FAILS_AGAIN}: "
                f"{from_start(old.id)}"
            )
        kept = self._settled(old, snapshot, True)
        if kept is not None and kept == self._settled(old, snapshot, False):
            raise NotRetryable(
                f"{old.id} failed when what it had waited for was done, {FAILS_AGAIN}: "
                f"{from_start(old.id)}"
            )

    def _settled(self, old: StoredExecution, snapshot: Snapshot, only_kept: bool) -> Any:
        """Returns how its await ends, by what had ended; None if it does not end.

        With `only_kept`, only what a retry keeps counts.
        """
        ops = _open(snapshot)
        ended = (*self._ended_children(old, only_kept), *self._fired(old, ops if only_kept else {}))
        mail = [
            Signal(mail.id, mail.name, None, mail.received_at / 1e6) for mail in self._mail(old)
        ]
        outcomes = {row.n: outcome_of(old.id, old.name, row, ops.get(row.n, "")) for row in ended}
        return _resolved(old.id, snapshot, outcomes, mail)

    def _ended_children(self, old: StoredExecution, only_kept: bool) -> Iterator[ChildOutcome]:
        """Yields outcomes of children that ended; with `only_kept`, of those that a retry keeps."""
        for child in self.children.get(old.id, ()):
            if child.status in ORDERLY or (
                not only_kept and child.status >= TERMINAL and not _ran_until_the_end(child, old)
            ):
                # Its number stands in for its result, which was not read.
                value = (
                    str(child.child_no)
                    if child.status == COMPLETED
                    else child.error or UNREAD_ERROR
                )
                yield ChildOutcome(
                    child.child_no,
                    child.status,
                    value,
                    child.finished_at or 0,
                    child.type,
                    child.name,
                )

    def _fired(self, old: StoredExecution, begin_anew: Mapping[int, str]) -> Iterator[ChildOutcome]:
        """Yields the outcomes of timers that have fired, except deadlines that begin again."""
        for timer in self.old_timers:
            if (
                timer.execution_id == old.id
                and timer.fired_at is not None
                and not _is_deadline(timer.n, begin_anew)
            ):
                yield ChildOutcome(timer.n, COMPLETED, "null", timer.fired_at, None, "")

    def go_on(
        self, old: StoredExecution, id: str, parent_id: str | None, root_id: str, held: bool = False
    ) -> None:
        """Adds the execution once more, with everything below it.

        A task gets all its attempts again; a workflow goes on from its last snapshot.
        """
        new = _begun(old, id, parent_id, root_id, held)
        snapshot = self._snapshot(old)
        self._signals(old, id)
        if snapshot is None:
            self.executions.append(new)
            return
        owned = self._owned(old, snapshot)
        self._refuse_missing(old, snapshot, set(owned))
        snapshot = snapshot.replace(locals=_renamed(snapshot.locals, old.id, id))
        encoded = encode_snapshot(snapshot)
        self.unpacked += len(encoded)
        refuse_large(self.root, self.reach, 0, self.unpacked)
        self.executions.append(
            new.replace(
                status=PENDING if held or snapshot.awaiting is None else SUSPENDED,
                snapshot=pack(encoded),
                statement=snapshot.statement_index,
                owned=dump_owned(owned.values()),
                awaiting=dump_trusted(snapshot.awaiting),
            )
        )
        self._children(old, snapshot, id, root_id)
        self._timers(old, snapshot, id)

    def _snapshot(self, old: StoredExecution) -> Snapshot | None:
        """Returns the snapshot from which the execution goes on; None: from its beginning.

        Raises `NotRetryable` if it was cancelled or over a limit, has run its `finally` blocks,
        and cannot begin again by itself.
        """
        snapshot = decode_snapshot(old.snapshot) if old.type != TASK and old.snapshot else None
        if snapshot is None or not (snapshot.cancelled or snapshot.limit):
            return snapshot
        if old.parent_id is None or self._is_branch(old):
            how = "was cancelled" if snapshot.cancelled else "was over a limit"
            raise NotRetryable(
                f"{old.id} {how} and has cleaned up behind itself: {from_start(old.root_id)}"
            )
        return None

    def _is_branch(self, old: StoredExecution) -> bool:
        """Returns whether it may be a branch: a part of its parent's program.

        The beginning of a branch is not stored anywhere any more.
        """
        parents = (
            row for rows in self.children.values() for row in rows if row.id == old.parent_id
        )
        return any((parent.name, parent.version) == (old.name, old.version) for parent in parents)

    def _owned(self, old: StoredExecution, snapshot: Snapshot) -> dict[int, Any]:
        """Returns the tasks that it awaits and that never got a row."""
        rows = {child.child_no for child in self.children.get(old.id, ())}
        awaited = set(_open(snapshot))
        return {
            n: command
            for n, command in load_owned(old.owned or "[]").items()
            if n not in rows and n in awaited
        }

    def _refuse_missing(self, old: StoredExecution, snapshot: Snapshot, owned: set[int]) -> None:
        """Raises `NotRetryable` if it would wait for ever for something that is not stored.

        That is something it awaits, or may await by an id that a variable holds.
        """
        stored = {child.child_no for child in self.children.get(old.id, ())} | owned
        stored |= {timer.n for timer in self.old_timers if timer.execution_id == old.id}
        for n, op in {**dict(_behind(old.id, snapshot)), **_open(snapshot)}.items():
            if KINDS[op].pauses:
                raise NotRetryable(
                    f"{old.id} waits for an {op}, and such a wait cannot be taken up "
                    f"again: {from_start(old.root_id)}"
                )
            if n not in stored and KINDS[op].row != "mailbox":
                raise NotRetryable(
                    f"{old.id} waits for number {n}, of which nothing is left: "
                    f"{from_start(old.root_id)}"
                )

    def _children(self, old: StoredExecution, snapshot: Snapshot, id: str, root_id: str) -> None:
        """Adds the children: copies those that stay as they were, and begins the others again."""
        awaited, held = _open(snapshot), set(_held(snapshot))
        for child in self.children.get(old.id, ()):
            n, new_id = child.child_no, child_id(id, child.child_no)
            # The turn that failed had started it; the next turn will start its own.
            if n >= snapshot.next_child:
                continue
            if child.status in ORDERLY or not (n in awaited or _ran_until_the_end(child, old)):
                self.executions.append(_copied(child, new_id, id, root_id))
            else:
                self.go_on(child, new_id, id, root_id, n in held)

    def _timers(self, old: StoredExecution, snapshot: Snapshot, id: str) -> None:
        """Adds the timers: some stay as they were, some begin again."""
        held, awaited = set(_held(snapshot)), _open(snapshot)
        for timer in self.old_timers:
            if timer.execution_id == old.id and timer.n < snapshot.next_child:
                # The wait that it limits gets its whole time again.
                again = _is_deadline(timer.n, awaited)
                self.timers.append(
                    _timer(
                        timer.replace(fired_at=None) if again else timer,
                        id,
                        old.finished_at,
                        timer.n in held,
                    )
                )

    def _signals(self, old: StoredExecution, id: str) -> None:
        """Adds the signals in the mailbox."""
        for n, signal in enumerate(self._mail(old), 1):
            self.signals.append(
                signal.replace(
                    id=f"{id}#{signal.n} of {old.id}", execution_id=id, n=n, consumed_seq=None
                )
            )

    def _mail(self, old: StoredExecution) -> Iterator[StoredSignal]:
        """Yields the signals in the mailbox as it was at the last snapshot.

        The turn that ended the execution may have taken more of them.
        """
        last = (old.seq or 0) - (old.status >= TERMINAL)
        mail = (signal for signal in self.old_signals if signal.execution_id == old.id)
        return (
            signal for signal in mail if signal.consumed_seq is None or signal.consumed_seq > last
        )


def _ended_itself(old: StoredExecution) -> bool:
    """Returns whether its own code made it fail, not its time limit, too much else under way, a
    crash or a bug.

    Only an error that a turn ended with has a position in the source.
    """
    error = load(old.error or "{}")
    from_outside = (("Timeout", {"execution": old.id}), ("LimitExceeded", REFUSED))
    return (
        old.status == FAILED
        and "at" in error
        and (error["code"], error["data"]) not in from_outside
    )


def _resolved(
    id: str, snapshot: Snapshot, outcomes: Mapping[int, Outcome], mail: Sequence[Signal]
) -> Any:
    """Returns how the interpreter resolves its await if just this has happened; None: it waits."""
    plan = snapshot.awaiting
    assert plan is not None
    machine = Machine(
        snapshot, Inputs("", "", ctx={"id": id}, outcomes=outcomes, signals=mail), DEFAULT_LIMITS
    )
    return next_completed(machine, plan)[1] if is_loop(plan) else resolve(machine, plan, Reserved())


def _begun(
    old: StoredExecution, id: str, parent_id: str | None, root_id: str, held: bool
) -> StoredExecution:
    """Returns the row of an execution as if it had been started now."""
    return old.replace(
        id=id,
        parent_id=parent_id,
        root_id=root_id,
        retry_of=None,
        status=PENDING,
        attempt=0,
        held=held,
        error=None,
        created_at=None,
        started_at=None,
        finished_at=None,
        cancel_requested_at=None,
        fence=None,
        worker=None,
        seq=0,
        statement=0,
        snapshot=None,
        owned="[]",
        awaiting="null",
        ends_alike=False,
    )


def _copied(old: StoredExecution, id: str, parent_id: str, root_id: str) -> StoredExecution:
    """Returns the row of an execution as it was.

    If it was cancelled and had not ended yet, it is cancelled now.
    """
    copy = old.replace(
        id=id,
        parent_id=parent_id,
        root_id=root_id,
        retry_of=None,
        held=False,
        owned="[]",
        awaiting="null",
    )
    if old.status >= TERMINAL:
        return copy.replace(snapshot=None, statement=0, ends_alike=True)
    return copy.replace(
        snapshot=None,
        statement=0,
        status=CANCELLED,
        error=BY_REQUEST.value,
        finished_at=old.cancel_requested_at,
    )


def _timer(old: StoredTimer, id: str, ended_at: int | None, held: bool) -> StoredTimer:
    """Returns the row of a timer: as it was, or begun again.

    It stays as it was if it had fired, or was cancelled before the execution ended.
    """
    timer = old.replace(execution_id=id)
    if old.fired_at is not None or (
        old.cancelled_at is not None and ended_at is not None and old.cancelled_at < ended_at
    ):
        return timer
    return timer.replace(fire_at=None, cancelled_at=None, anew=not held)


def _ran_until_the_end(child: StoredExecution, parent: StoredExecution) -> bool:
    """Returns whether the child ran in the background until its parent's end stopped it."""
    if child.status not in (CANCELLED, *range(TERMINAL)):
        return False
    stopped_at = child.cancel_requested_at or child.finished_at
    return stopped_at is None or (
        parent.finished_at is not None and stopped_at >= parent.finished_at
    )


def _open(snapshot: Snapshot) -> dict[int, str]:
    """Returns what it awaits: the operation behind each number.

    Numbers that a loop over `completed` has taken already are left out.
    """
    return kinds(snapshot.awaiting)


def _is_deadline(n: int, awaited: Mapping[int, str]) -> bool:
    """Returns whether this timer only limits a wait, which a retry begins again."""
    return n in awaited and KINDS[awaited[n]].row == "mailbox"


def _behind(id: str, snapshot: Snapshot) -> Iterator[tuple[int, str]]:
    """Yields the number and operation of what runs in the background under an id in a variable.

    If there is no plan for a number, only its row says what it is; it counts as a child.
    """
    plans = snapshot.locals.get(STARTED, {})
    # `$started` is read below. What is in the two others is data that was given, not an await.
    own_locals = [
        value for name, value in snapshot.locals.items() if name not in (STARTED, RESUMED, CONTEXT)
    ]
    yield from ((n, "child") for n in _named(id, own_locals) if str(n) not in plans)
    for plan in plans.values():
        yield from kinds(plan).items()


def _named(id: str, value: Any) -> Iterator[int]:
    """Yields the numbers of the children whose ids are in a value."""
    if isinstance(value, str) and re.fullmatch(re.escape(id) + r"\.[0-9]{1,17}", value):
        yield int(value[len(id) + 1 :])
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _named(id, item)


def _held(snapshot: Snapshot) -> Iterator[int]:
    """Yields the numbers that a limit of concurrency holds back, in all plans of the snapshot."""
    loops = [
        value for name, value in snapshot.locals.items() if name.startswith("$") and is_loop(value)
    ]
    for plan in (snapshot.awaiting, *snapshot.locals.get(STARTED, {}).values(), *loops):
        if plan is not None:
            yield from held_back(plan)


def _renamed(value: Any, old: str, new: str) -> Any:
    """Returns a value in which the ids of the old execution's children are those of the new one."""
    if isinstance(value, str):
        return (
            new + value[len(old) :]
            if value.startswith(f"{old}.") and re.fullmatch(r"(\.[0-9]+)+", value[len(old) :])
            else value
        )
    if isinstance(value, list):
        return [_renamed(item, old, new) for item in value]
    return (
        {key: _renamed(item, old, new) for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )
