"""The HTTP server of `rhythm worker --metrics-port`: the worker's metrics and health.

`/metrics` has the metrics in the text format of Prometheus. `/healthz` says that the process lives,
`/readyz` that it does its work, or why not: they are for the system that starts and stops the
worker. It is plain HTTP. Nothing can be changed through it, and it tells only numbers and names.
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

CLIENT_TIMEOUT_S = 5.0  # a client that is silent for longer is disconnected
PATHS = ("/metrics", "/healthz", "/readyz")


class Exporter:
    """The HTTP server. It answers from the start of the process.

    `worker` is None until the database answers and the worker is made.
    """

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
        """The URL of the server, without a path."""
        host, port = str(self.server.server_address[0]), self.server.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def answer(self, path: str) -> tuple[int, str, str]:
        """Returns the status, content type and body for a path."""
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
        """Binds without looking up the host name of the address, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs nothing: a client that disconnects is not an event."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    timeout = CLIENT_TIMEOUT_S

    def answer(self, path: str) -> tuple[int, str, str]:
        """Returns the status, content type and body for a path."""
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
        """Logs nothing: requests are not events."""
