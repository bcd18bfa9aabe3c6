"""The audit of an application: what was done by whom, and the proof that the record was not
changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rhythm.app.checks import LARGEST_PAGE, at_least, page_of, valid_name
from rhythm.app.views import PageOf, as_json, moment
from rhythm.engine.payload import load
from rhythm.record import Record
from rhythm.store.access import AuditRow, Filter, Head

if TYPE_CHECKING:
    from rhythm.app.context import AppContext

# A part of the audit that is verified ends after this many characters of details, however few rows
# it has.
CHECKED_SIZE = 16_000_000
# The end of the year 9999. If somebody wrote a row by hand, its time may be any number.
LAST_US = 253_402_300_799_000_000
HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class AuditView(Record):
    """A recorded act.

    `prev` is the hash of the row before. The hash of a row is made of `at_us` and `detail_text`,
    not of `at` and `detail`, which say the same in another form.
    """

    n: int
    at: datetime
    actor: str
    token: str | None  # the token's id
    source: str  # an address, cli or python
    action: str
    object: str
    detail: Any
    prev: str
    hash: str
    at_us: int  # microseconds since 1970
    detail_text: str  # JSON, as it is stored

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class AuditPage(PageOf[AuditView]):
    """One page of acts, newest first: a sequence of them.

    `cursor` asks for the next page, with older acts; None means that there are no more.
    """


class AuditCheck(Record):
    """The result of a check of the audit.

    Keep the `head` in a place that cannot be changed by people who can change the database.
    """

    rows: int  # rows that were read
    head: str  # number and hash of the last row
    problems: tuple[str, ...]  # the first problems that were found
    broken: int  # how many problems there are
    # where the next check begins: the last row that was read, as a head; None: it was the end
    next: str | None = None

    @property
    def intact(self) -> bool:
        """Whether nothing that was read has been changed."""
        return not self.broken

    def as_json(self) -> dict[str, Any]:
        """`intact` and all fields as JSON values."""
        return {"intact": self.intact, **as_json(self)}


class Audit:
    """The audit: what was done by whom. Calling it returns a page of acts."""

    def __init__(self, context: AppContext) -> None:
        self._store = context.store

    def __call__(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        object: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        most_bytes: int | None = None,
    ) -> AuditPage:
        """Returns a page of what was done by whom, newest first.

        Give the `cursor` of a page to get the next one. A page ends early when it has `most_bytes`.
        """
        limit = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
        asked = {"actor": actor, "action": action, "object": object}
        words = {
            what: None if value is None else valid_name(value, what)
            for what, value in asked.items()
        }
        rows, more = page_of(
            self._store.access.audit(Filter(**words, before=_place(cursor)), limit + 1, most_bytes),
            limit,
        )
        return AuditPage(tuple(audit_view(row) for row in rows), str(rows[-1].n) if more else None)

    def verify(
        self, head: str | None = None, *, after: str | None = None, limit: int | None = None
    ) -> AuditCheck:
        """Reads the audit, and returns what is wrong with its chain.

        Give the `head` that an earlier check returned: the rows up to it must still be the same.
        Without a head, somebody who can change the database can write the whole chain anew, or cut
        off its end, and nobody can tell.

        A long chain is read in parts: at most `limit` rows, beginning after the row `after`. That
        is the `next` of the check before, or a head that was kept; what lies before it is not read,
        except for the row of the `head`. Raises `ValueError` if `head` or `after` is not a head.
        """
        known, begin = (None if given is None else known_head(given) for given in (head, after))
        size = None if limit is None else CHECKED_SIZE
        found = self._store.access.audit_chain(
            known, begin, None if limit is None else at_least(limit, 1, "limit"), size
        )
        problems = tuple(message for _, message in found.problems)
        return AuditCheck(
            found.rows,
            str(found.head),
            problems,
            found.broken,
            None if found.ended else str(found.last),
        )

    def export(self, after: int = 0) -> Iterator[AuditRow]:
        """Yields all rows after this number, oldest first, as they are stored and hashed."""
        while rows := self._store.access.audit_after(after, LARGEST_PAGE):
            yield from rows
            after = rows[-1].n


def audit_view(row: AuditRow) -> AuditView:
    """Returns a row of the audit as callers see it."""
    who = (row.actor, row.token, row.source, row.action, row.object)
    return AuditView(
        row.n,
        moment(min(max(row.at, 0), LAST_US)),
        *who,
        _loaded(row.detail),
        row.prev,
        row.hash,
        row.at,
        row.detail,
    )


def _loaded(detail: str) -> Any:
    """Returns the detail, or None if it is not JSON: somebody may have written the row by hand."""
    try:
        return load(detail)
    except ValueError:
        return None


def known_head(text: str) -> Head:
    """Returns a head from its text, as `AuditCheck` has it. Raises `ValueError` for other texts."""
    form = HEAD.fullmatch(text) if isinstance(text, str) else None
    if form is None:
        raise ValueError(
            f"{text!r:.80} is not the head of an audit: it looks like 42:5f3a…, with 64 "
            f"digits after the colon"
        )
    return Head(int(form[1]), form[2])


def _place(cursor: str | None) -> int | None:
    """Returns the number in a cursor. Raises `ValueError` if it is not a cursor."""
    if cursor is None:
        return None
    if (
        not isinstance(cursor, str)
        or not cursor.isascii()
        or not cursor.isdigit()
        or len(cursor) > 18
    ):
        raise ValueError(f"{cursor!r:.80} is not the cursor of a page: use one that a page has")
    return int(cursor)
