"""Whether this process is alive, whether it is ready, and what it has counted.

`/healthz` and `/readyz` are public: they show names, never what a database or a program said.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from rhythm.http.answers import answer
from rhythm.worker.metrics import (
    SECONDS,
    TYPE,
    Asked,
    Counter,
    Histogram,
    Metric,
    Metrics,
    depth,
    oldest_s,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rhythm.app import Rhythm
    from rhythm.http.server import Server

ANSWER_S = 2.0  # how long the database may take before it counts as not answering
REQUESTS = Metric(
    "rhythm_http_requests_total",
    "counter",
    ("method", "route", "status"),
    "requests that were answered",
)
DURATION = Metric(
    "rhythm_http_request_duration_seconds",
    "histogram",
    ("route",),
    "until the answer had begun, from when the request had come",
    SECONDS,
)
STREAMS = Metric("rhythm_http_streams", "gauge", (), "streams of executions that are open")


async def healthz() -> Response:
    """Says that the process is alive."""
    return answer({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Says whether the process is ready.

    It is ready if the database answers and every worker in this process does its work.
    """
    problems = await request.scope["rhythm.server"].looked_at()
    return answer({"ready": not problems, "problems": problems}, 503 if problems else 200)


def metrics(request: Request) -> Response:
    """Returns the metrics of this process, in the text format of Prometheus."""
    return Response(request.scope["rhythm.server"].counts.text(), media_type=TYPE)


class Counts:
    """Counts the requests of this server, and shows what the workers of this process count."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._requests, self._took = Counter(REQUESTS), Histogram(DURATION)
        asked = Asked(server.app.queues.counts, time.monotonic)
        self._own = Metrics(
            {
                "rhythm_queue_depth": lambda: depth(asked.read()),
                "rhythm_queue_oldest_age_seconds": lambda: oldest_s(asked.read()),
            }
        )

    def request(self, method: str, route: str, status: int, took_s: float) -> None:
        """Counts a request that was answered."""
        self._requests.add(method, route, str(status))
        self._took.observe(took_s, route)

    def text(self) -> str:
        """Returns all metrics, in the text format of Prometheus."""
        workers = self._server.app.running
        rest = workers[0].metrics() if workers else self._own.text()
        streams = written(STREAMS, {(): float(self._server.shares.streams)})
        return "\n".join([*self._requests.lines(), *self._took.lines(), *streams]) + "\n" + rest


class DatabaseProbe:
    """Asks whether the database answers: one question at a time, and no caller waits for long."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._answered = False

    def answers(self) -> bool:
        """Returns whether the database answers, within two seconds.

        Callers that ask at the same time share one question.
        """
        with self._lock:
            if self._asking is None or not self._asking.is_alive():
                self._answered = False
                self._asking = threading.Thread(
                    target=self._run, name="rhythm readiness", daemon=True
                )
                self._asking.start()
            asking = self._asking
        asking.join(ANSWER_S)
        return not asking.is_alive() and self._answered

    def _run(self) -> None:
        try:
            self._ask()
            self._answered = True
        except Exception:  # whatever the reason is, the database does not answer
            self._answered = False


def problems_of(app: Rhythm) -> list[str]:
    """Returns what is wrong with the workers of this process."""
    found: list[str] = []
    for worker in list(app.running):
        health = worker.health()
        if health.draining or not worker.alive:
            found.append(
                f"worker {worker.name} {'is being stopped' if worker.alive else 'has ended'}"
            )
        elif not health.healthy:
            found.append(f"worker {worker.name}: a loop of it is late or fails")
    return found
