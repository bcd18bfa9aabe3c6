"""Turns on SQLite: what their owners read, and the group commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from rhythm.errors import StoreError
from rhythm.ids import child_id
from rhythm.store.interfaces.turns import (
    BRIEF_OUTCOME,
    ChildOutcome,
    Committed,
    Loaded,
    Needed,
    NextEnded,
    NthUnfinished,
    TaskEnd,
    TurnCommit,
    TurnStore,
    Unfinished,
    brief_outcome,
)
from rhythm.store.lifecycle import Completion
from rhythm.store.rows import fields, records, records_with
from rhythm.store.sqlite.auditing import SqliteAuditor
from rhythm.store.sqlite.exchange import SqliteExchange
from rhythm.store.sqlite.flush import SqliteFlush
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.rows import SqliteRows
from rhythm.store.sqlite.session import SQL, SqliteSession


class SqliteTurns(SqliteRole, TurnStore):
    def __init__(
        self, db: SqliteSession, rows: SqliteRows, auditor: SqliteAuditor, exchange: SqliteExchange
    ) -> None:
        super().__init__(db, rows, auditor)
        self.flush = SqliteFlush(db, rows, auditor, exchange)

    def load(self, ids: Sequence[str]) -> list[Loaded]:
        return records(Loaded, self.db.all("load", json.dumps(list(ids))))

    def cancelled(self, ids: Sequence[str]) -> set[str]:
        return {id for (id,) in self.db.read(SQL["cancelled"], (json.dumps(list(ids)),))}

    def outcomes(
        self, needed: Sequence[Needed], brief: bool = False
    ) -> dict[str, list[ChildOutcome]]:
        found: dict[str, list[ChildOutcome]] = {need.id: [] for need in needed}
        decided = [
            need
            for need in needed
            if not need.whole or len(need.numbers) == 1 or self._all_ended(need)
        ]
        numbers = [(need.id, n) for need in decided for n in need.numbers]
        if not numbers:
            return found
        asked = {
            "ended_children": (json.dumps([child_id(id, n) for id, n in numbers]),),
            "ended_waits": {"numbers": json.dumps(numbers)},
        }
        for name, args in asked.items():
            rows = (
                self.db.read(f"SELECT {BRIEF_OUTCOME} FROM ({SQL[name]})", args)
                if brief
                else self.db.run(SQL[name], args)[0]
            )
            for outcome, id in records_with(ChildOutcome, rows, "id"):
                found[id].append(brief_outcome(outcome) if brief else outcome)
        return found

    def _all_ended(self, need: Needed) -> bool:
        """Returns whether the workflow can go on: all needed children have ended or, if one failure
        is enough, one has failed.

        It is one index look-up that stops at the first unfinished child.
        """
        first, last = need.numbers[0], need.numbers[-1]
        if not self.db.all("unfinished_child", need.id, first, last):
            return True
        return need.fails and bool(self.db.all("failed_child", need.id, first, last))

    def next_ended(self, asked: Sequence[NextEnded]) -> dict[str, list[ChildOutcome]]:
        found = {
            each.id: self.db.all("next_ended", fields(each) | {"ranges": json.dumps(each.ranges)})
            for each in asked
        }
        return {
            id: [outcome for outcome, _ in records_with(ChildOutcome, rows, "id")]
            for id, rows in found.items()
        }

    def nth_unfinished(self, asked: Sequence[NthUnfinished]) -> list[Unfinished]:
        found = (self.db.first(Unfinished, "nth_unfinished", fields(each)) for each in asked)
        return [each for each in found if each]

    def commit(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]
    ) -> tuple[list[Committed], set[str]]:
        if len({turn.id for turn in turns}) < len(turns):
            raise ValueError("a commit takes one turn of each workflow")
        with self.db.transaction():
            now = self.db.clock()
            accepted = self.flush.end_tasks(ends, now)
            return self.flush.commit_turns(turns, now, alone=not accepted), accepted

    def complete_within(self, work: Callable[[Any], TaskEnd | None]) -> Completion:
        raise StoreError(
            "transactional tasks need PostgreSQL: SQLite has one writer, who would wait "
            "for the handler"
        )

    def witness(self, id: str, seq: int) -> int | None:
        row = self.db.one("witness", id, seq)
        return int(row[0]) if row else None

    def statements(self, id: str) -> list[int]:
        return [statement for (statement,) in self.db.read(SQL["statements"], (id,))]
