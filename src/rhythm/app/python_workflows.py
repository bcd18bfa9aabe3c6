"""The Python workflows of an application: registered when it is made, and before they are needed.

A module may define workflows after it has made its application, so each start and each worker
registers what was added since. That costs a comparison of two numbers if nothing was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rhythm.errors import DuplicateWorkflow

if TYPE_CHECKING:
    from rhythm.authoring.workflow import PythonWorkflows, Workflow
    from rhythm.store.interfaces.store import Store


class PythonRegistration:
    """Registers the workflows of `@rhythm.workflow`, or those that an application was given."""

    def __init__(self, store: Store, given: Iterable[Workflow[..., Any]] | None) -> None:
        self._store = store
        self._known = _known(given)
        self._registered = 0  # how many there were when they were last registered

    @property
    def names(self) -> frozenset[str]:
        """The names of the workflows, also of those that are not registered yet."""
        return frozenset(self._known)

    def register(self, files: Iterable[str] = (), store: Store | None = None) -> None:
        """Registers what was added since the last call.

        `files` has the names of the workflows in the application's files. Raises
        `DuplicateWorkflow` if a function has one of them, and `FlowError` with every problem of
        each that does not compile.

        `store`: on the connection of a caller. An SQLite file has one writer, who may be the
        caller: so they are registered in that transaction, and again later if it is rolled back.
        """
        definitions_in = (store or self._store).definitions
        count = self._known.count
        if self._registered == count:
            return
        from rhythm.app.loading import compile_functions
        from rhythm.app.schedules import annotated_schedules

        for name in self._known.keys() & {*files}:
            # Each start of a process would register both, one after the other.
            raise DuplicateWorkflow(
                f"two workflows are called {name!r}: one at {self._known[name].place}, and one in "
                f"a file of workflow_paths\nGive one another name: @rhythm.workflow(name=…)"
            )
        if definitions := compile_functions(list(self._known.values())):
            definitions_in.register(definitions, annotated_schedules(definitions, None))
        if definitions_in is self._store.definitions:
            self._registered = count


def _known(given: Iterable[Workflow[..., Any]] | None) -> PythonWorkflows:
    from rhythm.authoring.workflow import PythonWorkflows, default_workflows

    if given is None:
        return default_workflows
    made = PythonWorkflows()
    for workflow in given:
        made.add(workflow)
    return made
