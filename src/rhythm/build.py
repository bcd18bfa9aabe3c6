"""Which build of Rhythm this is: plain Python, or with compiled modules beside it."""

from __future__ import annotations

from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec

ONE_OF_THEM = "rhythm.vm.interpreter"  # of the modules that are compiled: all of them, or none


def is_compiled() -> bool:
    """Whether Python imports the compiled modules. It imports none to find out."""
    found = find_spec(ONE_OF_THEM)
    return found is not None and isinstance(found.loader, ExtensionFileLoader)


def shown_version() -> str:
    """Returns the version of Rhythm as people see it: "1.0", or "1.0 (compiled)"."""
    from rhythm import __version__

    return f"{__version__} (compiled)" if is_compiled() else __version__
