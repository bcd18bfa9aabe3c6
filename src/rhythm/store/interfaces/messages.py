"""Signals and events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.lifecycle import Delivery, Publication


class Mail(Record):
    """A signal that has not been consumed."""

    id: str
    name: str
    payload: str
    received_at: int


class NewSignal(Record):
    """A signal to send. The id is the sender's: the same one twice is one signal."""

    id: str
    execution_id: str
    name: str
    payload: str
    sender: str | None = None  # the execution whose turn sends it


class NewWait(Record):
    """A wait for the first event of a type, published since its execution started, whose data has
    these values at these paths."""

    n: int
    type: str
    wanted: str  # JSON: paths and values
    timeout_s: float | None = None
    held: bool = False


class NewEvent(Record):
    """An event to publish. The id is the publisher's: the same one twice is one event."""

    id: str
    type: str
    data: str  # JSON
    # of several in one turn, and of the children it starts: they happen in their order
    later_us: int = 0
    execution_id: str | None = None  # whose turn publishes it


class MessageStore(ABC):
    """Signals and events."""

    @abstractmethod
    def signal(self, signal: NewSignal, limit: int, actor: Actor | None = None) -> Delivery:
        """Puts a signal into a mailbox: "sent", "duplicate", "late" (it has ended), "missing" or
        "full".

        One that was received is a "duplicate" whatever came after it: its sender may forget it.
        """

    @abstractmethod
    def publish(self, event: NewEvent, actor: Actor | None = None) -> Publication:
        """Publishes an event to everyone who waits for it, and to those who live and will, and
        starts the workflows that are registered for it: "published" or "duplicate"."""

    @abstractmethod
    def mail(self, ids: Sequence[str]) -> dict[str, list[Mail]]:
        """The signals that have not been consumed, in the order of sending."""

    @abstractmethod
    def mailed(self, id: str) -> list[Mail]:
        """The same of one workflow, for those who only look: without what they bring."""

    @abstractmethod
    def waits(self, id: str) -> list[NewWait]:
        """The events that an execution waits for."""
