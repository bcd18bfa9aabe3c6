"""Which lines of a root are kept, and at which positions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from rhythm.limits import LOGS, LogLimits
from rhythm.record import Record
from rhythm.store.interfaces.logs import LOG, LogLine, LogTotals, NewLine, RootLines

Identity = tuple[str, int, int]  # of a line: its execution, turn and number


class Admitted(Record):
    """The lines of one root that are kept, as they are stored, and its totals after that."""

    lines: Sequence[LogLine]
    totals: LogTotals


def identity(line: NewLine | LogLine) -> Identity:
    """Returns what two writings of one line have in common."""
    return line.execution_id, line.turn, line.n


def size_of_line(line: NewLine | LogLine) -> int:
    """Returns the bytes that count against the limit of a root."""
    return len(line.message.encode()) + len((line.fields or "").encode())


def admit(
    given: RootLines,
    totals: LogTotals,
    now_us: int,
    known: frozenset[Identity] = frozenset(),
    limits: LogLimits = LOGS,
) -> Admitted:
    """Returns which lines are kept, behind those that are there.

    A line that is `known` is there already, so the whole was written before. Once a line is dropped
    for its size, shorter ones may still be kept: each is judged by itself.
    """
    lines, size, dropped = totals.lines, totals.bytes, 0
    kept, position = list[LogLine](), max(totals.position, now_us - 1)
    for line in given.lines:
        if identity(line) in known:
            continue
        its = size_of_line(line)
        most = limits.lines + (0 if line.kind == LOG else limits.progress)
        if lines >= most or size + its > limits.bytes:
            dropped += 1
            continue
        lines, size, position = lines + 1, size + its, position + 1
        kept.append(_stored(line, given.root_id, position, now_us))
    last = kept[-1].position if kept else totals.position
    again = any(identity(line) in known for line in given.lines)
    count = totals.dropped + (0 if again else given.dropped + dropped)
    after = LogTotals(given.root_id, lines, size, count, last)
    return Admitted(kept, after)


def _stored(line: NewLine, root_id: str, position: int, now_us: int) -> LogLine:
    fields = {name: getattr(line, name) for name in NewLine._fields if name != "age_us"}
    return LogLine(root_id=root_id, position=position, at=now_us - line.age_us, **fields)


def pruned_at_once(lines: Iterable[int], limits: LogLimits = LOGS) -> int:
    """Returns of how many roots lines are deleted together, given how many each has: one at
    least."""
    fitting: Iterator[bool] = (total <= limits.pruned for total in accumulate(lines))
    return max(1, sum(fitting))
