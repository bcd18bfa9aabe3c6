"""What operators do to many executions, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.store.access import Actor
from rhythm.store.acts import terminate_acts
from rhythm.store.base import TASK, WORKFLOW
from rhythm.store.lifecycle import has_ended
from rhythm.store.operating import OperatingStore, Selection, Standing
from rhythm.store.postgres.access import PostgresAccess
from rhythm.store.postgres.connection import SQL
from rhythm.store.postgres.rows import end_of
from rhythm.store.postgres.session import alone, service, transaction
from rhythm.store.rows import records
from rhythm.store.verdicts import BY_FORCE, terminated_row

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
    def _terminate_named(self, ids: Sequence[str], actor: Actor | None) -> dict[str, bool]:
        known = self.rows.known(ids)
        live = [each for each in known if not has_ended(each.status)]
        if not live:
            return {each.id: False for each in known}
        self.db.do("mark_terminated", ids=[each.id for each in live if each.type == WORKFLOW], now=live[0].now)
        ended = self._terminate({each.id: each.parent_id for each in live})
        self._record(actor, terminate_acts(each.id for each in live if each.id in ended))
        return {each.id: each.id in ended for each in known}

    def end_terminated(self, limit: int) -> list[str]:
        tasks = dict(self._all("terminated_tasks", limit=limit))
        workflows = {} if tasks else dict(self._all("terminated_workflows", limit=limit))
        tasks = tasks or (dict(self._all("tasks_of", ids=list(workflows), limit=limit)) if workflows else {})
        workflows = workflows if len(tasks) < limit else {}  # those of whom there may be more tasks are for a later pass
        if not tasks and not workflows:
            self._forget_terminations()
            return []
        return sorted(self._end_found({**tasks, **workflows}))

    @service
    def _forget_terminations(self) -> None:
        self.db.do("forget_terminations")

    @service
    def _end_found(self, found: Mapping[str, str | None]) -> set[str]:
        return self._terminate(found)

    def _terminate(self, found: Mapping[str, str | None]) -> set[str]:
        """Ends these executions, given with their parents: which of them had not ended. Nobody below is woken: it is marked, and gets on
        no more."""
        self.rows.lock([*found, *found.values()])
        raised = {id: (seq, fence) for id, seq, fence in self.db.all("raise_context_fences", ids=sorted(found))}
        live = [each for each in self.rows.known(found) if not has_ended(each.status)]
        if not live:
            return set()
        now = live[0].now
        self._end_at_once({each.id: (*raised[each.id], each.status) for each in live if each.type == WORKFLOW}, now)
        tasks = [each.id for each in live if each.type == TASK]
        if tasks:
            self.db.do("delete_ready", ids=tasks)
        self.rows.finish([end_of(id, BY_FORCE) for id in tasks], now)
        ended = {each.id for each in live}
        self.db.do("delete_ended_ready", ids=sorted({*ended, *(id for id in found.values() if id is not None)}))
        return ended

    def _end_at_once(self, workflows: Mapping[str, tuple[int, int, int]], now: int) -> None:
        self.db.do("skip_turn", ids=list(workflows))
        self.rows.tell((terminated_row(id, seq, fence, status) for id, (seq, fence, status) in workflows.items()), now)
        self.rows.end_workflows([end_of(id, BY_FORCE, fence) for id, (_, fence, _) in workflows.items()], now, wakes=False)

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
        found = records(Standing, self._all("standing", ids=list(ids)))
        return {standing.id: standing for standing in found}


def _meant(selection: Selection) -> bytes:
    asked = [CONDITIONS[name] for name in selection.asked]
    return b"(" + SQL["execution"] + b") x WHERE " + b" AND ".join([b"parent_id IS NULL", *asked])


def _values(selection: Selection) -> dict[str, Any]:
    values = {name: getattr(selection, name) for name in CONDITIONS}
    return {**values, "statuses": list(selection.statuses), "names": list(selection.names or ())}
