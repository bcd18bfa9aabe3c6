"""What operators do to many executions, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.store.access import Act, Actor
from rhythm.store.base import CANCELLED, TASK, TERMINAL, WORKFLOW
from rhythm.store.operating import TERMINATED, OperatingStore, Selection, Standing
from rhythm.store.postgres.access import PostgresAccess
from rhythm.store.postgres.connection import SQL, AgainError
from rhythm.store.postgres.rows import End
from rhythm.store.postgres.session import alone, transaction

CONDITIONS = {
    "statuses": b"status = ANY(%(statuses)s::text[])", "workflow": b"name = %(workflow)s", "queue": b"queue = %(queue)s",
    "type": b"type = %(type)s", "created_after": b"created_at >= %(created_after)s", "created_before": b"created_at < %(created_before)s",
    "held": b"paused_at IS NOT NULL", "unheld": b"paused_at IS NULL", "unasked": b"cancel_requested_at IS NULL",
    "names": b"name = ANY(%(names)s::text[])",
    "unretried": b"NOT EXISTS (SELECT 1 FROM executions n WHERE n.retry_of = x.id)",
    "attributes": b"""NOT EXISTS (SELECT 1 FROM jsonb_each(%(attributes)s::jsonb) w
        WHERE (x.attributes::jsonb -> w.key) IS DISTINCT FROM w.value)""",
}  # fmt: skip


class PostgresOperating(PostgresAccess, OperatingStore):
    @transaction
    def terminate(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        known = self.db.all("executions_of", ids=list(ids))
        live = [row[0] for row in known if row[2] < TERMINAL]
        ended = self._terminate(live, [row[4] for row in known], known[0][-1]) if live else set()
        self._record(actor, [Act("execution.terminate", id) for id in live if id in ended])
        return {row[0]: row[0] in ended for row in known}

    def _terminate(self, ids: Sequence[str], parents: Sequence[str | None], now: int) -> set[str]:
        """Nobody makes a child of a workflow whose context we hold; what was made before we had it is looked for once more."""
        found = {id for id, _, _ in self.db.all("live_family", ids=ids)}
        self.rows.lock([*found, *parents])
        raised = {id: (seq, fence) for id, seq, fence in self.db.all("raise_context_fences", ids=sorted(found))}
        family = {id: (type, status) for id, type, status in self.db.all("live_family", ids=ids)}
        if not family.keys() <= found:
            raise AgainError
        workflows = {id: (*raised[id], status) for id, (type, status) in family.items() if type == WORKFLOW}
        self._end_at_once(workflows, now)
        self.rows.finish([End(id, CANCELLED, TERMINATED) for id, (type, _) in family.items() if type == TASK], now)
        self.db.do("delete_ready", ids=list(family))
        return set(family)

    def _end_at_once(self, workflows: Mapping[str, tuple[int, int, int]], now: int) -> None:
        self.db.do("skip_turn", ids=list(workflows))
        told = [
            dict(id=id, seq=seq + 1, fence=fence, worker="", from_status=status, to_status=CANCELLED, cause="terminated", statement=0,
                 error=TERMINATED)
            for id, (seq, fence, status) in workflows.items()
        ]  # fmt: skip
        self.db.batch("insert_history", told, now=now)
        self.rows.end_workflows([End(id, CANCELLED, TERMINATED, fence) for id, (_, fence, _) in workflows.items()], now)

    @alone
    def count(self, selection: Selection) -> tuple[int, int]:
        text = b"SELECT count(*), now_us() FROM " + _meant(selection)
        count, now = self.db.query(text, _values(selection)).fetchall()[0]
        return count, now

    @alone
    def select(self, selection: Selection, after: tuple[int, str], limit: int) -> list[tuple[int, str]]:
        order = b" AND (created_at, id) > (%(at)s, %(id)s) ORDER BY created_at, id LIMIT %(limit)s"
        values = {**_values(selection), "at": after[0], "id": after[1], "limit": limit}
        return self.db.query(b"SELECT created_at, id FROM " + _meant(selection) + order, values).fetchall()

    def standing(self, ids: Sequence[str]) -> dict[str, Standing]:
        return {row[0]: Standing(*row) for row in self._all("standing", ids=list(ids))}


def _meant(selection: Selection) -> bytes:
    asked = [CONDITIONS[name] for name in selection.asked]
    return b"(" + SQL["execution"] + b") x WHERE " + b" AND ".join([b"parent_id IS NULL", *asked])


def _values(selection: Selection) -> dict[str, Any]:
    values = {name: getattr(selection, name) for name in CONDITIONS}
    return {**values, "statuses": list(selection.statuses), "names": list(selection.names or ())}
