"""Who is measured: each engine with its versions, its script, and what is not comparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bench.servers import Store
from rhythm.record import Record

Kind = Literal["limit", "ours", "workflows", "tasks"]


class Engine(Record):
    """One row of the tables."""

    name: str
    title: str
    kind: Kind  # `tasks`: a queue, without results and workflows; `limit`: the database alone
    store: Store
    script: str
    arguments: tuple[str, ...] = ()  # after the job and the database
    packages: tuple[str, ...] = ()  # of a virtual environment of its own; none: this one
    npm: tuple[str, ...] = ()
    compiled: bool = False  # of ours: with the hot modules of this checkout compiled
    apart: str = ""  # what is not comparable

    @property
    def family(self) -> str:
        """What `--only` may say for several at once."""
        return self.name.partition("-")[0]

    @property
    def environment(self) -> str:
        """The folder of its virtual environment; empty if it runs in this one."""
        return self.name if self.packages else ""


PSYCOPG = "psycopg[binary]==3.3.9"
UVLOOP = "uvloop==0.23.0"

ENGINES = (
    Engine("raw-sqlite", "SQLite alone", "limit", "SQLite", "peer_raw.py"),
    Engine("raw-postgres", "PostgreSQL alone", "limit", "PostgreSQL", "peer_raw.py"),
    Engine("rhythm-sqlite", "Rhythm, SQLite", "ours", "SQLite", "peer_rhythm.py", ("1",)),
    Engine("rhythm-postgres", "Rhythm", "ours", "PostgreSQL", "peer_rhythm.py", ("1",)),
    Engine(
        "rhythm-postgres-2", "Rhythm, 2 processes", "ours", "PostgreSQL", "peer_rhythm.py", ("2",)
    ),
    Engine(
        "rhythm-sqlite-compiled", "Rhythm, SQLite, compiled", "ours", "SQLite", "peer_rhythm.py",
        ("1",), compiled=True,
    ),
    Engine(
        "rhythm-postgres-compiled", "Rhythm, compiled", "ours", "PostgreSQL", "peer_rhythm.py",
        ("1",), compiled=True,
    ),
    Engine(
        "rhythm-postgres-2-compiled", "Rhythm, 2 processes, compiled", "ours", "PostgreSQL",
        "peer_rhythm.py", ("2",), compiled=True,
    ),
    Engine(
        "restate", "Restate", "workflows", "own log", "peer_restate.py",
        packages=("restate-sdk==1.2.0", "hypercorn==0.18.0", UVLOOP, "aiohttp==3.14.5"),
        npm=("@restatedev/restate-server@1.7.12",),
        apart="keeps a log of its own (RocksDB, synced) in place of PostgreSQL, and pushes: tasks "
        "run while others are still being sent, so its drain includes sending",
    ),
    Engine(
        "absurd", "Absurd", "workflows", "PostgreSQL", "peer_absurd.py",
        packages=("absurd-sdk==0.5.1", "absurdctl==0.5.1", PSYCOPG),
        apart="its client's own await asks every 50 ms; here the table is asked every 0.5 ms, "
        "which is better for it",
    ),
    Engine(
        "sayiir", "Sayiir", "workflows", "PostgreSQL", "peer_sayiir.py",
        packages=("sayiir==1.0.0", PSYCOPG),
        apart="J2, steps and J4 run in the process of the caller; J4 has branches of one workflow; "
        "an internal class keeps its engine, which is faster than what its documents show",
    ),
    Engine(
        "dbos", "DBOS", "workflows", "PostgreSQL", "peer_dbos.py",
        packages=("dbos==3.4.0", PSYCOPG),
        apart="J2, steps and J4 run in the process of the caller",
    ),
    Engine(
        "pgqueuer", "pgqueuer", "tasks", "PostgreSQL", "peer_pgqueuer.py",
        packages=("pgqueuer[asyncpg]==1.6.0", UVLOOP, PSYCOPG),
        apart="stores no results and has no workflows; its J3 ends when the task runs",
    ),
    Engine(
        "procrastinate", "Procrastinate", "tasks", "PostgreSQL", "peer_procrastinate.py",
        packages=("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9"),
        apart="stores no results and has no workflows; its J3 ends when the task runs",
    ),
)  # fmt: skip
BY_NAME = {engine.name: engine for engine in ENGINES}


def chosen(only: Sequence[str]) -> list[Engine]:
    """The engines of these names or families, and always the database alone; all without names.

    Raises `ValueError` for a name that there is not.
    """
    known = {name for engine in ENGINES for name in (engine.name, engine.family)}
    if unknown := [name for name in only if name not in known]:
        families = dict.fromkeys(engine.family for engine in ENGINES)
        raise ValueError(f"there is no engine {unknown[0]}; there are {', '.join(families)}")
    names = {*only, "raw"} if only else known
    return [engine for engine in ENGINES if names & {engine.name, engine.family}]
