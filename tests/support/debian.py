"""Files of Debian packages that the tests need: the system's, or unpacked into a cache of the
checkout without installing anything."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "debian"
PLACES = ("usr/sbin", "usr/bin", "usr/lib", "lib")
LIBRARY = re.compile(r"lib(?!c6)[a-z0-9.+-]+")  # but for the one that every program has


def unpacked(package: str, file: str) -> Path | None:
    """The file of a package: as installed, or unpacked. None: there is no apt, or it has no such
    package."""
    return (
        _found(Path("/"), file)
        or _found(CACHE, file)
        or (_found(CACHE, file) if _unpack(package) else None)
    )


def libraries() -> str:
    """For LD_LIBRARY_PATH: where the libraries are that were unpacked with a program."""
    return ":".join(str(folder) for folder in sorted(CACHE.glob("**/*-linux-gnu")))


def _found(root: Path, file: str) -> Path | None:
    """A library lies in a folder of its architecture, or one deeper."""
    for place in PLACES:
        for pattern in (file, f"*-linux-gnu*/{file}", f"*-linux-gnu*/*/{file}"):
            if found := next(iter(sorted((root / place).glob(pattern))), None):
                return found
    return None


def _unpack(package: str) -> bool:
    """Downloads a package, and the libraries it depends on, as its user may: nothing is installed,
    and nothing outside is changed."""
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        return False
    CACHE.mkdir(parents=True, exist_ok=True)
    done = _run("apt-cache", "depends", "--important", "--no-suggests", "--no-recommends", package)
    depends = re.findall(r"Depends: (\S+)", done.stdout)
    for name in (package, *(name for name in depends if LIBRARY.fullmatch(name))):
        _run("apt-get", "download", name)
    for archive in CACHE.glob("*.deb"):
        _run("dpkg", "-x", str(archive), str(CACHE))
        archive.unlink()
    return True


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=CACHE, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
