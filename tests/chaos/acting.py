"""People at their screens: they start, decide, signal, publish, pause, resume and run over HTTP,
and insist until they are answered.

What they were told is written down here, outside the database. What can be told from another
request (by an `Idempotency-Key`, an id) is sent again as it is; a pause or a resume is not, so each
of its tries has a reason of its own, by which the audit can tell them apart.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import httpx

from rhythm.ids import personal_key
from rhythm.store.provenance import person

PATIENCE_S = 60.0  # with one request: servers come back
# after which somebody looks away, now and then, and never sees the answer
GIVE_UP_S = (0.001, 0.004, 0.02)
Lines = Mapping[str, Any]


class Act(NamedTuple):
    """An act as the audit has it. `mark`: what tells it from others of its kind."""

    actor: str
    action: str
    object: str
    mark: str = ""


class Answer(NamedTuple):
    status: int
    body: Any

    @property
    def code(self) -> str:
        return str(self.body.get("code", "")) if isinstance(self.body, dict) else ""


class Book:
    """What was acknowledged, and what may have happened: nobody knows, as there was no answer."""

    def __init__(self) -> None:
        self.acknowledged = list[Act]()
        self.unanswered = list[Act]()
        self.decisions = list[tuple[str, str, str, str]]()  # approval, actor, decision, key
        self.events = dict[str, tuple[str, Any]]()  # type and data
        self.troubles = list[str]()  # answers that should not be
        self.counts = Counter[str]()
        self._lock = threading.Lock()

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1


class Person:
    """Somebody with a token. Any number of threads may act for one."""

    def __init__(self, name: str, secret: str, bases: list[str], book: Book, seed: int) -> None:
        self.name, self.bases, self.book, self.chance = name, bases, book, Random(f"{name} {seed}")
        self.http = httpx.Client(headers={"Authorization": f"Bearer {secret}"}, timeout=20)

    def close(self) -> None:
        self.http.close()

    # requests

    def ask(self, path: str, body: Lines | None = None, key: str | None = None) -> Answer:
        """A request that may come twice: sent again until there is an answer, sometimes although
        one is on its way."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            impatient = body is not None and self.chance.random() < 0.15
            answer = self._send(
                path, body, key, self.chance.choice(GIVE_UP_S) if impatient else None
            )
            if answer is not None and answer.status < 500:
                return answer
            assert time.monotonic() < deadline, f"no answer to {path}: {answer}"
            time.sleep(0.0 if impatient else 0.05)

    def _send(
        self, path: str, body: Lines | None, key: str | None, give_up_s: float | None = None
    ) -> Answer | None:
        """One request, to one of the servers. None: there was no answer."""
        headers = {} if key is None else {"Idempotency-Key": key}
        limits: Any = {} if give_up_s is None else {"timeout": httpx.Timeout(20, read=give_up_s)}
        url = f"{self.chance.choice(self.bases)}/api/v1{path}"
        try:
            got = (
                self.http.get(url)
                if body is None
                else self.http.post(url, json=body, headers=headers, **limits)
            )
        except httpx.ConnectError:
            self.book.count("no server there")
            return None
        except httpx.TransportError:
            self.book.count("looked away" if give_up_s else "cut off")
            return None
        if got.status_code == 429 and got.json()["code"] == "too_many_requests":  # nothing was done
            self.book.count("429")
            return None
        if got.status_code >= 500:
            self.book.count(f"{got.status_code}")
        return Answer(got.status_code, got.json())

    # acts

    def start(self, id: str, workflow: str, inputs: Any) -> None:
        self._good(
            self.ask("/executions", {"workflow": workflow, "inputs": inputs, "id": id}, key=id),
            200,
            201,
        )

    def decide(self, approval: str, how: str, key: str, **body: Any) -> Answer:
        """Whether it counts is for the caller to see."""
        answer = self.ask(f"/approvals/{approval}/{how}", body, key)
        if answer.status == 200:
            self.book.decisions.append((approval, self.name, how, key))
            self.book.acknowledged.append(Act(self.name, f"approval.{how}", approval))
        return answer

    def signal(self, id: str, name: str, payload: Any, key: str) -> None:
        self._good(
            self.ask(f"/executions/{id}/signals", {"name": name, "payload": payload}, key), 200
        )
        self.book.acknowledged.append(
            Act(self.name, "execution.signal", id, f"{id}#{personal_key(person(self.name), key)}")
        )

    def publish(self, id: str, type: str, data: Any) -> None:
        self._good(self.ask("/events", {"type": type, "data": data, "id": id}), 200)
        self.book.acknowledged.append(Act(self.name, "event.publish", id))
        self.book.events[id] = (type, data)

    def run(self, schedule: str, key: str) -> str:
        """The execution that was started, now or by this key before."""
        answer = self.ask(f"/schedules/{schedule}/run", {}, key)
        self._good(answer, 200, 201)
        return str(answer.body["id"])

    def pause(self, id: str, mark: str, **body: Any) -> bool:
        """False: it has ended."""
        return self._changed("execution", id, "pause", mark, body)

    def resume(self, id: str, mark: str, data: Any = None) -> bool:
        """False: it was not paused, or a try without an answer has done it."""
        return self._changed(
            "execution", id, "resume", mark, {} if data is None else {"data": data}
        )

    def toggle(self, schedule: str, mark: str) -> None:
        """Pauses a schedule and resumes it; others may be about it, too."""
        self._changed("schedule", schedule, "pause", mark, {})
        self._changed("schedule", schedule, "resume", "", {})

    def _changed(self, kind: str, id: str, what: str, mark: str, body: Lines) -> bool:
        """Without a mark a try cannot be told from another one."""
        deadline, tries = time.monotonic() + PATIENCE_S, 0
        while True:
            act = Act(self.name, f"{kind}.{what}", id, mark and f"{mark} {tries}")
            answer = self._send(
                f"/{kind}s/{id}/{what}", {**body, "reason": act.mark} if mark else body, None
            )
            if answer is not None and answer.status < 500:
                self._good(answer, 200)
                self.book.acknowledged += [act] if answer.body["changed"] else []
                return bool(answer.body["changed"])
            self.book.unanswered.append(act)
            assert time.monotonic() < deadline, f"no answer to {act}: {answer}"
            tries += 1
            time.sleep(0.02)

    def _good(self, answer: Answer, *statuses: int) -> None:
        assert answer.status in statuses, f"{self.name}: {answer}"

    # looking

    def seen(self, path: str, wanted: Callable[[Any], bool] = bool, within_s: float = 60.0) -> Any:
        """What is at a path, once it is as it is wanted."""
        deadline = time.monotonic() + within_s
        while True:
            answer = self.ask(path)
            if answer.status == 200 and wanted(answer.body):
                return answer.body
            assert time.monotonic() < deadline, f"{path} never came to be: {answer}"
            time.sleep(0.05)
