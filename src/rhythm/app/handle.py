"""A handle: an execution that was started, and what one can do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from rhythm.app.aio import AsyncHandle
    from rhythm.app.application import Rhythm
    from rhythm.app.executions import Executions
    from rhythm.app.views import ExecutionView


class Handle:
    """An execution. `str(handle)` is its id; `created` is false if it was there before the call
    that returned this."""

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

    def result(self, timeout: float | str | None = None) -> Any:
        """Waits for the end: the result. `ExecutionFailed` if there is none, `ResultTimeout` if it
        does not come in time."""
        return self._executions.result(self.id, timeout)

    def get(self) -> ExecutionView:
        """The execution as it is now."""
        return self._executions.get(self.id)

    def status(self) -> str:
        """pending, running, suspended, paused, completed, failed, cancelled or blocked."""
        return self._executions.get(self.id).status

    def cancel(self) -> bool:
        """Asks it to end. False: it has ended already."""
        return self._executions.cancel(self.id)

    def signal(self, name: str, payload: Any = None, *, signal_id: str | None = None) -> bool:
        """Sends it a signal. False: this `signal_id` was sent before."""
        return self._executions.signal(self.id, name, payload, signal_id=signal_id)


if TYPE_CHECKING:
    Id: TypeAlias = str | Handle | AsyncHandle  # what names an execution to the application


def id_of(given: Id) -> str:
    """The id of an execution that is named by its id or its handle."""
    handle = getattr(given, "_behind", given)  # of one with coroutines
    if isinstance(handle, Handle):
        return handle.id
    if not isinstance(given, str):
        raise TypeError(
            f"an execution is named by its id, a text, or by its handle, not by {given!r:.80}"
        )
    return given
