"""The plugin of pytest: the fixture `env`, and the marker `rhythm`.

pytest loads it in every run, so it imports the kit only when a test asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rhythm.testing.env import Env

MARKER = (
    "rhythm(database='memory', workflow_paths=None, start=None, **settings): how `env` is made: on "
    "'memory', 'sqlite', 'postgresql' or a URL"
)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Notes which tasks the modules have, before the fixtures of a test can replace them."""
    if "rhythm.worker.handlers" in sys.modules:
        from rhythm.testing.patches import note_tasks

        note_tasks()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Hides our own frames if Rhythm refuses something: the line of the test says enough.

    pytest asks each module for its own mark; `--full-trace` shows all.
    """
    if call.excinfo is not None:
        for name, module in list(sys.modules.items()):
            if name.startswith("rhythm."):
                vars(module).setdefault("__tracebackhide__", _is_refusal)


def _is_refusal(found: pytest.ExceptionInfo[BaseException]) -> bool:
    errors = sys.modules.get("rhythm.errors")
    return errors is not None and isinstance(found.value, errors.RhythmError)


@pytest.fixture
def env(request: pytest.FixtureRequest) -> Iterator[Env]:
    """A test's own Rhythm: in memory, with a clock that jumps and tasks that can be replaced.

    `@pytest.mark.rhythm(database="sqlite")` makes it on a file, `"postgresql"` on the server at
    RHYTHM_TEST_DATABASE_URL.
    """
    from rhythm.testing.env import Env

    given: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("rhythm"))):
        if marker.args:
            pytest.fail(f"write pytest.mark.rhythm(database={marker.args[0]!r}), by name")
        given |= marker.kwargs
    with Env(**given) as made:
        yield made
