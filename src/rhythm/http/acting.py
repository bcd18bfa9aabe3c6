"""Acts on executions over HTTP: pause, resume, cancel, terminate, retry, signals. Each is one row
of the audit, for every caller."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from starlette.responses import Response

from rhythm.http.answers import answer
from rhythm.http.executions import Started
from rhythm.http.requests import Ask, Id, Key
from rhythm.http.schemas import Body, Json, object_of

Changed = object_of(
    "Changed",
    "`changed` is false if this was the case already, or if the execution has ended.",
    id=str,
    changed=bool,
)
Sent = object_of("Sent", "`sent` is false if the signal was sent before.", id=str, sent=bool)

METADATA = (
    "Kept for people and tools, such as the id of a ticket: shown with it, and in the audit. At "
    "most 4,096 bytes. The workflow does not see it."
)


class PauseExecution(Body):
    reason: str = ""
    timeout: float | str | None = Field(
        default=None,
        description='How long the pause lasts at most: seconds, or a text like "2h".',
    )
    then: Literal["resume", "cancel"] = Field(
        default="resume", description="What happens when this time is over."
    )
    metadata: dict[str, Json] | None = Field(default=None, description=METADATA)


class ResumeExecution(Body):
    reason: str = ""
    data: dict[str, Json] | None = Field(
        default=None,
        description="Data for the workflow. It reads them as `ctx.resume_data`; JSON steps have "
        "them in their context.",
    )
    metadata: dict[str, Json] | None = Field(default=None, description=METADATA)


class RetryExecution(Body):
    from_start: bool = Field(
        default=False,
        description="Begin at the start, with the current version of the workflow, instead of "
        "where it failed.",
    )


class NewSignal(Body):
    name: str
    payload: Json = None


# what a request without a body means
PAUSE, RESUME, RETRY = PauseExecution(), ResumeExecution(), RetryExecution()


def pause(ask: Ask, id: Id, body: PauseExecution = PAUSE) -> Response:
    """Pauses an execution.

    Tasks that are running end, and nothing new begins.
    """
    return answer(
        {
            "id": id,
            "changed": ask.app.pause(
                id,
                body.reason,
                ask.actor,
                timeout=body.timeout,
                then=body.then,
                metadata=body.metadata,
            ),
        }
    )


def resume(ask: Ask, id: Id, body: ResumeExecution = RESUME) -> Response:
    """Lets a paused execution go on."""
    changed = ask.app.resume(id, body.reason, ask.actor, data=body.data, metadata=body.metadata)
    return answer({"id": id, "changed": changed})


def cancel(ask: Ask, id: Id) -> Response:
    """Asks an execution to end.

    Its `finally` blocks run, and what it has started is cancelled. To ask again changes nothing.
    """
    return answer({"id": id, "changed": ask.app.cancel(id, by=ask.actor, insist=False)})


def terminate(ask: Ask, id: Id) -> Response:
    """Ends an execution and everything below it at once.

    No `finally` block runs, and results of tasks that are still running are not used.
    """
    return answer({"id": id, "changed": ask.app.terminate(id, by=ask.actor)})


def retry(ask: Ask, id: Id, body: RetryExecution = RETRY) -> Response:
    """Starts a new execution that goes on where this one failed or was cancelled.

    The answer is 201 for a new execution, and 200 if such a retry is running already.
    """
    handle = ask.app.retry(id, from_start=body.from_start, by=ask.actor)
    return answer({"id": handle.id, "created": handle.created}, 201 if handle.created else 200)


def signal(ask: Ask, id: Id, body: NewSignal, key: Key = None) -> Response:
    """Sends a signal to an execution.

    The signal waits in the execution's mailbox until the workflow asks for it. Requests with the
    same `Idempotency-Key` send it once.
    """
    return answer(
        {
            "id": id,
            "sent": ask.app.signal(
                id, body.name, body.payload, signal_id=ask.own(key), by=ask.actor
            ),
        }
    )


__all__ = [
    "Changed",
    "Sent",
    "Started",
    "cancel",
    "pause",
    "resume",
    "retry",
    "signal",
    "terminate",
]
