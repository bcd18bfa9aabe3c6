"""How a process hears of commits to an SQLite file: by the reports of the kernel, and without
them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.sqlite import inotify, listening
from rhythm.store.sqlite.listening import SqliteListening
from rhythm.store.sqlite.session import clock_us
from rhythm.store.sqlite.store import SqliteStore
from tests.store.test_forked import in_a_child
from tests.store.test_listening import SOON_S, Ear, until
from tests.support.stores import SqliteFiles

NEVER_S = 1000.0
Listen = Callable[[Callable[[frozenset[str]], None]], SqliteListening]


@pytest.fixture
def files(tmp_path: Path) -> Iterator[SqliteFiles]:
    files = SqliteFiles(tmp_path)
    yield files
    files.close()


@pytest.fixture
def store(files: SqliteFiles) -> SqliteStore:
    return files.empty_store(clock_us)


@pytest.fixture
def listen(store: SqliteStore) -> Iterator[Listen]:
    begun: list[SqliteListening] = []

    def begin(heard: Callable[[frozenset[str]], None]) -> SqliteListening:
        begun.append(SqliteListening(store.db.path, heard))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


@pytest.fixture
def only_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is noticed but what the kernel reports."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux reports writes")
    monkeypatch.setattr(listening, "NET_S", NEVER_S)
    monkeypatch.setattr(listening, "POLL_INTERVAL_S", NEVER_S)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done once a second is done at once."""
    monkeypatch.setattr(listening, "NET_S", 0.01)
    monkeypatch.setattr(listening, "AFTER_WRITE_S", 0.005)
    monkeypatch.setattr(listening, "RETRY_S", 0.01)


def start(store: SqliteStore, id: str) -> None:
    store.executions.start([NewExecution(id, WORKFLOW, "main", "default")])


def ear_of(store: SqliteStore) -> listening.Ear:
    return listening._ears[os.path.realpath(store.db.path)]


@pytest.mark.usefixtures("only_reports")
def test_every_last_commit_of_a_burst_is_heard_by_the_reports_of_the_kernel(
    store: SqliteStore, files: SqliteFiles, listen: Listen
) -> None:
    """A report comes before its commit can be seen, and the next commit may be under way by
    then."""
    other, reader, seen = files.store(clock_us), files.store(clock_us), Ear()

    def look(_: frozenset[str]) -> None:
        seen(frozenset([str(len(reader.reading.find(None, None, None, 1000)))]))

    listen(look)
    seen.until(bool)
    for count in (1, 2, 5, 20, 30, 32, 40):
        for n in range(len(reader.reading.find(None, None, None, 1000)), count):
            start(other, f"w{n}")
        seen.until(lambda heard, count=count: frozenset([str(count)]) in heard)  # type: ignore[misc]


@pytest.mark.usefixtures("only_reports")
def test_commit_of_somebody_who_is_not_rhythm_is_heard(store: SqliteStore, listen: Listen) -> None:
    ear = Ear()
    listen(ear)
    ear.until(bool)
    with closing(sqlite3.connect(store.db.path)) as theirs:
        theirs.execute("CREATE TABLE theirs (x)")
    ear.until(bool)


@pytest.mark.usefixtures("only_reports")
def test_commit_is_heard_after_the_log_was_moved_into_the_file(
    store: SqliteStore, files: SqliteFiles, listen: Listen
) -> None:
    ear, other = Ear(), files.store(clock_us)
    listen(ear)
    ear.until(bool)
    for mode in ("PASSIVE", "RESTART", "TRUNCATE"):
        start(other, mode)
        ear.until(bool)
        other.db.connection.execute(f"PRAGMA wal_checkpoint({mode})")
    start(other, "last")
    ear.until(bool)


def test_without_reports_the_file_is_polled(
    store: SqliteStore, files: SqliteFiles, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "watch", lambda path: None)
    ear = Ear()
    began = listen(ear)
    ear.until(bool)
    start(files.store(clock_us), "w")
    ear.until(bool)
    assert began.problem == ""


