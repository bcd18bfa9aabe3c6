"""What the database alone reaches: the writes of the jobs, in commits of the same size, with
nothing around them.

No engine, no handlers, no values but constants: tables with the columns that a durable engine
cannot do without, one connection, and the statements that were found to be the fastest (arrays on
PostgreSQL, `executemany` on SQLite). Who runs workflows cannot be faster.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg

from bench.measure import timed

BATCH = 100
INPUTS, RESULT, HASH = '{"x": 1}', "1", "0" * 64
SNAPSHOT = (
    b'{"v": 1, "statement_index": 3, "locals": {"i": 7, "total": 139}, "awaiting": {"op": '
    b'"task", "n": 7, "name": "note"}, "next_child": 8}'
)

TABLES = """
CREATE TABLE executions (id text PRIMARY KEY, parent_id text, name text, queue text, status int, attempt int, worker text, fence bigint,
  inputs text, result text, created_at bigint, started_at bigint, finished_at bigint);
CREATE TABLE contexts (id text PRIMARY KEY, seq bigint, fence bigint, snapshot bytea);
CREATE TABLE ready (id text PRIMARY KEY, state int, place bigint, claimed_by text, expires_at bigint, fence bigint);
CREATE INDEX ready_free ON ready (place) WHERE state = 0;
CREATE TABLE history (id text, seq bigint, fence bigint, worker text, cause text, at bigint, PRIMARY KEY (id, seq));
CREATE TABLE approvals (id text PRIMARY KEY, role text, data text, status int, decided_by text, created_at bigint, ended_at bigint);
CREATE TABLE audit (n bigint PRIMARY KEY, at bigint, actor text, action text, object text, detail text, prev text, hash text);
CREATE TABLE audit_head (n bigint, hash text);
INSERT INTO audit_head VALUES (0, '')
"""


class Raw(Protocol):
    """The writes that workflows and tasks are made of; each is one commit for all the ids."""

    def start(self, ids: Sequence[str], workflows: bool) -> None: ...
    def claim(self, count: int) -> list[str]: ...
    def step(self, ids: Sequence[str], n: int) -> None: ...
    def finish(self, ids: Sequence[str], workflows: bool) -> None: ...
    def results(self, ids: Sequence[str]) -> int: ...
    def pause(self, ids: Sequence[str]) -> None: ...
    def decide(self, id: str) -> None: ...
    def close(self) -> None: ...


class OnPostgres:
    """The writes on PostgreSQL: an array for each column."""

    PINNED = (
        "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c "
        "plan_cache_mode=force_generic_plan -c jit=off"
    )
    START = """
        WITH x AS (SELECT * FROM unnest(%b::text[], %b::bigint[]) AS x(id, place)),
        e AS (INSERT INTO executions (id, name, queue, status, inputs, created_at) SELECT id, 'note', 'default', 0, %b, 1 FROM x),
        c AS (INSERT INTO contexts SELECT id, 0, 0, NULL FROM x WHERE %b)
        INSERT INTO ready (id, state, place) SELECT id, 0, place FROM x"""
    CLAIM = """
        UPDATE ready SET state = 1, claimed_by = 'w', expires_at = 1, fence = nextval('fences') WHERE id = ANY(ARRAY(
            SELECT id FROM ready WHERE state = 0 ORDER BY place LIMIT %b FOR UPDATE SKIP LOCKED)) RETURNING id"""
    STEP = """
        WITH won AS (
            UPDATE contexts c SET seq = c.seq + 1, fence = 1, snapshot = %b FROM unnest(%b::text[]) AS x(id)
            WHERE c.id = x.id AND c.seq = %b RETURNING c.id, c.seq),
        done AS (
            INSERT INTO executions (id, parent_id, name, queue, status, attempt, worker, fence, inputs, result, created_at, started_at,
                finished_at)
            SELECT id || '.' || seq, id, 'note', 'default', 5, 1, 'w', 1, %b, %b, 1, 1, 1 FROM won)
        INSERT INTO history SELECT id, seq, 1, 'w', 'turn', 1 FROM won"""
    FINISH = """
        WITH gone AS (DELETE FROM ready r USING unnest(%b::text[]) AS x(id) WHERE r.id = x.id AND r.state = 1 RETURNING r.id),
        told AS (INSERT INTO history SELECT id, 100, 1, 'w', 'completed', 1 FROM gone WHERE %b)
        UPDATE executions e SET status = 5, result = %b, worker = 'w', fence = 1, started_at = 1, finished_at = 1
        FROM gone WHERE e.id = gone.id AND e.status < 5"""
    PAUSE = """
        WITH gone AS (DELETE FROM ready r USING unnest(%b::text[]) AS x(id) WHERE r.id = x.id AND r.state = 1 RETURNING r.id),
        won AS (UPDATE contexts c SET seq = c.seq + 1, fence = 1, snapshot = %b FROM gone WHERE c.id = gone.id RETURNING c.id, c.seq),
        asked AS (INSERT INTO approvals SELECT id, 'manager', %b, NULL, NULL, 1, NULL FROM won)
        INSERT INTO history SELECT id, seq, 1, 'w', 'turn', 1 FROM won"""
    DECIDE = """
        WITH made AS (UPDATE approvals SET status = 5, decided_by = 'ann', ended_at = 1 WHERE id = %b AND status IS NULL RETURNING id),
        head AS (UPDATE audit_head SET n = n + 1, hash = %b RETURNING n),
        told AS (INSERT INTO audit SELECT head.n, 1, 'ann', 'approve', made.id, '{}', %b, %b FROM made, head)
        INSERT INTO ready (id, state, place) SELECT id, 0, 1 FROM made"""

    def __init__(self, url: str) -> None:
        self.db = psycopg.connect(url, autocommit=True, options=self.PINNED)
        self.db.execute(
            "CREATE SCHEMA raw; SET search_path = raw; CREATE SEQUENCE fences; " + TABLES
        )
        self.db.prepare_threshold = 0

    def start(self, ids: Sequence[str], workflows: bool) -> None:
        self._run(self.START, ids, range(len(ids)), INPUTS, workflows)

    def claim(self, count: int) -> list[str]:
        return [id for (id,) in self._run(self.CLAIM, count)]

    def step(self, ids: Sequence[str], n: int) -> None:
        self._run(self.STEP, SNAPSHOT, ids, n, INPUTS, RESULT)

    def finish(self, ids: Sequence[str], workflows: bool) -> None:
        self._run(self.FINISH, ids, workflows, RESULT)

    def results(self, ids: Sequence[str]) -> int:
        return len(self._run("SELECT id, status, result FROM executions WHERE id = ANY(%b)", ids))

    def pause(self, ids: Sequence[str]) -> None:
        self._run(self.PAUSE, ids, SNAPSHOT, INPUTS)

    def decide(self, id: str) -> None:
        self._run(self.DECIDE, id, HASH, HASH, HASH)

    def close(self) -> None:
        self.db.execute("DROP SCHEMA raw CASCADE")
        self.db.close()

    def _run(self, text: str, *values: Any) -> list[Any]:
        given = [list(value) if isinstance(value, range) else value for value in values]
        cursor = self.db.execute(re.sub(r"\s+", " ", text).encode(), given, binary=True)
        return cursor.fetchall() if cursor.description else []


class OnSqlite:
    """The writes on SQLite: a transaction around `executemany`."""

    def __init__(self, path: str) -> None:
        self.path, self.db = Path(path), sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        for statement in TABLES.split(";"):
            self.db.execute(statement)

    def start(self, ids: Sequence[str], workflows: bool) -> None:
        with self._commit():
            row = (
                "INSERT INTO executions (id, name, queue, status, inputs, created_at) VALUES "
                "(?, 'note', 'default', 0, ?, 1)"
            )
            self.db.executemany(row, [(id, INPUTS) for id in ids])
            if workflows:
                self.db.executemany(
                    "INSERT INTO contexts VALUES (?, 0, 0, NULL)", [(id,) for id in ids]
                )
            self.db.executemany(
                "INSERT INTO ready (id, state, place) VALUES (?, 0, ?)",
                zip(ids, range(len(ids)), strict=True),
            )

    def claim(self, count: int) -> list[str]:
        with self._commit():
            ids = self.db.execute(
                "SELECT id FROM ready WHERE state = 0 ORDER BY place LIMIT ?", (count,)
            ).fetchall()
            self.db.executemany(
                (
                    "UPDATE ready SET state = 1, claimed_by = 'w', expires_at = 1, fence = 1 "
                    "WHERE id = ?"
                ),
                ids,
            )
        return [id for (id,) in ids]

    def step(self, ids: Sequence[str], n: int) -> None:
        with self._commit():
            advance = (
                "UPDATE contexts SET seq = seq + 1, fence = 1, snapshot = ? WHERE id = ? AND "
                "seq = ?"
            )
            self.db.executemany(advance, [(SNAPSHOT, id, n) for id in ids])
            done = (
                "INSERT INTO executions VALUES (?, ?, 'note', 'default', 5, 1, 'w', 1, ?, ?, "
                "1, 1, 1)"
            )
            self.db.executemany(done, [(f"{id}.{n}", id, INPUTS, RESULT) for id in ids])
            self.db.executemany(
                "INSERT INTO history VALUES (?, ?, 1, 'w', 'turn', 1)", [(id, n + 1) for id in ids]
            )

    def finish(self, ids: Sequence[str], workflows: bool) -> None:
        with self._commit():
            self.db.executemany(
                "DELETE FROM ready WHERE id = ? AND state = 1", [(id,) for id in ids]
            )
            if workflows:
                self.db.executemany(
                    "INSERT INTO history VALUES (?, 100, 1, 'w', 'completed', 1)",
                    [(id,) for id in ids],
                )
            ended = (
                "UPDATE executions SET status = 5, result = ?, started_at = 1, finished_at = "
                "1 WHERE id = ? AND status < 5"
            )
            self.db.executemany(ended, [(RESULT, id) for id in ids])

    def results(self, ids: Sequence[str]) -> int:
        return sum(
            len(
                self.db.execute(
                    "SELECT status, result FROM executions WHERE id = ?", (id,)
                ).fetchall()
            )
            for id in ids
        )

    def pause(self, ids: Sequence[str]) -> None:
        with self._commit():
            self.db.executemany(
                "DELETE FROM ready WHERE id = ? AND state = 1", [(id,) for id in ids]
            )
            self.db.executemany(
                "UPDATE contexts SET seq = 1, fence = 1, snapshot = ? WHERE id = ?",
                [(SNAPSHOT, id) for id in ids],
            )
            self.db.executemany(
                "INSERT INTO approvals VALUES (?, 'manager', ?, NULL, NULL, 1, NULL)",
                [(id, INPUTS) for id in ids],
            )
            self.db.executemany(
                "INSERT INTO history VALUES (?, 1, 1, 'w', 'turn', 1)", [(id,) for id in ids]
            )

    def decide(self, id: str) -> None:
        with self._commit():
            self.db.execute(
                (
                    "UPDATE approvals SET status = 5, decided_by = 'ann', ended_at = 1 WHERE "
                    "id = ? AND status IS NULL"
                ),
                (id,),
            )
            [(n,)] = self.db.execute(
                "UPDATE audit_head SET n = n + 1, hash = ? RETURNING n", (HASH,)
            ).fetchall()
            self.db.execute(
                "INSERT INTO audit VALUES (?, 1, 'ann', 'approve', ?, '{}', ?, ?)",
                (n, id, HASH, HASH),
            )
            self.db.execute("INSERT INTO ready (id, state, place) VALUES (?, 0, 1)", (id,))

    def close(self) -> None:
        self.db.close()
        self.path.unlink()

    @contextmanager
    def _commit(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        yield
        self.db.execute("COMMIT")


def queue(raw: Raw, count: int) -> tuple[float, float]:
    """So many tasks enqueued in one call, then drained: seconds for each."""
    took = timed(lambda: raw.start(_ids("t", count), workflows=False))
    return took, timed(lambda: _each_claim(raw, lambda ids: raw.finish(ids, workflows=False)))


def sequences(raw: Raw, workflows: int, steps: int) -> float:
    """So many workflows of so many tasks, each run by its owner: seconds."""

    def life(ids: list[str]) -> None:
        for n in range(steps):
            raw.step(ids, n)
        raw.finish(ids, workflows=True)

    raw.start(_ids("w", workflows), workflows=True)
    return timed(lambda: _each_claim(raw, life))


def family(raw: Raw, children: int, workflows: bool) -> float:
    """A parent with so many children, from its start to its end: seconds."""
    ids = _ids("p", children)

    def life() -> None:
        raw.start(["p"], workflows=True)
        raw.claim(1)
        raw.start(ids, workflows)
        _each_claim(raw, lambda claimed: raw.finish(claimed, workflows))
        raw.results(ids)
        raw.finish(["p"], workflows=True)

    return timed(life)


def approvals(raw: Raw, count: int, decided: int) -> tuple[float, float]:
    """So many workflows until each waits for a decision; then so many decisions, each a commit, and
    their workflows: seconds for each.

    The decisions are the best of ten rounds: most of their time is the disk's, which others use,
    too.
    """
    ids = _ids("a", count)
    raw.start(ids, workflows=True)
    took = timed(lambda: _each_claim(raw, raw.pause))

    def decide(some: list[str]) -> None:
        for id in some:
            raw.decide(id)
        _each_claim(raw, lambda claimed: raw.finish(claimed, workflows=True))

    rounds = [ids[first : first + decided] for first in range(0, count, decided)][:10]
    return took, min(timed(lambda some=some: decide(some)) for some in rounds)


def _each_claim(raw: Raw, work: Callable[[list[str]], None]) -> None:
    while ids := raw.claim(BATCH):
        work(ids)


def _ids(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{'0' * 20}{n:05}" for n in range(count)]


# there and back between two processes


def answered(url: str, times: int) -> list[float]:
    """A row committed here, seen and answered by another process, and read here: seconds for
    each."""
    command = [sys.executable, "-m", "bench.raw", url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        other.stdout.readline()
        asked = (
            _asked_on_postgres(url, times)
            if url.startswith("postgresql")
            else _asked_on_sqlite(url, times)
        )
        other.kill()
    return asked


def _asked_on_postgres(url: str, times: int) -> list[float]:
    with psycopg.connect(url, autocommit=True) as db, psycopg.connect(url, autocommit=True) as ear:
        ear.execute("LISTEN answers")

        def ask() -> None:
            db.execute("INSERT INTO questions VALUES (1); NOTIFY questions")
            next(iter(ear.notifies()))
            db.execute("SELECT * FROM answers ORDER BY id DESC LIMIT 1").fetchall()

        return [timed(ask) for _ in range(times)]


def _answer_on_postgres(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db, psycopg.connect(url, autocommit=True) as ear:
        db.execute(
            "CREATE TABLE questions (id int); CREATE TABLE answers (id serial PRIMARY "
            "KEY, text text)"
        )
        ear.execute("LISTEN questions")
        print("ready", flush=True)
        for _ in ear.notifies():
            db.execute(
                "DELETE FROM questions; INSERT INTO answers (text) VALUES ('1'); NOTIFY answers"
            )


def _asked_on_sqlite(path: str, times: int) -> list[float]:
    db = _two_counters(path)

    def ask() -> None:
        asked = db.execute(
            "UPDATE counters SET questions = questions + 1 RETURNING questions"
        ).fetchall()
        while db.execute("SELECT answers FROM counters").fetchall() != asked:
            time.sleep(0.0005)

    return [timed(ask) for _ in range(times)]


def _answer_on_sqlite(path: str) -> None:
    db = _two_counters(path)
    print("ready", flush=True)
    while True:
        if db.execute("SELECT 1 FROM counters WHERE questions > answers").fetchall():
            db.execute("UPDATE counters SET answers = questions")
        time.sleep(0.0005)


def _two_counters(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path}.raw", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS counters (questions int, answers int)")
    db.execute("INSERT INTO counters SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM counters)")
    return db


if __name__ == "__main__":
    (_answer_on_postgres if sys.argv[1].startswith("postgresql") else _answer_on_sqlite)(
        sys.argv[1]
    )
