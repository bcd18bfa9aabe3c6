"""Starting, ending and retrying executions on SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rhythm.store.access import Actor
from rhythm.store.acts import cancel_acts, replaced_acts, retry_acts, terminate_acts
from rhythm.store.blobs import inline
from rhythm.store.interfaces.executions import (
    ExecutionStore,
    Family,
    NewExecution,
    OutdatedError,
    Reach,
    Retry,
    Started,
    StoredExecution,
    StoredSignal,
    StoredTimer,
    asked_by,
    family_range,
    refuse_conflicts,
    refuse_large,
)
from rhythm.store.interfaces.turns import SHORT_ERROR
from rhythm.store.lifecycle import WORKFLOW, OnConflict, StatusNumber, has_ended
from rhythm.store.provenance import provenance_of
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import SQL
from rhythm.store.verdicts import BY_FORCE, begins, has_turn, terminated_row, unfinished


class SqliteExecutions(SqliteRole, ExecutionStore):
    def start(
        self,
        executions: Sequence[NewExecution],
        on_conflict: OnConflict = "return",
        actor: Actor | None = None,
    ) -> list[Started]:
        with self.db.transaction():
            now = self.db.clock()
            replaced = [
                id
                for new in executions
                if on_conflict == "replace"
                for id in self._let_go_of_key(new, now)
            ]
            started = self.rows.start_all(executions, now)
            refuse_conflicts(executions, started, on_conflict)
            if any(found.created for found in started):
                self.auditor.authorise(actor, now)
            self.auditor.add(actor, replaced_acts(replaced), now)
            return started

    def start_alike(
        self,
        alike: NewExecution,
        inputs: Mapping[str, str],
        actor: Actor | None = None,
        if_current: bool = False,
    ) -> None:
        with self.db.transaction():
            if if_current and self.db.one("current_version", alike.name) != (alike.version,):
                raise OutdatedError
            now = self.db.clock()
            self.rows.start_alike(alike, inputs, now)
            self.auditor.authorise(actor, now)

    def _let_go_of_key(self, new: NewExecution, now: int) -> list[str]:
        """Cancels the executions that have the key of the new one, and takes the key from them.
        Returns the ids of those that had not ended."""
        keyed = [id for (id,) in self.db.all("keyed", new.name, new.key)]
        cancelled = [id for id in keyed if self.rows.cancel(id, self.rows.find(id), now)]
        for id in keyed:
            self.db.all("let_go_of_key", id)
        return cancelled

    def cancel(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        with self.db.transaction():
            now = self.db.clock()
            asked = {
                id: self.rows.cancel(id, known, now)
                for id in dict.fromkeys(ids)
                if (known := self.rows.find(id))
            }
            self.auditor.record(
                actor, cancel_acts(id for id, changed in asked.items() if changed), now
            )
            return asked

    def _terminate_named(self, ids: Sequence[str], actor: Actor | None) -> dict[str, bool]:
        with self.db.transaction():
            now = self.db.clock()
            known = {id: self.rows.find(id) for id in sorted(ids)}
            live = {
                id: found for id, found in known.items() if found and not has_ended(found.status)
            }
            workflows = {id: found.status for id, found in live.items() if found.type == WORKFLOW}
            for id in workflows:
                self.db.all("mark_terminated", {"id": id, "now": now})
            self._terminate(workflows, [id for id in live if id not in workflows], now)
            self.auditor.record(
                actor, terminate_acts(id for id in dict.fromkeys(ids) if id in live), now
            )
            return {id: id in live for id in ids if known[id]}

    def end_terminated(self, limit: int) -> list[str]:
        with self.db.transaction():
            tasks = [id for (id,) in self.db.all("terminated_tasks", limit)]
            workflows = {} if tasks else dict(self.db.all("terminated_workflows", limit))
            tasks = tasks or [
                id for (id,) in self.db.all("tasks_of", json.dumps(list(workflows)), limit)
            ]
            # Workflows that may have more tasks are left for a later pass.
            workflows = workflows if len(tasks) < limit else {}
            if not tasks and not workflows:
                self.db.all("forget_terminations")
            self._terminate(workflows, tasks, self.db.clock())
            return [*tasks, *workflows]

    def _terminate(
        self, workflows: Mapping[str, StatusNumber], tasks: Sequence[str], now: int
    ) -> None:
        """Ends these executions. Their owners find a newer fence, or no row.

        Nothing below them is woken: it is marked, and cannot go on.
        """
        for id, status in workflows.items():
            self._end_at_once(id, status, now)
        for id in tasks:
            self.db.all("delete_ready", id)
            self.rows.finish(id, BY_FORCE, now)
        for id in workflows:
            self.db.all("delete_ready", id)
        self.db.all("delete_ended_ready", json.dumps([*tasks, *workflows]))

    def _end_at_once(self, id: str, status: StatusNumber, now: int) -> None:
        fence = self.db.one("next_fence")[0]
        seq = self.db.one("raise_context_fence", fence, id)[0]
        self.db.all("skip_turn", id)
        self.rows.write_history([terminated_row(id, seq, fence, status)], now)
        self.rows.end_workflow(id, BY_FORCE, now, fence, None, wakes=False)

    def retry(
        self,
        id: str,
        plan: Callable[[Family], Family],
        actor: Actor | None = None,
        whole: bool = True,
    ) -> Started | None:
        with self.db.transaction():
            if running := unfinished(self.retries(id)):
                return Started(running, created=False)
            family = self._family(id, Reach.by(self.rows.limits), self.db.all, whole)
            if not family.executions:
                return None
            started = self._store_family(asked_by(plan(family), provenance_of(actor)))
            now = self.db.clock()
            self.db.all("copy_contributors", {"id": started.id, "retry_of": id, "now": now})
            self.rows.contribute(started.id, provenance_of(actor).contributors, now)
            self.auditor.record(actor, retry_acts(id, started.id), now)
            return started

    def _store_family(self, family: Family) -> Started:
        now = self.db.clock()
        for row in family.executions:
            values = fields(row) | {"now": now}
            self.db.all("insert_stored", values)
            if row.type == WORKFLOW:
                self.db.all("insert_stored_context", values | {"snapshot": inline(row.snapshot)})
                self.rows.insert_blob(row.id, row.snapshot)
            if has_turn(row.type, row.status):
                self.db.all("insert_stored_history", values)
            if begins(row.status, row.held):
                self.rows.make_ready([row], now)
        self.rows.index_attributes([family.executions[0].id])  # the others are no roots
        for name, rows in (
            ("insert_stored_timer", family.timers),
            ("insert_stored_signal", family.signals),
        ):
            for item in rows:
                self.db.all(name, fields(item) | {"now": now})
        return Started(family.executions[0].id, created=True)

    def family(self, id: str, reach: Reach, whole: bool = True) -> Family:
        return self._family(id, reach, lambda name, args: self.db.read(SQL[name], args), whole)

    def _family(
        self, id: str, reach: Reach, read: Callable[[str, Any], list[Any]], whole: bool = True
    ) -> Family:
        asked = family_range(id, whole)
        ((rows, size),) = read("family_size", asked | {"most": reach.rows + 1})
        refuse_large(id, reach, rows, size)
        return Family(
            tuple(records(StoredExecution, read("family", asked | {"short": SHORT_ERROR}))),
            tuple(records(StoredTimer, read("family_timers", asked))),
            tuple(records(StoredSignal, read("family_signals", asked))),
            tuple(self.retries(id)),
        )

    def retries(self, id: str) -> list[Retry]:
        return records(Retry, self.db.all("retries", id))
