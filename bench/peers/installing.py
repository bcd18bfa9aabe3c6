"""Installs the peers, each into a virtual environment of its own, from wherever pip and npm take
their packages."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from bench.peers.engines import Engine

INSTALLED = ".installed"  # what a virtual environment holds, once it is complete
LIMIT_S = 600


class NotInstalled(Exception):
    """A peer that cannot be had here, with the reason."""


def python_of(engine: Engine, cache: Path) -> str:
    """The Python that runs the engine's script, with its packages installed."""
    if not engine.environment:
        return sys.executable
    folder = cache / engine.environment
    wanted, marker = "\n".join([*engine.packages, *engine.npm]), folder / INSTALLED
    if not marker.exists() or marker.read_text(encoding="utf-8") != wanted:
        _install(engine, folder)
        marker.write_text(wanted, encoding="utf-8")
    return str(folder / "bin" / "python")


def _install(engine: Engine, folder: Path) -> None:
    print(f"Installing {engine.title} (once)…", flush=True)
    venv.create(folder, clear=True, with_pip=True, symlinks=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
    _run([*pip, "--disable-pip-version-check", *engine.packages])
    if engine.npm:
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
        _run([*npm, *engine.npm])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotInstalled(f"not installed: {problem}") from problem
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise NotInstalled(f"not installed: {said[-1]}")
