"""Events: published to every execution that waits for them, and to the workflows that they
start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.app.actors import By, acting
from rhythm.app.checks import own_key, valid_name
from rhythm.engine.payload import dump
from rhythm.record import Record
from rhythm.store.interfaces.messages import NewEvent

if TYPE_CHECKING:
    from rhythm.app.context import AppContext


class TriggerView(Record):
    """An event of this type starts this workflow (`@on` in its file)."""

    event: str
    workflow: str


class Events:
    """What is published, and which workflows it starts."""

    def __init__(self, context: AppContext) -> None:
        self._context, self._store, self._sizes = context, context.store, context.sizes

    def publish(
        self,
        type: str,
        data: Any = None,
        *,
        event_id: str | None = None,
        by: By = None,
        connection: Any = None,
    ) -> bool:
        """Publishes an event. Returns False if this `event_id` was published before.

        It reaches every execution that waits for it, or that started before it and will wait. It
        starts the workflows that name it with `@on`; `by` says who starts them. It is recorded in
        the audit only if `by` is given. With your own `connection`, it is published when you commit
        (see `start_workflow`).
        """
        store = self._context.store_on(connection)
        id = own_key(event_id, "an event_id") if event_id is not None else self._context.new_id()
        event = NewEvent(id, valid_name(type, "an event's type"), dump(data, "data"))
        self._sizes.payload("event", type, id, event.data)
        answer = store.messages.publish(event, acting(by) if by else None)
        self._context.wake_if_committed(store)
        return answer == "published"

    def triggers(self, event: str | None = None, workflow: str | None = None) -> list[TriggerView]:
        """Returns which events start which workflows: all, or those of an event or a workflow."""
        return [
            TriggerView(found.type, found.workflow)
            for found in self._store.definitions.triggers()
            if event in (None, found.type) and workflow in (None, found.workflow)
        ]

    def starting(self, workflow: str) -> list[str]:
        """Returns the types of the events that start a workflow."""
        return [trigger.event for trigger in self.triggers(workflow=workflow)]

    def started_by(self, type: str) -> list[str]:
        """Returns the names of the workflows that an event of this type starts."""
        return [trigger.workflow for trigger in self.triggers(event=type)]
