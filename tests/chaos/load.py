"""The client: starts programs, sends their signals, insists until it has an answer, and checks
every result."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any

from rhythm.engine.doctor import examine
from rhythm.errors import StoreError
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.open import open_store
from tests.chaos.programs import Case, case_of, compiled
from tests.chaos.server import until
from tests.support.reference import Expected
from tests.support.stores import rows

BATCH = 500


class Load:
    """Programs on one database. `distinct`: how many different ones; more starts than that begin
    with the first again."""

    def __init__(self, url: str, seed: int, distinct: int) -> None:
        self.store = open_store(url)
        self.store.schema.migrate()
        self.seed, self.chance, self.distinct = seed, Random(f"load {seed}"), distinct
        self.cases: list[Case] = []
        self.started: dict[str, Case] = {}  # with an answer
        self.waiting: dict[str, Case] = {}  # asked for, without an answer so far
        self.signals: list[tuple[float, NewSignal]] = []  # to be sent, and when
        self.sent: list[str] = []  # with an answer
        self.unanswered = 0
        self.extra = 0  # of `started`, those of the scenario's own

    def close(self) -> None:
        self.store.close()

    # load

    def feed(self, in_flight: int, most: int = 100) -> None:
        """Lets so many programs be under way, and sends what is due. What has no answer is asked
        again, under the same id."""
        try:
            self._ask(min(most, in_flight - self.open()))
            self._send()
        except StoreError:
            self.unanswered += 1

    def start(self, name: str, text: str, inputs: Iterable[Any], result: Any = None) -> list[str]:
        """Starts a workflow of the scenario's own once for each of these inputs, all at once; its
        ids."""
        made = compiled(name, text, Expected("completed", result))
        self.store.definitions.register(made.definitions)
        first = sum(id.startswith(f"{name}-") for id in self.started)
        new = [
            NewExecution(
                f"{name}-{first + i}", WORKFLOW, name, "default", json.dumps(one), made.version
            )
            for i, one in enumerate(inputs)
        ]
        self.store.executions.start(new)
        self.started |= {row.id: made for row in new}
        self.extra += len(new)
        return [row.id for row in new]

    def open(self) -> int:
        return int(
            self.query(
                "SELECT count(*) FROM executions WHERE finished_at IS NULL AND parent_id IS NULL"
            )[0][0]
        )

    def _ask(self, count: int) -> None:
        for _ in range(max(0, count)):
            number = len(self.started) - self.extra + len(self.waiting)
            self.waiting[f"{number:06}"] = self._case(number % self.distinct)
        if not self.waiting:
            return
        new = [
            NewExecution(id, WORKFLOW, case.name, "default", "null", case.version)
            for id, case in self.waiting.items()
        ]
        self.store.executions.start(new)
        for id, case in self.waiting.items():
            first = time.monotonic() + self.chance.random()
            for i, (name, payload) in enumerate(case.signals):
                signal = NewSignal(f"{id}#{i}", id, name, json.dumps(payload))
                self.signals.append((first + i * 0.2, signal))
        self.started |= self.waiting
        self.waiting.clear()

    def _case(self, number: int) -> Case:
        if number == len(self.cases):
            made = case_of(self.seed, number)
            self.store.definitions.register(made.definitions)
            self.cases.append(made)
        return self.cases[number]

    def _send(self) -> None:
        self.signals.sort(key=lambda due: due[0])
        while self.signals and self.signals[0][0] <= time.monotonic():
            answer = self.store.messages.signal(self.signals[0][1], 1000)
            signal = self.signals.pop(0)[1]
            if answer in ("sent", "duplicate"):
                # else it has ended without waiting for it: its result is wrong
                self.sent.append(signal.id)

    def settle(self, within_s: float) -> bool:
        """No more programs: whether all come to their end in time."""

        def ended() -> bool:
            with suppress(StoreError):
                self.feed(0)
                return not self.waiting and not self.signals and self.open() == 0
            return False

        return until(ended, within_s, 0.1)

    # what must hold in the end

    def wrong(self) -> list[str]:
        """Results that are not those of the reference, and programs without a result."""
        ids, found = list(self.started), []
        for i in range(0, len(ids), BATCH):
            there = self.store.reading.get(ids[i : i + BATCH])
            for id in ids[i : i + BATCH]:
                execution, expected = there.get(id), self.started[id].expected
                if execution is None or execution.finished_at is None:
                    found.append(
                        f"{id} ({self.started[id].name}) is "
                        f"{execution.status if execution else 'not there'}"
                    )
                    continue
                done = execution.status == "completed"
                value = (
                    json.loads(execution.result or "null")
                    if done
                    else json.loads(execution.error or "{}").get("code")
                )
                if repr(Expected(execution.status, value)) != repr(expected):
                    found.append(
                        f"{id} ({self.started[id].name}) {execution.status} {value!r} "
                        f"{execution.error} instead of {expected}"
                    )
        return found

    def lost(self) -> list[str]:
        """Acknowledged starts and signals that the database does not know."""
        there = {id for (id,) in self.query("SELECT id FROM executions WHERE parent_id IS NULL")}
        mail = {id for (id,) in self.query("SELECT id FROM workflow_signals")}
        return sorted((set(self.started) - there) | (set(self.sent) - mail))

    def finished_at(self) -> dict[str, int]:
        """When the tasks ended that ended by themselves."""
        return dict(
            self.query("SELECT id, finished_at FROM executions WHERE type = 1 AND status IN (5, 6)")
        )

    def broken_rules(self) -> list[str]:
        return [
            f"{finding.rule} {finding.subject}: {finding.message}"
            for finding in examine(self.store, 60.0)
        ]

    def query(self, text: str) -> list[Any]:
        return rows(self.store, text)
