"""`Trial`: one execution in a test, and what can be asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rhythm.app.handle import Handle
from rhythm.app.views import TraceStep

if TYPE_CHECKING:
    from rhythm.testing.env import Env

R = TypeVar("R")


class Trial(Handle[R]):
    """An execution in a test. It is a handle: `str(run)` is its id."""

    def __init__(self, env: Env, id: str, created: bool = True) -> None:
        super().__init__(env.app.executions, id, created)
        self._env = env

    def result(self, timeout: float | str | None = None) -> R:
        """Moves the clock until the execution has ended, and returns its result.

        Raises `ExecutionFailed` if it ended without one, `Stuck` if nothing can happen any more,
        and `ResultTimeout` if it has not ended after `timeout` on the clock of the test.
        """
        __tracebackhide__ = True
        found: R = self._env.result(self, timeout)
        return found

    def signal(
        self,
        name: str,
        payload: Any = None,
        *,
        signal_id: str | None = None,
        connection: Any = None,
    ) -> bool:
        """Sends the execution a signal, and runs until everything waits."""
        sent = super().signal(name, payload, signal_id=signal_id, connection=connection)
        self._env.settle()
        return sent

    def cancel(self) -> bool:
        """Asks the execution to end, and runs until everything waits."""
        asked = super().cancel()
        self._env.settle()
        return asked

    @property
    def error(self) -> dict[str, Any] | None:
        """The error with which it ended: code, message and data. None if there is none."""
        return self.get().error

    @property
    def state(self) -> dict[str, Any]:
        """The variables of the workflow, as they were when it last waited."""
        from rhythm.vm.snapshot import decode_snapshot

        stored = self._env.app.details.snapshot(self.id)
        return {} if stored is None else dict(decode_snapshot(stored).locals)

    @property
    def waits_for(self) -> list[str]:
        """What the workflow waits for now, in words: `["signal approve"]`."""
        from rhythm.ir.awaiting import in_words, leaves

        view = self.get()
        if view.ended or view.awaiting is None:
            return []
        return [in_words(leaf) for leaf in leaves(view.awaiting)]

    @property
    def line(self) -> int | None:
        """The line of its source in which the workflow is; None if that is not known."""
        return self._env.app.details.position(self.id).line

    @property
    def history(self) -> list[TraceStep]:
        """What happened in the execution and everything below it, in order of time."""
        return self._env.app.trace(self.id)
