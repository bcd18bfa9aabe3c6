"""A worker process of the jobs, on the database that the environment names."""

from __future__ import annotations

import signal
import threading

import bench.tasks
import rhythm

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
with rhythm.Rhythm(tasks=[bench.tasks.note]) as app, app.worker():
    stop.wait()
