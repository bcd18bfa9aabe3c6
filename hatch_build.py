"""The build hook of the wheel: with `RHYTHM_COMPILED=1` in the environment it compiles the hot
modules with Cython, else it does nothing.

The sources are compiled as they are, and stay in the wheel beside what is made of them: Python
imports the compiled modules, and tracebacks show the sources. So there is one text and one meaning;
`make test-compiled` runs all tests with the compiled modules.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "RHYTHM_COMPILED"
# Older ones do not know `match`. What 3.3.1 gets wrong is listed in tests/test_compiled.py.
REQUIREMENTS = ["Cython>=3.3.1,<3.4", "setuptools>=69"]
# What a step passes through between a claim and the answer to its commit, as far as it pays: these
# take a fifth off a step, and all else that a worker imports would take a few hundredths more. What
# recurses here has a limit of its own: compiled functions call each other past Python's limit of
# recursion, until the C stack overflows. So `vm/awaits`, `vm/statements`, `vm/expressions` and
# `vm/closures`, which go as deep as a program lets them, stay Python.
MODULES = """
    vm/interpreter vm/machine vm/operations vm/snapshot vm/values
    engine/inputs engine/payload engine/planning engine/reading engine/rows
    worker/attempts worker/claiming worker/committer worker/current worker/dispatch worker/ended
    worker/executor worker/loading worker/loop worker/metrics worker/narration worker/ownership
    worker/quick worker/sizes worker/slots worker/turns
    store/light_turns store/rows
    store/postgres/connection store/postgres/light store/postgres/turns store/postgres/wire
""".split()
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # hints are for people and for mypy; they change no meaning
    "binding": True,  # functions can be inspected, and become methods, as those of Python
}
# The warning is how wrong C shows of which Cython knows nothing: it would end the process.
FLAGS = [] if sys.platform == "win32" else ["-O2", "-g0", "-Werror=int-to-pointer-cast"]
ADVICE = (
    "It takes a C compiler and the headers of Python (on Debian and Ubuntu: apt install gcc "
    f"python3-dev). Without {VARIABLE} the same Rhythm is installed as plain Python."
)


def is_wanted() -> bool:
    """Whether whoever builds asks for the compiled modules."""
    return os.environ.get(VARIABLE) == "1"


class CompiledModules(BuildHookInterface[Any]):
    """Puts the compiled modules into the wheel, if they are wanted."""

    _folder: TemporaryDirectory[str] | None = None  # what was made, until the wheel is written

    def dependencies(self) -> list[str]:
        return REQUIREMENTS if is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles. The wheel is then of this platform and this Python alone."""
        if not is_wanted():
            return
        if version == "editable":
            self._refuse(f"An editable install runs the sources: leave out {VARIABLE}, or `-e`.")
        self._folder = TemporaryDirectory(prefix="rhythm-compiled-")
        try:
            made = compiled(Path(self.root, "src"), Path(self._folder.name))
        except ImportError as problem:
            needed = " ".join(f"'{each}'" for each in REQUIREMENTS)
            self._refuse(f"{problem}. Without build isolation, first: pip install {needed}")
        except Exception as problem:
            self._refuse(f"{type(problem).__name__}: {problem}\n{ADVICE}")
        build_data["force_include"].update(made)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _refuse(self, problem: str) -> NoReturn:
        self.app.abort(f"Rhythm cannot be compiled ({VARIABLE}=1). {problem}")
        raise AssertionError("abort ends the process")


def compiled(source: Path, folder: Path) -> dict[str, str]:
    """Compiles the modules into the folder. Returns the place in a wheel of each file it made."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    paths = {f"rhythm.{name.replace('/', '.')}": f"rhythm/{name}.py" for name in MODULES}
    extensions = [Extension(name, [path], extra_compile_args=FLAGS) for name, path in paths.items()]
    # tracebacks name the paths as they are given here, and find them wherever Rhythm is installed
    with contextlib.chdir(source):
        translated = cythonize(
            extensions, build_dir=f"{folder}/c", compiler_directives=DIRECTIVES, quiet=True
        )
        command = Distribution({"ext_modules": translated}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = f"{folder}/made", f"{folder}/objects"
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        command.run()
    made = folder / "made"
    return {str(path): path.relative_to(made).as_posix() for path in made.rglob("*.*")}
