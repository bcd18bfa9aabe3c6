"""Turns and ends of tasks on PostgreSQL. `flush` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

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
from rhythm.store.light_turns import is_light
from rhythm.store.loop_calls import call_here
from rhythm.store.postgres.auditing import PostgresAuditor
from rhythm.store.postgres.callers import PsycopgCaller
from rhythm.store.postgres.connection import (
    NO_HINTS,
    NOTHING,
    SQL,
    Connection,
    Hints,
    Later,
    Spare,
)
from rhythm.store.postgres.flush import Flush
from rhythm.store.postgres.joined import Joined
from rhythm.store.postgres.light import LightCommit, first_turns, step_answers, step_columns
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import PostgresRows
from rhythm.store.postgres.session import autocommit
from rhythm.store.postgres.wire import Row
from rhythm.store.rows import fields, records, records_with

BRIEFLY_ENDED = b"SELECT " + BRIEF_OUTCOME.encode() + b" FROM (" + SQL["ended"] + b") AS outcome"


class PostgresTurns(PostgresRole, TurnStore):
    """Turns and ends of tasks.

    Light turns alone are one statement; everything else is committed in one transaction. Handlers
    get one of the `spare` connections.
    """

    def __init__(
        self,
        db: Connection,
        rows: PostgresRows,
        auditor: PostgresAuditor,
        spare: Spare,
    ) -> None:
        super().__init__(db, rows, auditor)
        self.spare = spare
        # A pooler lends a session for a transaction of several statements.
        self.commits_apart = not db.access.pooled

    @autocommit
    def load(self, ids: Sequence[str]) -> list[Loaded]:
        return records(Loaded, self.db.all("load", ids=list(ids)))

    def cancelled(self, ids: Sequence[str]) -> set[str]:
        return {id for (id,) in self.db.ask("cancelled", ids=list(ids))}

    @autocommit
    def outcomes(
        self, needed: Sequence[Needed], brief: bool = False
    ) -> dict[str, list[ChildOutcome]]:
        groups = [need for need in needed if need.whole and len(need.numbers) > 1]
        asked = [
            dict(id=need.id, first=need.numbers[0], last=need.numbers[-1], fails=need.fails)
            for need in groups
        ]
        undecided = set(self.db.batch("undecided", asked))
        found: dict[str, list[ChildOutcome]] = {need.id: [] for need in needed}
        decided = [
            need for need in needed if not need.whole or (need.id, need.numbers[0]) not in undecided
        ]
        rows = self._ended(decided, brief)
        for outcome, id in records_with(ChildOutcome, rows, "id"):
            found[id].append(brief_outcome(outcome) if brief else outcome)
        return found

    @autocommit
    def next_ended(self, asked: Sequence[NextEnded]) -> dict[str, list[ChildOutcome]]:
        found: dict[str, list[ChildOutcome]] = {each.id: [] for each in asked}
        rows = self.db.batch(
            "next_ended", [fields(each) | {"ranges": json.dumps(each.ranges)} for each in asked]
        )
        for outcome, id in records_with(ChildOutcome, rows, "id"):
            found[id].append(outcome)
        return found

    @autocommit
    def nth_unfinished(self, asked: Sequence[NthUnfinished]) -> list[Unfinished]:
        return records(
            Unfinished, self.db.batch("nth_unfinished", [fields(each) for each in asked])
        )

    def _ended(self, needed: Sequence[Needed], brief: bool) -> list[Row]:
        numbers = [(need.id, n) for need in needed for n in need.numbers]
        if brief:
            ids = [child_id(id, n) for id, n in numbers]
            of = [id for id, _ in numbers]
            ns = [n for _, n in numbers]
            return self.db.rows(BRIEFLY_ENDED, dict(ids=ids, id=of, n=ns))
        return self.db.batch("ended", [dict(ids=child_id(id, n), id=id, n=n) for id, n in numbers])

    def commit(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]
    ) -> tuple[list[Committed], set[str]]:
        if len({turn.id for turn in turns}) < len(turns):
            raise ValueError("a commit takes one turn of each workflow")
        if light := LightCommit.of(turns, ends):
            # one statement commits itself
            commit = self.db.transaction if len(light.statements) > 1 else self.db.autocommit
            written = commit(lambda: self._write_light(light))
            return self._light_answers(light, [each.rows for each in written])
        steps = [turn for turn in turns if is_light(turn)]
        others = [turn for turn in turns if not is_light(turn)]
        return self._flush(others, ends, steps)

    def begin_commit(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]
    ) -> Callable[[], list[Committed]] | None:
        light = LightCommit.of(turns, ends)
        if light is None:
            return None
        rows = self.db.begin(light.statements, light.hints)
        return lambda: self._light_answers(light, rows())[0]

    def _write_light(self, light: LightCommit) -> list[Later]:
        self.db.end(light.hints.ended)
        return [self.db.do(name, **values) for name, values in light.statements]

    def _light_answers(
        self, light: LightCommit, rows: Sequence[Sequence[Row]]
    ) -> tuple[list[Committed], set[str]]:
        """Returns the answers to a light commit. What it left out takes the full way now."""
        answers, accepted, left = light.answers(rows)
        if left:
            answers += self._flush(left, (), ())[0]
        return answers, accepted

    def _flush(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd], light: Sequence[TurnCommit]
    ) -> tuple[list[Committed], set[str]]:
        """Commits everything in one transaction."""
        flush, won = self.db.transaction(lambda: self._write(turns, ends, light))
        return [*flush.answers(), *step_answers(light, won.rows)], flush.accepted

    def _write(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd], light: Sequence[TurnCommit]
    ) -> tuple[Flush, Later]:
        """Sends everything, inside the transaction.

        The light turns come last: so their answers include the wakes that the others caused.
        """
        flush = Flush(self.rows, turns, ends)
        flush.run()
        if firsts := first_turns(light):
            self.db.do("light_turns", **step_columns(firsts))
        won = self.db.do("light_turns", **step_columns(light)) if light else NOTHING
        for actor, acts in flush.acts:
            self.auditor.add(actor, acts, flush.now)
        return flush, won

    def complete_within(self, work: Callable[[Any], TaskEnd | None]) -> Completion:
        with self.spare.connection() as connection, connection.transaction() as undo:
            end = work(connection)
            connection.answer_s = self.db.access.answer_s
            outcome, hints = self._complete(connection, end)
            if outcome != "kept":
                raise psycopg.Rollback(undo)
        self.db.announce(hints)
        return outcome

    def _complete(
        self, connection: psycopg.Connection[Row], end: TaskEnd | None
    ) -> tuple[Completion, Hints]:
        if end is None:
            return "undone", NO_HINTS
        if connection.info.transaction_status is TransactionStatus.INERROR:
            return "aborted", NO_HINTS
        joined = Joined(PsycopgCaller(connection, call_here), self.db, notifies=False)
        flush = joined.transaction(
            lambda: Flush(PostgresRows(joined, self.rows.limits), (), [end]).run()
        )
        return "kept" if end.id in flush.accepted else "lost", joined.take_hints()

    @autocommit
    def witness(self, id: str, seq: int) -> int | None:
        rows = self.db.all("witness", id=id, seq=seq)
        return int(rows[0][0]) if rows else None

    def statements(self, id: str) -> list[int]:
        return [statement for (statement,) in self.db.ask("statements", id=id)]
