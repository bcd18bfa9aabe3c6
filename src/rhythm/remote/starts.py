"""Starting workflows on a server. Every start has an id of its own, so that the same request twice
is one start."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from rhythm.app.checks import start_key, valid_attributes, valid_id, valid_name
from rhythm.engine.payload import dump
from rhythm.errors import Conflict
from rhythm.ids import encode_id
from rhythm.remote.executions import HOW_TO_SEE

if TYPE_CHECKING:
    from rhythm.app.actors import By
    from rhythm.app.handle import Handle
    from rhythm.remote.client import Client
    from rhythm.remote.executions import RemoteExecutions


class RemoteStarts:
    """Starts workflows."""

    def __init__(self, client: Client, executions: RemoteExecutions) -> None:
        self._client, self._executions = client, executions

    def workflow(
        self,
        name: str,
        inputs: Any = None,
        *,
        id: str | None = None,
        idempotency_key: str | None = None,
        on_conflict: Literal["return", "fail", "replace"] = "return",
        queue: str | None = None,
        priority: int = 0,
        delay: float | str | None = None,
        attributes: Mapping[str, Any] | None = None,
        by: By = None,
    ) -> Handle:
        """Starts a workflow, and returns its handle. See `Rhythm.start_workflow`.

        The owner of the token starts it, and an `idempotency_key` is theirs: that of another person
        is another key.
        """
        dump(inputs, "inputs")
        key = None if idempotency_key is None else start_key(idempotency_key, "an idempotency_key")
        own = encode_id(time.time_ns() // 1_000_000, secrets.randbits(80))
        drawn = id is None and key is None
        given: dict[str, Any] = {
            "workflow": name,
            "inputs": inputs,
            "id": own if drawn else id if id is None else valid_id(id),
            "queue": None if queue is None else valid_name(queue, "a queue"),
            "priority": priority,
            "delay": delay,
            "attributes": attributes,
            "on_conflict": on_conflict,
        }
        if attributes is not None:
            valid_attributes(attributes)
        again = drawn or on_conflict == "return"
        try:
            started = self._client.post(
                "executions",
                body={name: value for name, value in given.items() if value is not None},
                key=key,
                again=again,
                check=HOW_TO_SEE.format(given["id"])
                if given["id"]
                else "the same key starts it once",
            )
        except Conflict as conflict:
            if not drawn or conflict.id != own:
                raise
            # a request whose answer was lost has started it
            started = {"id": own, "created": True}
        return self._executions.handle(started, created=drawn)
