"""Which executions a caller means: the filter that was given, joined with options, as a selection.

Lists, counts and bulk acts come here, so that a filter means the same to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rhythm.app.checks import valid_attributes, valid_name
from rhythm.engine.payload import dump
from rhythm.filters.fields import STATUSES, refuse_line_of_several, refuse_without_index
from rhythm.filters.parse import parse_filter, term_of
from rhythm.filters.terms import ATTRIBUTE, ExecutionFilter, Term
from rhythm.limits import TEXTS
from rhythm.permissions import Scope
from rhythm.record import Record
from rhythm.schedule_times import us_of
from rhythm.store.interfaces.operating import Selection

if TYPE_CHECKING:
    from rhythm.app.context import AppContext

MAX_VERSIONS = 100  # of a workflow, newest first, in which a line is looked for


class Meant(Record):
    """The conditions that a call was given apart from its filter."""

    workflow: str | None = None
    status: str | None = None
    queue: str | None = None
    created_before: datetime | str | None = None
    created_after: datetime | str | None = None
    attributes: Mapping[str, Any] | None = None

    @property
    def given(self) -> bool:
        """Whether there is any condition."""
        return any(getattr(self, name) is not None for name in self._fields)

    def terms(self) -> Iterator[Term]:
        """Yields the conditions as terms. Raises `ValueError` if one is not valid."""
        if self.workflow is not None:
            yield term_of("workflow", [valid_name(self.workflow, "a workflow's name")])
        if self.status is not None:
            yield Term("status", values=(self.status,))
        if self.queue is not None:
            yield term_of("queue", [valid_name(self.queue, "a queue")])
        after = _time_us(self.created_after, "created_after")
        before = _time_us(self.created_before, "created_before")
        if after is not None or before is not None:
            yield Term("created", "within", after=after, before=before)
        for name, value in (self.attributes or {}).items():
            yield from _attribute(name, value)

    def exactly(self) -> str:
        """Returns the attributes as JSON: their values are compared as what they are, too.

        Raises `ValueError` for a value that is not plain.
        """
        return _plain(self.attributes or {})


def valid_status(status: str | None) -> str | None:
    """Returns the status. Raises `ValueError` if there is none of this name."""
    if status is not None and status not in STATUSES:
        raise ValueError(f"status is one of {', '.join(STATUSES)}, not {status!r:.80}")
    return status


def selection_of(
    context: AppContext,
    query: str | None,
    meant: Meant,
    scope: Scope = None,
    *,
    indexed: bool = True,
) -> Selection:
    """Returns the executions in this scope that a filter and other conditions select.

    Raises `ValueError` if something is not valid or given twice, or (with `indexed`) if no index
    answers it.
    """
    given = parse_filter("" if query is None else query)
    exactly = meant.exactly()
    wanted = given.joined(*meant.terms()) if meant.given else given
    refuse_line_of_several(wanted)
    if indexed:
        refuse_without_index(wanted)
    names = context.names_in(scope)
    return Selection(wanted, exactly, names=names, lines=_lines(context, wanted, names))


def _lines(
    context: AppContext, wanted: ExecutionFilter, names: tuple[str, ...] | None
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Returns the statements on the lines of a filter, for each version of its workflow.

    Of a workflow out of scope there are none, as of one that does not exist.
    """
    line, workflow = wanted.of("line"), wanted.of("workflow")
    if line is None or workflow is None:
        return ()
    (name,), lines = workflow.values, frozenset(map(int, line.values))
    if names is not None and name not in names:
        return ()
    versions = context.store.definitions.versions(name, MAX_VERSIONS)
    return tuple((version, _statements(context, name, version, lines)) for version in versions)


def _statements(
    context: AppContext, name: str, version: str, lines: frozenset[int]
) -> tuple[int, ...]:
    """Returns the statements of a version that begin on one of these lines of its source."""
    from rhythm.lang.source import Source

    definition = context.store.definitions.get(name, version)
    program = context.programs.get(context.store, name, version)
    if definition is None or program is None:
        return ()
    source = Source(definition.file or definition.name, definition.source)
    ats = (getattr(instruction, "at", 0) for instruction in program.code)
    return tuple(n for n, at in enumerate(ats) if source.lines_of(at, at)[0] in lines)


def _attribute(name: str, value: Any) -> Iterator[Term]:
    """Yields the term for an attribute, if it can be searched for."""
    text = value if isinstance(value, str) else dump(value, "an attribute")
    if name and len(text.encode()) <= TEXTS.searched_bytes:
        yield term_of(ATTRIBUTE, [text], name)


def _time_us(value: datetime | str | None, what: str) -> int | None:
    if value is None:
        return None
    try:
        short = isinstance(value, datetime) or len(value) <= TEXTS.time
        at = (
            value
            if isinstance(value, datetime)
            else datetime.fromisoformat(value)
            if short
            else None
        )
    except (TypeError, ValueError):
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(
            f"{what} is a time with its zone, such as 2026-03-01T12:00:00Z, not {value!r:.80}"
        )
    return us_of(at)


def _plain(attributes: Mapping[str, Any]) -> str:
    """Returns the attributes as JSON text. Raises `ValueError` for a value that is not plain."""
    for key, value in attributes.items():
        if not isinstance(value, str | int | float | bool | None):
            raise ValueError(
                f"attributes are compared with texts, numbers, true, false and null; "
                f"{key!r:.80} is none of them"
            )
    return valid_attributes(attributes)
