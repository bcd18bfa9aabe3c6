"""A handle: an execution that was started, and what can be done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import TypeVar

    from rhythm.app.aio import AsyncHandle
    from rhythm.app.application import Rhythm
    from rhythm.app.executions import Executions
    from rhythm.app.views import ExecutionView

    # What its workflow returns. Only type checkers need the default, and they know this module.
    R = TypeVar("R", default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")


class Handle(Generic[R]):
    """An execution. `str(handle)` is its id.

    `created` is false if the execution existed before the call that returned this handle.
    """

    def __init__(self, app: Rhythm | Executions, id: str, created: bool = True) -> None:
        self._executions, self.id, self.created = app, id, created

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<execution {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

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
    Id: TypeAlias = str | Handle | AsyncHandle  # what callers may give as an execution


def id_of(given: Id) -> str:
    """Returns the id of an execution, given as its id or its handle.

    Raises `TypeError` for others.
    """
    handle = getattr(given, "_behind", given)  # an AsyncHandle has a Handle behind it
    if isinstance(handle, Handle):
        return handle.id
    if not isinstance(given, str):
        raise TypeError(
            f"an execution is named by its id, a text, or by its handle, not by {given!r:.80}"
        )
    return given
