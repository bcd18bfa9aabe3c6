"""The fields of filters: how each is written, what it means, and whether an index answers it.

Whoever adds a field adds a row here, and its SQL in `store/search`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from rhythm.filters.terms import ATTRIBUTE, ExecutionFilter, FilterError
from rhythm.record import Record

Kind = Literal["text", "status", "beginning", "number", "length", "span"]
STATUSES = (
    "pending", "running", "suspended", "paused", "completed", "failed", "cancelled", "blocked",
)  # fmt: skip


class Field(Record):
    """A field of filters.

    `alone`: an index answers it; a filter has at least one such term. `may_negate`: it can be
    written with a minus before it.
    """

    name: str
    kind: Kind
    example: str
    says: str  # "an execution …"
    alone: bool = True
    may_negate: bool = False


_ALL = (
    Field("status", "status", "status:failed",
        "has one of these statuses", may_negate=True),
    Field("workflow", "text", "workflow:order",
        "is of this workflow, or of this task if it was queued by itself", may_negate=True),
    Field(ATTRIBUTE, "text", "attr.customer=acme",
        "has this attribute with one of these values, compared as text", may_negate=True),
    Field("error", "text", "error:PaymentDeclined",
        "has failed, was cancelled or blocked with this code", may_negate=True),
    Field("started_by", "text", "started_by:anna",
        "was started by this person, schedule (`schedule:NAME`) or execution", may_negate=True),
    Field("id", "beginning", "id:ord-", "has an id that begins so"),
    Field("key", "beginning", "key:invoice-17", "has an idempotency key that begins so"),
    Field("age", "length", "age>2h", "was started longer (`>`) or less long ago (`<`) than this"),
    Field("created", "span", "created:2026-11-18..2026-11-19", "was started in this time"),
    Field("finished", "span", "finished:2026-11-18..2026-11-19", "has ended in this time"),
    Field("stuck", "length", "stuck>1h",
        "has not moved for longer than this, and waits for nothing that has a time"),
    Field("queue", "text", "queue:mail", "belongs to this queue", alone=False, may_negate=True),
    Field("version", "text", "version:3f2a9c", "is of this version of its workflow",
        alone=False, may_negate=True),
    Field("line", "number", "line:42",
        "waits at this line of the source of its version", alone=False),
)  # fmt: skip
FIELDS = {field.name: field for field in _ALL}
# What people write for a field, and no likeness of letters leads to.
OTHER_WORDS = {
    "name": "workflow", "by": "started_by", "user": "started_by", "code": "error",
    "state": "status", "since": "stuck", "attribute": ATTRIBUTE, "attributes": ATTRIBUTE,
    "started": "created", "ended": "finished", "type": "workflow", "task": "workflow",
}  # fmt: skip


def refuse_without_index(wanted: ExecutionFilter) -> None:
    """Raises `FilterError` for a filter that only reading every execution could answer.

    A filter without terms means everything, and that is no search.
    """
    if wanted.terms and not any(map(_is_indexed(wanted), range(len(wanted.terms)))):
        term = wanted.terms[0]
        raise FilterError(
            f"`{term}` alone would read every execution: add a term that narrows it, such as "
            f"{_others(term.field)}",
            str(wanted),
            0,
        )


def refuse_line_of_several(wanted: ExecutionFilter) -> None:
    """Raises `FilterError` for a line without the one workflow whose source has it."""
    line, workflow = wanted.of("line"), wanted.of("workflow")
    if line is not None and (workflow is None or len(workflow.values) != 1):
        raise FilterError(
            f"`{line}` needs the workflow whose source has this line: add one, such as "
            "workflow:order",
            str(wanted),
            str(wanted).index(str(line)),
        )


def _is_indexed(wanted: ExecutionFilter) -> Callable[[int], bool]:
    def indexed(place: int) -> bool:
        term = wanted.terms[place]
        # What has not one status has one of the others.
        return FIELDS[term.field].alone and (not term.negative or term.field == "status")

    return indexed


def _others(field: str) -> str:
    examples = [FIELDS[name].example for name in ("workflow", "status", "age") if name != field]
    return " or ".join(examples)
