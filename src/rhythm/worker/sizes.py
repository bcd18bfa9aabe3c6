"""Warns about stored values that come near their limits: once per name, not per value."""

from __future__ import annotations

from collections.abc import Mapping

from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.store.interfaces.turns import TaskEnd, TurnCommit
from rhythm.worker.logs import log_event


class Sizes:
    """Checks the sizes of what is about to be stored."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._warned: set[tuple[str, str]] = set()

    def payload(self, what: str, name: str, id: str, text: str) -> None:
        """Warns if a payload is large.

        `what` says what it is, such as "inputs"; `name` is that of the task, workflow or signal;
        `text` is its JSON.
        """
        warn = self.limits.payload_warn_bytes
        if len(text) > warn // 4 and (size := len(text.encode())) > warn:
            self._warn("payload_large", what, name, id, size, self.limits.payload_bytes)

    def payloads(self, what: str, name: str, texts: Mapping[str, str]) -> None:
        """Warns if one of the payloads, which are given by id, is large, as `payload` does."""
        if max(map(len, texts.values()), default=0) > self.limits.payload_warn_bytes // 4:
            for id, text in texts.items():
                self.payload(what, name, id, text)

    def snapshot(self, name: str, id: str, size: int) -> None:
        """Warns if the snapshot of a workflow is large."""
        if size > self.limits.snapshot_warn_bytes:
            self._warn("snapshot_large", "snapshot", name, id, size, self.limits.snapshot_bytes)

    def turn(self, name: str, turn: TurnCommit) -> None:
        """Warns about large payloads in the commit of a turn."""
        small = self.limits.payload_warn_bytes // 4  # in characters
        for done in turn.done:
            if len(done.inputs) > small or len(done.value) > small:
                self.payload("inputs", done.name, turn.id, done.inputs)
                self.payload("result", done.name, turn.id, done.value)
        for new in turn.starts:
            self.payload("inputs", new.name, new.id, new.inputs)
        for signal in turn.signals:
            self.payload("signal", signal.name, signal.execution_id, signal.payload)
        if len(turn.value) > small:
            self.payload("result", name, turn.id, turn.value)

    def end(self, name: str, end: TaskEnd) -> None:
        """Warns if the result or error of a queued task is large."""
        self.payload("result", name, end.id, end.value)

    def _warn(self, event: str, what: str, name: str, id: str, size: int, limit: int) -> None:
        if (what, name) not in self._warned:
            self._warned.add((what, name))
            log_event(
                event, log="rhythm", what=what, of=name, execution_id=id, bytes=size, limit=limit
            )
