"""What a workflow file costs: its text is kept once, lists read neither texts nor programs, and a
registration is a few statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rhythm.store.access import Actor
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.store import Store
from rhythm.store.sqlite.store import SqliteStore
from tests.store.test_conformance import Clock
from tests.support.stores import Stores, rows

TEXT = "x" * 100_000
PROGRAM = "p" * 10_000


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.empty_store(Clock())


def workflows(count: int, text: str = TEXT, version: str = "1") -> list[Definition]:
    return [
        Definition(f"w{n:03}", version, "flow", text, PROGRAM, "f.flow", on=(f"e{n}",))
        for n in range(count)
    ]


def stored(store: Store) -> int:
    """Bytes in the tables of workflows."""
    found = [
        *rows(store, "SELECT * FROM workflow_definitions"),
        *rows(store, "SELECT * FROM workflow_sources"),
    ]
    return sum(len(value) for row in found for value in row if isinstance(value, str))


class Meter:
    """What a store has asked of its database, and how much it was told."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements = self.bytes = 0
        names = ("fetch", "read") if isinstance(store, SqliteStore) else ("query",)
        target: Any = getattr(store, "db", None)
        for name in names:
            monkeypatch.setattr(target, name, self._counted(getattr(target, name)))

    def _counted(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any) -> Any:
            answer = ask(*args)
            # the clock of the test
            self.statements += b"set_config" not in args[0] if isinstance(args[0], bytes) else 1
            if isinstance(answer, list):
                self._add(answer)
            elif isinstance(answer, tuple):
                self._add(answer[0])
            elif answer.description:
                self._add(answer.fetchall())
            return answer

        return asked

    def _add(self, found: list[Any]) -> None:
        self.bytes += sum(len(str(value)) for row in found for value in row)

    def of(self, act: Callable[[], object]) -> tuple[int, int]:
        """Statements and bytes read."""
        before = self.statements, self.bytes
        act()
        return self.statements - before[0], self.bytes - before[1]


def test_the_text_of_a_file_is_kept_once_however_many_workflows_it_holds(store: Store) -> None:
    store.definitions.register(workflows(100))
    assert stored(store) < len(TEXT) + 100 * (len(PROGRAM) + 200)
    found = store.definitions.get("w042")
    assert found is not None
    assert (found.source, found.program) == (TEXT, PROGRAM)


def test_a_text_whose_versions_are_all_there_is_not_kept(store: Store) -> None:
    """Only something around the workflows has changed: their versions, and the places in them, are
    those of the text before."""
    store.definitions.register(workflows(2))
    before = stored(store)
    store.definitions.register(workflows(2, TEXT + " "))
    assert (stored(store), len(rows(store, "SELECT 1 FROM workflow_sources"))) == (before, 1)
    store.definitions.register([*workflows(1, TEXT + " "), *workflows(2, TEXT + " ", "2")[1:]])
    assert [getattr(store.definitions.get(name), "source", None) for name in ("w000", "w001")] == [
        TEXT,
        TEXT + " ",
    ]


def test_a_list_of_workflows_reads_neither_texts_nor_programs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.definitions.register(workflows(100))
    for version in range(2, 5):
        store.definitions.register(workflows(3, TEXT, str(version)))
    meter = Meter(store, monkeypatch)
    for ask in (
        lambda: store.definitions.after("", 100),
        lambda: store.definitions.current([f"w{n:03}" for n in range(100)]),
    ):
        asked, read = meter.of(ask)
        assert asked == 1
        assert read < 100 * 100
    assert meter.of(lambda: store.definitions.program("w000", "4"))[1] < len(PROGRAM) + 100
    assert meter.of(lambda: store.definitions.after("", 2))[1] < 200


def test_workflows_are_listed_page_by_page_in_the_order_of_their_names(store: Store) -> None:
    names = ["A", "Z", "a", "a.b", "aa", "z", "ä", "é", "🎵"]  # by code point, in any locale
    store.definitions.register(
        [Definition(name, "1", "flow", "", "{}") for name in reversed(names)]
    )
    found: list[str] = []
    while page := store.definitions.after(found[-1] if found else "", 2):
        assert len(page) <= 2
        found += [listed.name for listed in page]
    assert found == names
    assert [listed.version for listed in store.definitions.after("🎵", 2)] == []


def test_a_registration_is_as_many_statements_for_a_hundred_workflows_as_for_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = Meter(store, monkeypatch)
    one, _ = meter.of(
        lambda: store.definitions.register(
            [Definition("one", "1", "flow", "", "{}", on=("e",))], lambda found, now: {}
        )
    )
    many, read = meter.of(lambda: store.definitions.register(workflows(100), lambda found, now: {}))
    assert many == one
    assert read < 1000
    audited, read = meter.of(
        lambda: store.definitions.register(workflows(100, version="2"), None, Actor("ada"))
    )
    assert audited <= many + 110  # a row of the audit each
    assert read < 100 * 300
    assert len(store.definitions.triggers()) == 101
