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
    "Changed", "`changed`: false if it was so already, or has ended.", id=str, changed=bool
)
Sent = object_of("Sent", "`sent`: false if it was sent before.", id=str, sent=bool)


class PauseExecution(Body):
    reason: str = ""
    timeout: float | str | None = Field(
        default=None, description='until it goes on by itself: seconds, or such as "2h"'
    )
    then: Literal["resume", "cancel"] = Field(
        default="resume", description="what happens when the timeout is over"
    )


class ResumeExecution(Body):
    reason: str = ""
    data: dict[str, Json] | None = Field(
        default=None,
        description="for the workflow: `ctx.resume_data`, or part of the context of JSON steps",
    )


class RetryExecution(Body):
    from_start: bool = Field(
        default=False,
        description="from the beginning, on the current version, instead of where it failed",
    )


class NewSignal(Body):
    name: str
    payload: Json = None


# what a request without a body means
PAUSE, RESUME, RETRY = PauseExecution(), ResumeExecution(), RetryExecution()


def pause(ask: Ask, id: Id, body: PauseExecution = PAUSE) -> Response:
    """Holds a workflow where it is; tasks that are running end."""
    return answer(
        {
            "id": id,
            "changed": ask.app.pause(
                id, body.reason, ask.actor, timeout=body.timeout, then=body.then
            ),
        }
    )


def resume(ask: Ask, id: Id, body: ResumeExecution = RESUME) -> Response:
    """Lets a paused workflow go on."""
    return answer({"id": id, "changed": ask.app.resume(id, body.reason, ask.actor, data=body.data)})


def cancel(ask: Ask, id: Id) -> Response:
    """Asks an execution to end: its `finally` blocks run, what it started is cancelled. To ask
    again changes nothing."""
    return answer({"id": id, "changed": ask.app.cancel(id, by=ask.actor, insist=False)})


def terminate(ask: Ask, id: Id) -> Response:
    """Ends an execution and everything below it at once: no `finally` block runs, and what its
    tasks bring is not used."""
    return answer({"id": id, "changed": ask.app.terminate(id, by=ask.actor)})


def retry(ask: Ask, id: Id, body: RetryExecution = RETRY) -> Response:
    """A new execution that goes on where this one failed or was cancelled. 200: such a retry is
    under way already."""
    handle = ask.app.retry(id, from_start=body.from_start, by=ask.actor)
    return answer({"id": handle.id, "created": handle.created}, 201 if handle.created else 200)


def signal(ask: Ask, id: Id, body: NewSignal, key: Key = None) -> Response:
    """Sends a signal; it waits in the mailbox until the workflow asks for it. With an
    `Idempotency-Key` it is sent once."""
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
