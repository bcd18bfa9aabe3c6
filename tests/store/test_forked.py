"""A process that is forked while its store is open: parent and child go on, each on connections of
its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.open import open_store
from tests.app import conftest as applications

url = applications.url
TIMES = 30


def start(store: Store, whose: str) -> None:
    for n in range(TIMES):
        store.executions.start([NewExecution(f"{whose}{n}", WORKFLOW, "main", "default")])
        assert store.reading.get([f"{whose}{n}"])


def in_a_child(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.parametrize("closes", [False, True], ids=["leaves it open", "closes it"])
def test_parent_and_child_use_connections_of_their_own(url: str, closes: bool) -> None:
    store = open_store(url)
    store.schema.migrate()
    start(store, "before")

    def child() -> None:
        start(store, "child")
        if closes:
            store.close()

    pid = in_a_child(child)
    start(store, "parent")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    start(store, "after")
    assert len(store.reading.find(None, None, None, 1000)) == 4 * TIMES
    store.close()


def test_a_child_opens_nothing_that_was_closed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'gone.db'}")
    store.close()
    for file in tmp_path.iterdir():
        file.unlink()
    pid = in_a_child(lambda: None)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert capfd.readouterr().err == ""
