"""A handle: an execution that was started, and what can be done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing import Self, TypeAlias

    from typing_extensions import TypeVar

    from rhythm.app.application import Rhythm
    from rhythm.app.executions import Executions
    from rhythm.app.views import ExecutionView

    # What its workflow returns. Only type checkers need the default, and they know this module.
    R = TypeVar("R", default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")


class ExecutionId(str):
    """The id of an execution with something beside it. A copy in another process is a plain id."""

    def __repr__(self) -> str:
        return f"<execution {self}>"

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Handle(ExecutionId, Generic[R]):
    """An execution that was started: its id, a text, and what can be done with it.

    `created` is false if the execution existed before the call that returned this handle.

    It is a text so that it passes wherever an id does: into JSON, a response of a web framework, a
    column of your database, the inputs of another workflow.
    """

    def __new__(cls, app: Rhythm | Executions, id: str, created: bool = True) -> Self:
        """Returns the handle of the execution with this id."""
        return super().__new__(cls, id)

    def __init__(self, app: Rhythm | Executions, id: str, created: bool = True) -> None:
        self._executions, self.id, self.created = app, str(id), created

    def result(self, timeout: float | str | None = None) -> R:
        """Waits until the execution has ended, and returns its result.

        Raises `ExecutionFailed` if it ended without one, and `ResultTimeout` if it did not end in
        time.
        """
        found: R = self._executions.result(self.id, timeout)
        return found

    def get(self) -> ExecutionView:
        """Returns the execution as it is now."""
        return self._executions.get(self.id)

    def status(self) -> str:
        """Returns pending, running, suspended, paused, completed, failed, cancelled or blocked."""
        return self._executions.get(self.id).status

    def cancel(self) -> bool:
        """Asks the execution to end. Returns False if it has ended already."""
        return self._executions.cancel(self.id)

    def signal(
        self,
        name: str,
        payload: Any = None,
        *,
        signal_id: str | None = None,
        connection: Any = None,
    ) -> bool:
        """Sends the execution a signal. Returns False if this `signal_id` was sent before."""
        return self._executions.signal(
            self.id, name, payload, signal_id=signal_id, connection=connection
        )


if TYPE_CHECKING:
    Id: TypeAlias = str | ExecutionView  # what callers may give as an execution; a handle is a text


def id_of(given: Id) -> str:
    """Returns the id of an execution, given as its id, its handle or its view.

    Raises `TypeError` for others.
    """
    from rhythm.app.views import ExecutionView

    id = given.id if isinstance(given, ExecutionView) else given
    if not isinstance(id, str):
        raise TypeError(
            "an execution is named by its id, a text, by its handle, or by what `get` and `list` "
            f"return, not by {given!r:.80}"
        )
    return str.__str__(id)
