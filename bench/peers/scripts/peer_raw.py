"""The database alone: the writes of the jobs in commits of the same size, and no engine."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import peer
import psycopg
from bench import raw

COMMITS = peer.scaled(500)


def j1(where: str) -> None:
    with closing(alone(where)) as writes:
        enqueued, drained = raw.queue(writes, peer.TASKS)
    peer.tell(enqueued_per_s=peer.TASKS / enqueued, drained_per_s=peer.TASKS / drained)


def j2(where: str) -> None:
    with closing(alone(where)) as writes:
        took = raw.sequences(writes, peer.WORKFLOWS, peer.STEPS)
    peer.tell(steps_per_s=peer.WORKFLOWS * peer.STEPS / took)


def j3(where: str) -> None:
    peer.settings("a row there, and one back, between two processes; a commit for each step")
    with closing(alone(where)) as writes:
        long = [raw.sequences(writes, 1, peer.LONG)]
    answered = raw.answered(path_of(where), peer.SINGLES)
    peer.tell(**peer.spread(answered), ms_per_step=peer.a_step(long))


def j4(where: str) -> None:
    with closing(alone(where)) as writes:
        as_workflows = raw.family(writes, peer.CHILDREN, workflows=True)
    with closing(alone(where)) as writes:
        as_tasks = raw.family(writes, peer.CHILDREN, workflows=False)
    peer.tell(children_s=as_workflows, parallel_steps_s=as_tasks)


def commit(where: str) -> None:
    with closing(connected(where)) as db:
        db.execute("CREATE TABLE commits (n int)")
        db.execute("INSERT INTO commits VALUES (0)")
        times = peer.singles(lambda: db.execute("UPDATE commits SET n = n + 1"), COMMITS)
    peer.tell(commit_ms=peer.milliseconds(times, 50))


def alone(where: str) -> raw.Raw:
    return raw.OnSqlite(path_of(where)) if is_sqlite(where) else raw.OnPostgres(where)


def connected(where: str) -> Any:
    if not is_sqlite(where):
        return psycopg.connect(where, autocommit=True)
    db = sqlite3.connect(path_of(where), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def is_sqlite(where: str) -> bool:
    return where.startswith("sqlite:///")


def path_of(where: str) -> str:
    return where.removeprefix("sqlite:///")


if __name__ == "__main__":
    peer.main({"commit": commit, "j1": j1, "j2": j2, "j3": j3, "j4": j4})
