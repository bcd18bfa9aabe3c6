"""The stored source of a Python workflow: its lines have the numbers of the file."""

from __future__ import annotations

from rhythm.authoring.workflow import Workflow, default_workflows
from tests.app.conftest import MakeApp


async def stored(n: int) -> int:
    """Stands some lines below the beginning of its file."""
    return n


def test_lines_have_their_numbers_and_people_see_no_empty_ones(make_app: MakeApp) -> None:
    default_workflows.add(Workflow(stored, "stored", {}))
    app = make_app()
    first = stored.__code__.co_firstlineno
    for scope in (None, ("stored",), ("other",)):
        found = app.workflows.source("stored", app.workflow("stored").version, scope=scope)
        assert found is not None
        assert found.text.splitlines()[first - 1] == "async def stored(n: int) -> int:"
        assert found.own.startswith("async def stored(n: int) -> int:\n")
