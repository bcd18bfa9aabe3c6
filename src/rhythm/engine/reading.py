"""What is read before the next turn of a workflow, and what the turn then knows. Pure.

A workflow may wait for thousands of things, and it is woken whenever one of them ends. So a turn is
told no more than it can use: of a group that cannot end yet, only how many of its items may begin;
for a loop over `completed`, some items that have ended first; of a mailbox that is not empty, its
first signals. What has ended stays so, and nobody else takes signals out of a mailbox: the owner of
a workflow keeps what was not used yet, and reads more when it has none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rhythm.engine.inputs import inputs_of
from rhythm.ir.awaiting import (
    Plan,
    apart_from_whole_groups,
    ends_as_a_whole,
    is_limited,
    is_loop,
    is_range,
    is_settled,
    limit_of,
    numbers,
    range_of,
    runs_in_executions,
    signal_names,
    untaken,
    untaken_among,
    whole_groups,
)
from rhythm.record import Record
from rhythm.store.interfaces.messages import Mail, MailAsked
from rhythm.store.interfaces.turns import (
    ChildOutcome,
    Loaded,
    Needed,
    NextEnded,
    NthUnfinished,
    Unfinished,
)
from rhythm.vm.machine import STARTED, Inputs, Outcome, Signal
from rhythm.vm.snapshot import Snapshot

NEXT_ITEMS = 100  # ends that are read for a loop over `completed` at a time
NEXT_SIGNALS = 200  # signals that are read at a time


class Reading(Record):
    """What is read before a turn of a workflow, and what its owner knows already."""

    id: str
    apart: tuple[int, ...]  # numbers of what is awaited one by one
    groups: tuple[Plan, ...]  # that end as a whole
    whole: bool  # whether the first of them is all that is awaited
    limited: tuple[Plan, ...]  # groups that begin only some of their items at a time
    loop: Plan | None  # over a range of numbers
    known: Mapping[int, Outcome]  # of the items of loops that were read before, and not taken yet
    mail: tuple[MailAsked, ...]
    signals: tuple[Signal, ...]  # those of other names, that were read before and not consumed

    def needed(self, unfinished: Sequence[Unfinished]) -> Iterator[Needed]:
        """Yields what must have ended before the workflow can go on.

        `unfinished`: how far its `limited` groups have come. One that has not come to its end, and
        in which nothing has failed, cannot end.
        """
        yield Needed(self.id, self.apart)
        on_its_way = {
            group["n"]
            for group, found in zip(self.limited, unfinished, strict=True)
            if found.n is not None and not (found.failed and _fails(group))
        }
        for group in self.groups:
            if group["n"] not in on_its_way:
                yield Needed(self.id, range_of(group), whole=True, fails=_fails(group))

    def unfinished(self) -> Iterator[NthUnfinished]:
        """Yields up to which item each of its `limited` groups may go."""
        for group in self.limited:
            items = range_of(group)
            yield NthUnfinished(self.id, items[0], items[-1], limit_of(group))

    def next_ended(self) -> NextEnded | None:
        """Returns which ends of items are read for the loop; None if enough of them are known."""
        if self.loop is None or any(True for _ in untaken_among(self.loop, self.known)):
            return None
        return NextEnded(self.id, untaken(self.loop), NEXT_ITEMS)

    def rest(self, outcomes: Sequence[ChildOutcome]) -> Reading:
        """Returns what is still read after the ends: no mail for a group that cannot end yet."""
        undecided = self.whole and _without_ends(self.groups[:1], outcomes)
        return self.replace(mail=()) if undecided else self


def reading(
    loaded: Loaded,
    snapshot: Snapshot,
    items: Mapping[int, Outcome] = {},
    signals: Sequence[Signal] = (),
) -> Reading:
    """Returns what must be read to know whether the workflow can go on.

    That is what it awaits, and how many items of groups with a limit of concurrency may begin, also
    of those that run in the background. `items` of loops and `signals`: what its owner has read
    before, and what no turn has used.
    """
    id = loaded.id
    plan = snapshot.awaiting
    loop = plan if plan is not None and is_loop(plan) and is_range(plan) else None
    groups = tuple(whole_groups(plan))
    started = snapshot.locals.get(STARTED, {}).values()
    behind = [kept for kept in started if is_limited(kept) and not is_settled(kept)]
    limited = {
        group["n"]: group
        for group in (*behind, *groups, *([loop] if loop else ()))
        if is_limited(group) and runs_in_executions(group)
    }
    apart = [] if loop else list(apart_from_whole_groups(plan))
    apart += [n for kept in behind if kept["n"] not in limited for n in numbers(kept)]
    known = known_of_loops(snapshot, items)
    mail = tuple(_mail_asked(id, plan, signals)) if loaded.has_mail else ()
    names = {asked.name for asked in mail}
    others = tuple(signal for signal in signals if signal.name not in names)
    return Reading(
        id,
        tuple(apart),
        groups,
        is_whole(snapshot),
        tuple(limited.values()),
        loop,
        known,
        mail,
        others,
    )


def is_whole(snapshot: Snapshot) -> bool:
    """Returns whether a workflow awaits one group that ends as a whole, and nothing else."""
    return snapshot.awaiting is not None and ends_as_a_whole(snapshot.awaiting)


def _mail_asked(id: str, plan: Plan | None, signals: Sequence[Signal]) -> Iterator[MailAsked]:
    """Yields which signals are read: of each awaited name, unless enough are known.

    A workflow that awaits no signals may do so next: for it the whole mailbox is read, unless some
    signals are known.
    """
    names = signal_names(plan)
    if not names:
        if not signals:
            yield MailAsked(id, None, NEXT_SIGNALS)
        return
    known = Counter(signal.name for signal in signals)
    for name, count in names.items():
        if known[name] < count:
            yield MailAsked(id, name, max(count, NEXT_SIGNALS))


def known_of_loops(snapshot: Snapshot, items: Mapping[int, Outcome]) -> dict[int, Outcome]:
    """Returns those of the ends that the loops over `completed` of a workflow will take."""
    if not items:
        return {}
    loops = [
        plan
        for plan in (snapshot.awaiting, *snapshot.locals.values())
        if plan is not None and is_loop(plan) and is_range(plan)
    ]
    return {n: items[n] for loop in loops for n in untaken_among(loop, items)}


def inputs_read(
    loaded: Loaded,
    snapshot: Snapshot,
    read: Reading,
    outcomes: Sequence[ChildOutcome],
    unfinished: Sequence[Unfinished],
    items: Sequence[ChildOutcome] | None,
    mail: Iterable[Mail],
    seed: str,
) -> Inputs:
    """Returns everything that a turn of the workflow may know, of what was read for it.

    - `unfinished`: how far its `limited` groups have come, and so up to which item each may go.
    - `items`: the ends of items of its loop; None if none were read.
    """
    may_begin = {
        group["n"]: len(range_of(group)) if found.n is None else range_of(group).index(found.n) + 1
        for group, found in zip(read.limited, unfinished, strict=True)
    }
    plan = snapshot.awaiting
    # Of the items of a loop, those that were read may not be all that have ended.
    partly = read.loop is not None and (items is None or len(items) == NEXT_ITEMS)
    awaited = [] if plan is None or partly else [plan["n"]]
    inputs = inputs_of(loaded, snapshot, (*outcomes, *(items or ())), mail, seed, loaded.now)
    return inputs.replace(
        outcomes={**read.known, **inputs.outcomes},
        firsts={*read.known, *(item.n for item in items or ())},
        signals=(*read.signals, *inputs.signals),
        read=_names_read(read.mail, inputs.signals) if loaded.has_mail else None,
        asked={*read.apart, *awaited, *(group["n"] for group in read.groups)},
        undecided=_without_ends(read.groups, outcomes),
        may_begin=may_begin,
    )


def _fails(group: Plan) -> bool:
    """Returns whether a failure of one item ends a group that ends as a whole."""
    return not group.get("settle")


def _names_read(asked: Sequence[MailAsked], signals: Sequence[Signal]) -> frozenset[str] | None:
    """Returns the names of which all signals were read; None: all names."""
    if any(each.name is None and len(signals) < each.limit for each in asked):
        return None
    found = Counter(signal.name for signal in signals)
    return frozenset(each.name for each in asked if each.name and found[each.name] < each.limit)


def _without_ends(groups: Sequence[Plan], outcomes: Sequence[ChildOutcome]) -> frozenset[int]:
    """Returns the groups none of whose ends were read: the store reads all of them, or none."""
    if not groups:
        return frozenset()
    ended = sorted(outcome.n for outcome in outcomes)

    def has_some(group: Plan) -> bool:
        numbers = range_of(group)
        at = bisect_left(ended, numbers[0])
        return at < len(ended) and ended[at] in numbers

    return frozenset(group["n"] for group in groups if not has_some(group))
