"""What is stored of a run beside its figures: which Rhythm, where, with which settings, and how
much else the machine did."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.servers import Server


def begun(postgres: Server, rounds: int, scale: float) -> dict[str, Any]:
    """A run that begins now, on this machine."""
    return {
        "commit": _commit(),
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "postgresql": postgres.version,
        },
        "settings": postgres.settings,
        "rounds": rounds,
        "scale": scale,
        "load": {"begin": load()},
    }


def _commit() -> str:
    """Which Rhythm it is; empty outside of a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def load() -> float:
    """How much else goes on: figures of a busy machine are to be read as ratios."""
    return round(os.getloadavg()[0], 1) if sys.platform != "win32" else 0.0


def say_where(about: dict[str, Any]) -> None:
    """Prints what is known at the beginning."""
    machine = about["machine"]
    settings = ", ".join(f"{name}={value}" for name, value in about["settings"].items())
    print(
        f"{machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"load {about['load']['begin']}\nPostgreSQL {machine['postgresql']}: {settings}\n",
        flush=True,
    )
