"""Installs the peers, each into a virtual environment of its own, from wherever pip and npm take
their packages; and what is compiled of this checkout into a folder that Python searches first."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from bench.peers.engines import Engine

ROOT = Path(__file__).parents[2]
COMPILED = "rhythm-compiled"  # the folder for all of ours that are compiled
INSTALLED = ".installed"  # what a virtual environment holds, once it is complete
LIMIT_S = 600


class NotInstalled(Exception):
    """A peer that cannot be had here, with the reason."""


def python_of(engine: Engine, cache: Path) -> str:
    """The Python that runs the engine's script, with its packages installed."""
    if engine.compiled:
        _compile(cache / COMPILED)
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


def _compile(folder: Path) -> None:
    """Has Rhythm in the folder as its sources are now. Its dependencies are those of this Python,
    so that nothing else differs."""
    wanted, marker = _digest(ROOT), folder / INSTALLED
    if marker.exists() and marker.read_text(encoding="utf-8") == wanted:
        return
    print("Compiling Rhythm (once, until a source changes)…", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([*pip, "--no-deps", "--target", str(folder), str(ROOT)], {"RHYTHM_COMPILED": "1"})
    marker.write_text(wanted, encoding="utf-8")


def _digest(root: Path) -> str:
    """What changes with every file that the compiled wheel is made of."""
    digest = hashlib.sha256()
    files = [path for path in (root / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    for path in sorted([*files, root / "hatch_build.py", root / "pyproject.toml"]):
        digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _run(command: list[str], environment: Mapping[str, str] = {}) -> None:
    env = {**os.environ, **environment}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotInstalled(f"not installed: {problem}") from problem
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise NotInstalled(f"not installed: {said[-1]}")
