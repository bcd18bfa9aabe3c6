"""A worker process until there is `rhythm worker`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
import time

from rhythm.app.application import Rhythm
from rhythm.cli.app import load_app
from rhythm.errors import StoreError
from rhythm.settings import SETTINGS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--app")
    parser.add_argument("--database-url")
    parser.add_argument("--concurrency", type=int)
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    stop = threading.Event()
    grace_s = float(os.environ.get("RHYTHM_SHUTDOWN_GRACE", "5"))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1) if stop.is_set() else stop.set())
    load_app(given.app)
    environment = {name: value for name, value in os.environ.items() if name.removeprefix("RHYTHM_").lower() in SETTINGS}
    while not stop.is_set():
        try:
            app = Rhythm(given.database_url, environment=environment, concurrency=given.concurrency, auto_migrate=False)
            break
        except StoreError as problem:
            print("waiting for the database:", problem, flush=True)
            time.sleep(0.2)
    else:
        return
    worker = app.worker()
    print("worker", worker._worker.name, "started", flush=True)
    worker.start()
    stop.wait()
    worker.stop(grace_s)
    app.close()


if __name__ == "__main__":
    main()
