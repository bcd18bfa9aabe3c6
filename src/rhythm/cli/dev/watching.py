"""Which files of a project have changed, by their times and sizes.

Nothing is installed for it: to compare the few files that a project has loaded takes a fraction of
a millisecond. The whole project is walked through only while its code cannot be loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from rhythm.lang.languages import FOUND_IN_FOLDERS
from rhythm.record import Record

CODE = (".py", ".toml", *FOUND_IN_FOLDERS)  # with the settings
# Folders without code of the project's own, besides hidden ones and virtual environments.
SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
RHYTHM = os.path.join(os.path.realpath(os.path.join(__file__, *(3 * [os.pardir]))), "")
MAX_FILES = 10_000  # of a project, while all of it is watched

Stamp = tuple[int, int, int]  # time of the last change, size, number of the file


class Watched(Record):
    """What is watched: files, and the workflow files of folders, which may get new ones.

    Without `files` it is all code below the folders.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]

    def as_dict(self) -> dict[str, list[str]]:
        """Returns both, to be sent as JSON."""
        return {"files": list(self.files), "folders": list(self.folders)}

    def stamps(self) -> dict[str, Stamp]:
        """Returns the stamps of all files that are there."""
        walked = (file for each in self.folders for file in walk(each, self._endings))
        found = (*self.files, *walked)
        return {name: stamp for name in found if (stamp := _stamp(name)) is not None}

    def covers(self, name: str) -> bool:
        """Returns whether a file is watched, also if it is not there."""
        return name in self.files or (
            name.endswith(self._endings) and any(_is_below(name, each) for each in self.folders)
        )

    @property
    def _endings(self) -> tuple[str, ...]:
        return FOUND_IN_FOLDERS if self.files else CODE


def walk(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yields the files with these endings below a folder, up to `MAX_FILES`.

    Hidden folders, those of `SKIPPED` and virtual environments are left out.
    """
    left, count = [folder], 0
    while left:
        place = left.pop()
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name in SKIPPED:
                continue
            if entry.is_dir(follow_symlinks=False):
                left.append(entry.path)
            elif entry.name.endswith(endings):
                count += 1
                if count > MAX_FILES:
                    return
                yield os.path.normpath(entry.path)


def _is_below(name: str, folder: str) -> bool:
    folder = os.path.normpath(folder)
    return folder == "." or name.startswith(os.path.join(folder, ""))


def _stamp(name: str) -> Stamp | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class FileChanges:
    """Finds out that files have changed, and have stayed as they are since: nobody is writing."""

    def __init__(self, watched: Watched) -> None:
        self._watched, self._known = watched, watched.stamps()
        self._last = self._known

    def watch(self, watched: Watched) -> None:
        """Watches other files from now on. What was watched before keeps its stamps.

        So a change that nobody has asked for yet is not lost.
        """
        now = watched.stamps()
        kept = {name: stamp for name, stamp in self._known.items() if watched.covers(name)}
        more = {name: stamp for name, stamp in now.items() if not self._watched.covers(name)}
        self._watched, self._known, self._last = watched, {**more, **kept}, now

    def changed(self) -> list[str]:
        """Returns the files that changed since the last time, once they are the same twice."""
        now, before = self._watched.stamps(), self._last
        self._last = now
        if now == self._known or now != before:
            return []
        known, self._known = self._known, now
        return sorted(each for each in {*now, *known} if now.get(each) != known.get(each))


def loaded_files(folders: Iterable[str], modules: Iterable[object]) -> list[str]:
    """Returns the files below these folders that the modules were loaded from.

    Those of libraries that are installed below them, and of Rhythm itself, are left out.
    """
    roots = {os.path.realpath(folder) for folder in folders}
    named = {os.path.abspath(file) for each in modules if (file := _file_of(each))}
    # also a link to a file elsewhere: its stamp is that of the file
    found = {*map(os.path.realpath, named), *named}
    near = (os.path.relpath(file) for file in found if any(_is_own(file, root) for root in roots))
    return sorted(near)


def _file_of(module: object) -> str:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) and file.endswith(".py") else ""


def _is_own(file: str, root: str) -> bool:
    """Whether a file is the project's own, and not in a folder that is left out."""
    begin = os.path.join(root, "")
    if not file.startswith(begin) or file.startswith(RHYTHM):
        return False
    folders = file[len(begin) :].split(os.sep)[:-1]
    return not any(each.startswith(".") or each in SKIPPED for each in folders)