def test_file_that_the_system_does_not_watch_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inotify.watch(str(tmp_path / "there is none")) is None
    monkeypatch.setattr(sys, "platform", "plan9")
    assert inotify.watch(str(tmp_path)) is None


@pytest.mark.usefixtures("often")
def test_kernel_that_does_not_see_a_commit_is_no_longer_relied_on(
    store: SqliteStore, files: SqliteFiles, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = files.folder / "silent"
    silent.touch()
    monkeypatch.setattr(listening, "watch", lambda path: inotify.watch(str(silent)))
    ear, other = Ear(), files.store(clock_us)
    listen(ear)
    ear.until(bool)
    for n in range(100):
        start(other, f"w{n}")
        ear.until(bool)
        if isinstance(ear_of(store)._waits, listening.Pause):
            break
    assert ear_of(store)._unreported
    start(other, "last")
    ear.until(bool)


@pytest.mark.usefixtures("often")
def test_file_in_place_of_another_is_heard(
    store: SqliteStore, files: SqliteFiles, listen: Listen
) -> None:
    ear, path = Ear(), Path(store.db.path)
    began = listen(ear)
    ear.until(bool)
    with closing(files.empty_store(clock_us)) as instead:
        copied = instead.db.path
    files.close()
    for left in ("-wal", "-shm"):
        path.with_name(path.name + left).unlink(missing_ok=True)
    path.unlink()
    until(lambda: "cannot be read" in began.problem)
    shutil.copy(copied, path)
    ear.until(bool)
    with closing(SqliteStore(str(path))) as new:
        until(lambda: began.problem == "")
        start(new, "w")
        ear.until(bool)


@pytest.mark.usefixtures("only_reports")
def test_listeners_of_one_file_share_a_thread_which_ends_with_the_last_of_them(
    store: SqliteStore, files: SqliteFiles, listen: Listen
) -> None:
    ears = [Ear() for _ in range(50)]
    begun = [listen(ear) for ear in ears]
    for ear in ears:
        ear.until(bool)
    thread = ear_of(store).thread
    assert [each.name for each in threading.enumerate()].count(thread.name) == 1
    for each in begun[:-1]:
        each.close()
    start(files.store(clock_us), "w")
    ears[-1].until(bool)
    assert [ear.heard for ear in ears[:-1]] == [[]] * 49
    begun[-1].close()
    begun[-1].close()
    assert not thread.is_alive(), "it need not wait for anything"
    again = Ear()
    listen(again)
    again.until(bool)


def test_listener_that_fails_does_not_stop_the_others(
    store: SqliteStore, files: SqliteFiles, listen: Listen
) -> None:
    def fail(_: frozenset[str]) -> None:
        raise RuntimeError("its loop is closed")

    failed, ear = listen(fail), Ear()
    listen(ear)
    ear.until(bool)
    start(files.store(clock_us), "w")
    ear.until(bool)
    assert "its loop is closed" in failed.problem


def test_listener_may_close_itself(store: SqliteStore) -> None:
    closed = threading.Event()

    def close(_: frozenset[str]) -> None:
        assert begun.wait(SOON_S)
        itself.close()
        closed.set()

    begun = threading.Event()
    itself = SqliteListening(store.db.path, close)
    begun.set()
    assert closed.wait(SOON_S)


def test_forked_process_hears_for_itself(
    store: SqliteStore, files: SqliteFiles, listen: Listen
) -> None:
    ear = Ear()
    began = listen(ear)
    ear.until(bool)

    def child() -> None:
        began.close()  # which is the parent's
        mine = Ear()
        SqliteListening(store.db.path, mine)
        mine.until(bool)
        start(store, "child")
        mine.until(bool)

    pid = in_a_child(child)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    ear.until(bool)
    start(files.store(clock_us), "parent")
    ear.until(bool)


def test_watch_that_is_rung_ends_its_wait(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    watch = inotify.watch(str(path))
    if watch is None:
        pytest.skip("only Linux reports writes")
    with closing(watch):
        watch.ring()
        assert not watch.wait(NEVER_S)
        with path.open("w") as file:
            file.write("x")
            file.flush()
            assert watch.wait(NEVER_S)
        assert not watch.wait(0.0)
