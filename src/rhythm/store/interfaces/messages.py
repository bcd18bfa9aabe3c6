"""Signals and events: sending, publishing, and what waits for them."""

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


class MailAsked(Record):
    """Which signals of a mailbox are read: the first ones of this name, or of all names."""

    id: str
    name: str | None
    limit: int


class NewSignal(Record):
    """A signal to send. The sender chooses the id: the same id sent twice is one signal."""

    id: str
    execution_id: str
    name: str
    payload: str
    sender: str | None = None  # the execution whose turn sends it


class NewWait(Record):
    """A wait for the first event of a type that has the wanted values.

    Only events count that were published since the execution started.
    """

    n: int
    type: str
    wanted: str  # JSON: paths into the event's data, and the values wanted there
    timeout_s: float | None = None
    held: bool = False


class NewEvent(Record):
    """An event to publish.

    The publisher chooses the id: the same id published twice is one event.
    """

    id: str
    type: str
    data: str  # JSON
    # Keeps the order of the events that one turn publishes and the children that it starts.
    later_us: int = 0
    execution_id: str | None = None  # whose turn publishes it


class MessageStore(ABC):
    """Sends signals, publishes events, and returns what waits for them."""

    @abstractmethod
    def signal(self, signal: NewSignal, limit: int, actor: Actor | None = None) -> Delivery:
        """Puts a signal into a mailbox. Returns "sent", "duplicate", "late" (the execution has
        ended), "missing" or "full".

        A signal that was received before is a "duplicate" whatever happened since, so its sender
        may forget it.
        """

    @abstractmethod
    def publish(self, event: NewEvent, actor: Actor | None = None) -> Publication:
        """Publishes an event. Returns "published", or "duplicate" if its id was published before.

        It goes to every execution that waits for it now, and to those that started before it and
        wait for it later. It starts the workflows that are registered for its type.
        """

    @abstractmethod
    def mail(self, ids: Sequence[str]) -> dict[str, list[Mail]]:
        """Returns the signals that have not been consumed, by workflow, in the order of sending."""

    @abstractmethod
    def first_mail(self, asked: Sequence[MailAsked]) -> dict[str, list[Mail]]:
        """Returns the first signals that have not been consumed, by workflow, in the order of
        sending: of each name or, where all names are asked for, of the whole mailbox."""

    @abstractmethod
    def mailed(self, id: str) -> list[Mail]:
        """Returns the signals of one workflow that have not been consumed, without their payloads,
        for display."""

    @abstractmethod
    def waits(self, id: str) -> list[NewWait]:
        """Returns the events that an execution waits for."""
