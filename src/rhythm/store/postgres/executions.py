"""Starts, cancels, terminations and retries on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rhythm.store.access import Actor
from rhythm.store.acts import cancel_acts, replaced_acts, retry_acts, terminate_acts
from rhythm.store.blobs import inline, is_large
from rhythm.store.interfaces.executions import (
    ExecutionStore,
    Family,
    NewExecution,
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
from rhythm.store.lifecycle import TASK, WORKFLOW, OnConflict, StatusNumber, has_ended
from rhythm.store.postgres.connection import AgainError
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import end_of
from rhythm.store.postgres.session import service, transaction
from rhythm.store.provenance import provenance_of
from rhythm.store.rows import fields, records
from rhythm.store.verdicts import BY_FORCE, begins, has_turn, terminated_row, unfinished


class PostgresExecutions(PostgresRole, ExecutionStore):
    def start(
        self,
        executions: Sequence[NewExecution],
        on_conflict: OnConflict = "return",
        actor: Actor | None = None,
    ) -> list[Started]:
        simple = _is_one_statement(executions, on_conflict, actor)
        run = self.db.autocommit if simple else self.db.transaction
        return run(lambda: self._start(executions, on_conflict, actor))

    def _start(
        self, executions: Sequence[NewExecution], on_conflict: OnConflict, actor: Actor | None
    ) -> list[Started]:
        replaced = self._let_go_of_keys(executions) if on_conflict == "replace" else []
        created = self.rows.start(executions, None, actor)
        if len(created) == len(executions):
            self.auditor.add(actor, replaced_acts(replaced), None)
            return [Started(new.id, created=True) for new in executions]
        started = self.rows.existing(executions, created)
        if on_conflict == "replace" and any(
            found.id != new.id for new, found in zip(executions, started, strict=True)
        ):
            # Another start has taken the key meanwhile, and its execution must be replaced, too.
            raise AgainError
        refuse_conflicts(executions, started, on_conflict)
        return started

    def start_alike(
        self,
        alike: NewExecution,
        inputs: Mapping[str, str],
        actor: Actor | None = None,
        if_current: bool = False,
    ) -> None:
        simple = _is_one_statement([alike], "return", actor)
        run = self.db.autocommit if simple else self.db.transaction
        run(lambda: self.rows.start_alike(alike, inputs, actor, if_current))

    def _let_go_of_keys(self, executions: Sequence[NewExecution]) -> list[str]:
        """Cancels the executions that have the keys of the new ones, and takes the keys from them.
        Returns the ids of those that had not ended."""
        keyed = [
            id
            for (id,) in self.db.batch(
                "keyed", [dict(name=new.name, key=new.key) for new in executions]
            )
        ]
        cancelled = self.rows.cancel(keyed) if keyed else {}
        if keyed:
            self.db.do("let_go_of_keys", ids=sorted(keyed))
        return [id for id in keyed if cancelled.get(id)]

    @transaction
    def cancel(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        asked = self.rows.cancel(ids)
        self.auditor.record(actor, cancel_acts(id for id, changed in asked.items() if changed))
        return asked

    @transaction
    def _terminate_named(self, ids: Sequence[str], actor: Actor | None) -> dict[str, bool]:
        known = self.rows.known(ids)
        live = [each for each in known if not has_ended(each.status)]
        if not live:
            return {each.id: False for each in known}
        self.db.do(
            "mark_terminated",
            ids=[each.id for each in live if each.type == WORKFLOW],
            now=live[0].now,
        )
        ended = self._terminate({each.id: each.parent_id for each in live})
        self.auditor.record(actor, terminate_acts(each.id for each in live if each.id in ended))
        return {each.id: each.id in ended for each in known}

    def _terminate(self, found: Mapping[str, str | None]) -> set[str]:
        """Ends these executions, given with their parents. Returns the ids of those that had not
        ended.

        Nothing below them is woken: it is marked, and cannot go on.
        """
        self.rows.lock([*found, *found.values()])
        raised = {
            id: (seq, fence)
            for id, seq, fence in self.db.all("raise_context_fences", ids=sorted(found))
        }
        live = [each for each in self.rows.known(found) if not has_ended(each.status)]
        if not live:
            return set()
        now = live[0].now
        self._end_at_once(
            {each.id: (*raised[each.id], each.status) for each in live if each.type == WORKFLOW},
            now,
        )
        tasks = [each.id for each in live if each.type == TASK]
        if tasks:
            self.db.do("delete_ready", ids=tasks)
        self.rows.finish([end_of(id, BY_FORCE) for id in tasks], now)
        ended = {each.id for each in live}
        self.db.do(
            "delete_ended_ready",
            ids=sorted({*ended, *(id for id in found.values() if id is not None)}),
        )
        return ended

    def _end_at_once(
        self, workflows: Mapping[str, tuple[int, int, StatusNumber]], now: int
    ) -> None:
        self.db.do("skip_turn", ids=list(workflows))
        self.rows.write_history(
            (
                terminated_row(id, seq, fence, status)
                for id, (seq, fence, status) in workflows.items()
            ),
            now,
        )
        self.rows.end_workflows(
            [end_of(id, BY_FORCE, fence) for id, (_, fence, _) in workflows.items()],
            now,
            wakes=False,
        )

    def end_terminated(self, limit: int) -> list[str]:
        tasks = dict(self.db.ask("terminated_tasks", limit=limit))
        workflows = {} if tasks else dict(self.db.ask("terminated_workflows", limit=limit))
        tasks = tasks or (
            dict(self.db.ask("tasks_of", ids=list(workflows), limit=limit)) if workflows else {}
        )
        # Workflows that may have more tasks are left for a later pass.
        workflows = workflows if len(tasks) < limit else {}
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

    @transaction
    def retry(
        self,
        id: str,
        plan: Callable[[Family], Family],
        actor: Actor | None = None,
        whole: bool = True,
    ) -> Started | None:
        self.db.do("lock_execution", id=id)
        if running := unfinished(records(Retry, self.db.all("retries", id=id))):
            return Started(running, created=False)
        family = self._family(id, Reach.by(self.rows.limits), whole)
        if not family.executions:
            return None
        started = self._store_family(asked_by(plan(family), provenance_of(actor)))
        now = self.db.now()
        self.db.do("copy_contributors", id=started.id, retry_of=id, now=now)
        self.rows.contribute([(started.id, provenance_of(actor).contributors)], now)
        self.auditor.record(actor, retry_acts(id, started.id), now)
        return started

    def _family(self, id: str, reach: Reach, whole: bool = True) -> Family:
        asked = family_range(id, whole)
        ((rows, size),) = self.db.all("family_size", **asked, most=reach.rows + 1)
        refuse_large(id, reach, rows, size)
        return Family(
            tuple(records(StoredExecution, self.db.all("family", **asked, short=SHORT_ERROR))),
            tuple(records(StoredTimer, self.db.all("family_timers", **asked))),
            tuple(records(StoredSignal, self.db.all("family_signals", **asked))),
            tuple(records(Retry, self.db.all("retries", id=id))),
        )

    def _store_family(self, family: Family) -> Started:
        now, rows = self.db.now(), [fields(row) for row in family.executions]
        self.db.batch("insert_stored", rows, now=now)
        workflows = [row for row in rows if row["type"] == WORKFLOW]
        contexts = [row | {"snapshot": inline(row["snapshot"])} for row in workflows]
        self.db.batch("insert_stored_contexts", contexts, now=now)
        self.rows.insert_blobs({row["id"]: row["snapshot"] for row in workflows})
        turned = [row for row in workflows if has_turn(row["type"], row["status"])]
        self.db.batch("insert_stored_history", turned, now=now)
        ready = [
            row | dict(kind=row["type"], delay_us=0)
            for row in rows
            if begins(row["status"], row["held"])
        ]
        self.rows.make_ready(ready, now)
        self.db.batch("insert_stored_timers", [fields(timer) for timer in family.timers], now=now)
        self.db.batch("insert_stored_signals", [fields(signal) for signal in family.signals])
        return Started(family.executions[0].id, created=True)

    @transaction
    def family(self, id: str, reach: Reach, whole: bool = True) -> Family:
        return self._family(id, reach, whole)

    def retries(self, id: str) -> list[Retry]:
        return records(Retry, self.db.ask("retries", id=id))


def _is_one_statement(
    executions: Sequence[NewExecution], on_conflict: OnConflict, actor: Actor | None
) -> bool:
    """Returns whether one statement does the whole start, so that it needs no transaction: nothing
    is refused after it, and no other table is written."""
    refuses = on_conflict != "return" and len(executions) > 1
    checked = actor is not None and actor.token is not None
    return not (refuses or checked or on_conflict == "replace") and not any(
        new.contributors or is_large(new.snapshot) for new in executions
    )
