"""`rhythm worker --metrics-port`: what a worker counts and how it is, over HTTP, for Prometheus and
for whoever starts and stops it.

`/metrics` in the text format of Prometheus; `/healthz`: the process lives; `/readyz`: it does its
work, or why not. Plain HTTP, nothing can be changed here, and nothing is told but numbers and
names.
"""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any

from rhythm.cli.command import UsageError

if TYPE_CHECKING:
    from rhythm.app.pooled import PooledWorker

CLIENT_TIMEOUT_S = 5.0  # a client that says nothing for so long is given up
PATHS = ("/metrics", "/healthz", "/readyz")


class Exporter:
    """Answers from the start of the process on; the worker comes when the database does."""

    def __init__(self, host: str, port: int) -> None:
        self.worker: PooledWorker | None = None
        exporter = self

        class Handler(_Handler):
            def answer(self, path: str) -> tuple[int, str, str]:
                return exporter.answer(path)

        try:
            self.server = (_Server6 if ":" in host else _Server)((host, port), Handler)
        except (OSError, OverflowError) as problem:
            raise UsageError(
                f"metrics cannot be served on {host} port {port}: {problem}; choose "
                f"another --metrics-port"
            ) from problem
        threading.Thread(
            target=self.server.serve_forever, name="rhythm metrics server", daemon=True
        ).start()

    @property
    def url(self) -> str:
        host, port = str(self.server.server_address[0]), self.server.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def answer(self, path: str) -> tuple[int, str, str]:
        """Status, content type and body."""
        if path == "/healthz":
            return 200, "text/plain; charset=utf-8", "ok\n"
        if path == "/readyz":
            return _ready(self.worker)
        if path == "/metrics":
            from rhythm.worker.metrics import TYPE

            return 200, TYPE, self.worker.metrics() if self.worker else ""
        return 404, "text/plain; charset=utf-8", f"there is {', '.join(PATHS)}\n"


def _ready(worker: PooledWorker | None) -> tuple[int, str, str]:
    if worker is None:
        return _document(False, {"problems": ["it waits for the database"]})
    health = worker.health()
    problems = [
        *health.problems,
        *(["it is being stopped"] if health.draining else []),
        *([] if worker.alive else ["it has ended"]),
    ]
    known = {
        "worker": health.worker,
        "running": health.running,
        "draining": health.draining,
        "polled_s": health.polled_s,
    }
    return _document(not problems, {**known, "problems": problems})


def _document(ready: bool, known: dict[str, Any]) -> tuple[int, str, str]:
    return 200 if ready else 503, "application/json", json.dumps({"ready": ready, **known}) + "\n"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Without asking for the name of the address, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no event."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    timeout = CLIENT_TIMEOUT_S

    def answer(self, path: str) -> tuple[int, str, str]:
        raise NotImplementedError

    def do_GET(self) -> None:
        status, kind, body = self.answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body.encode())

    do_HEAD = do_GET

    def version_string(self) -> str:
        return "rhythm"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are no events."""
