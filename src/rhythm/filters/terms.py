"""A filter as a value: its terms, and the text that stands for it.

Printing and parsing are inverse: `parse_filter(str(f)) == f` for every filter that can be built.
Knows nothing of which fields there are.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from rhythm.record import Record

ATTRIBUTE = "attr"  # the field of attributes: `attr.NAME=VALUE`
MS, DAY_US = 1000, 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_US = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))

Op = Literal["is", "over", "under", "within"]


class FilterError(ValueError):
    """A filter cannot be read, or asks for what no index can answer.

    `at` is the position of the mistake in `text`, from 0; the message says it, too, from 1.
    """

    def __init__(self, problem: str, text: str, at: int) -> None:
        super().__init__(f"the filter is not valid at character {at + 1}: {problem}")
        self.problem, self.text, self.at = problem, text, at


class Term(Record):
    """One condition of a filter.

    - `is`: one of `values`; of an id or a key, it begins with one of them.
    - `over`, `under`: it is longer or shorter ago than `us` microseconds.
    - `within`: from `after` on and before `before`, in microseconds since 1970; None: no bound.
    """

    field: str
    op: Op = "is"
    values: tuple[str, ...] = ()
    name: str = ""  # of an attribute
    us: int = 0
    after: int | None = None
    before: int | None = None
    negative: bool = False

    def __str__(self) -> str:
        """The term as it is written."""
        return f"{'-' if self.negative else ''}{self.field}{self._rest()}"

    def _rest(self) -> str:
        match self.op:
            case "over":
                return f">{show_length(self.us)}"
            case "under":
                return f"<{show_length(self.us)}"
            case "within":
                return f":{show_span(self.after, self.before)}"
        sign = f".{quoted(self.name, ':=<>')}=" if self.field == ATTRIBUTE else ":"
        return sign + ",".join(quoted(value) for value in self.values)


class ExecutionFilter(Record):
    """Which executions are meant: those that meet all terms. Without terms: all of them."""

    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """The filter as it is written, in its canonical form."""
        return " ".join(map(str, self.terms))

    def of(self, field: str, *, negative: bool = False) -> Term | None:
        """Returns the term about this field, or None."""
        return next(
            (term for term in self.terms if (term.field, term.negative) == (field, negative)), None
        )

    def joined(self, *terms: Term) -> ExecutionFilter:
        """Returns the filter with more terms.

        Raises `ValueError` if one of them is about something that the filter speaks of already.
        """
        for term in terms:
            if any(_about(term) == _about(known) for known in self.terms):
                raise ValueError(
                    f"`{term.field}` is given twice, as {term} and in the filter {self}: "
                    "give it once"
                )
        return ExecutionFilter((*self.terms, *terms))


EVERYTHING = ExecutionFilter()


def _about(term: Term) -> tuple[str, str, bool]:
    """Returns what a term is about: a filter has one term about each thing."""
    return term.field, term.name, term.negative


def quoted(text: str, also: str = "") -> str:
    """Returns a text as it stands in a filter: in quotes if it would be read as something else.

    `also`: more characters that must stand in quotes.
    """
    plain = text.isprintable() and not text.startswith("=")  # there is no sign `:=`
    if text and plain and not set(text) & {" ", ",", '"', *also}:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def show_length(us: int) -> str:
    """Returns a length of time, of whole milliseconds, as it is written in a filter: `1h30m`."""
    rest, parts = us // MS, []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def show_span(after: int | None, before: int | None) -> str:
    """Returns a span of time as it is written in a filter: days if it is made of whole days."""
    begin = "" if after is None else _day(after) if after % DAY_US == 0 else _moment(after)
    if before is None:
        return f"{begin}.."
    end = _day(before - DAY_US) if before % DAY_US == 0 else _moment(before)
    return begin if begin == end else f"{begin}..{end}"


def _day(us: int) -> str:
    return (EPOCH + timedelta(microseconds=us)).date().isoformat()


def _moment(us: int) -> str:
    return (EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")
