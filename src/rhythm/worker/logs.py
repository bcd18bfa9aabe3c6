"""The log events of workers and servers: the table of all, and how one becomes a line.

A log event is a record of the standard `logging` module with a name and fields (`record.event`,
`record.fields`, and each field as an attribute). Its message says the same in words. A condition
that lasts is logged when it begins and when it is over, not each time it is seen. This module sets
up no handlers: applications configure logging as they like. The formatters are those of `rhythm
worker` and of the server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from rhythm import printable
from rhythm.record import Record

LOG = "rhythm.worker"
# Longest field and detail, in characters; longest traceback, in lines.
VALUE, DETAIL, TRACEBACK = 200, 1000, 40
DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR


class LogEvent(Record):
    """Something that is logged. `of` is the field that names what it happened to."""

    name: str
    level: int
    means: str
    of: str = "execution_id"


_TABLE = (
    LogEvent("worker_started", INFO, "the worker takes work from now on"),
    LogEvent(
        "worker_draining",
        INFO,
        "it was asked to stop: it claims nothing more, what runs may end within the grace period",
    ),
    LogEvent("worker_stopped", INFO, "it has given back what was not finished, and has ended"),
    LogEvent(
        "worker_failed",
        ERROR,
        (
            "it has ended by itself, which is a bug: the traceback says where; what it owned "
            "goes to others"
        ),
    ),
    LogEvent(
        "worker_lapsed",
        WARNING,
        (
            "none of its heartbeats got through for too long: what ran here is given up, "
            "others may have it"
        ),
    ),
    LogEvent(
        "worker_dead",
        INFO,
        "the process of a worker on this machine is gone: what it owned is free",
        "dead_worker",
    ),
    LogEvent(
        "process_ended",
        WARNING,
        "a process of `--processes` has died, and another one begins",
        "pid",
    ),
    LogEvent(
        "claims_left",
        WARNING,
        (
            "the worker could not give its claims back when it stopped: they go to others "
            "when they expire"
        ),
    ),
    LogEvent(
        "claim_lost",
        WARNING,
        "an execution is another worker's by now: what was begun here for it is not committed",
    ),
    LogEvent(
        "executions_rescued",
        WARNING,
        "executions of workers that died or were silent for too long were taken back",
    ),
    LogEvent(
        "execution_quarantined",
        ERROR,
        "its worker has died too often while it ran: it has failed, and is not tried again",
    ),
    LogEvent(
        "commit_unknown",
        WARNING,
        "a commit had no answer: whether it was made is looked up, and what was not is sent again",
    ),
    LogEvent(
        "database_unanswered",
        WARNING,
        (
            "the database does not answer; it is asked again, ever less often. Logged once "
            "until it is back"
        ),
    ),
    LogEvent("database_back", INFO, "the database answers again"),
    LogEvent(
        "service_failed",
        WARNING,
        (
            "timers, schedules, rescue, sweeper, pruner or events has failed, and is tried "
            "again. Logged once until it recovers"
        ),
        "service",
    ),
    LogEvent(
        "service_recovered", INFO, "a service that had failed has done its work again", "service"
    ),
    LogEvent(
        "schedule_missed",
        WARNING,
        "slots of a schedule passed while no worker ran, and are not run later",
        "schedule",
    ),
    LogEvent(
        "schedule_failed",
        ERROR,
        "a slot of a schedule started nothing, since its workflow is not registered",
        "schedule",
    ),
    LogEvent(
        "schedule_stuck",
        WARNING,
        "this worker cannot fire a schedule: its time zone or program is not known here",
        "schedule",
    ),
    LogEvent(
        "listener_deaf",
        WARNING,
        "hints about new work (NOTIFY) do not arrive: workers ask every `poll_interval`",
    ),
    LogEvent("listener_hears", INFO, "hints about new work are heard again"),
    LogEvent(
        "program_newer",
        WARNING,
        "a workflow can only be run by a newer Rhythm: it is left to workers that have one",
    ),
    LogEvent(
        "program_broken",
        ERROR,
        "the stored program or snapshot of a workflow cannot be read: the execution fails",
    ),
    LogEvent(
        "handler_missing",
        WARNING,
        (
            "there is no handler of this name here: the task is put back for others. Logged "
            "once for each name"
        ),
    ),
    LogEvent(
        "workflow_warned",
        WARNING,
        "a workflow was registered in which something is most likely a mistake, as `rhythm check` "
        "says. Logged once for each place",
        "place",
    ),
    LogEvent(
        "payload_large",
        WARNING,
        (
            "an input, result, signal or event comes near the limit of its size. Logged once "
            "for each name"
        ),
    ),
    LogEvent(
        "snapshot_large",
        WARNING,
        "the state of a workflow comes near the limit of its size. Logged once for each workflow",
    ),
    LogEvent(
        "access_refused",
        WARNING,
        "a server has refused a request: without a valid token or permission, or too many "
        "of them. Logged once a minute for each address and "
        "reason, with how often it was `repeated`",
        "address",
    ),
    LogEvent(
        "bug",
        ERROR,
        (
            "something happened that Rhythm rules out; the execution, or the whole worker, is "
            "looked at anew. Please report it"
        ),
    ),
    LogEvent("start", DEBUG, "a workflow takes its first turn"),
    LogEvent("task", DEBUG, "an attempt at a task begins"),
    LogEvent("done", DEBUG, "a task has succeeded"),
    LogEvent("retry", INFO, "an attempt has failed, and there will be another"),
    LogEvent("failure", INFO, "a task has failed"),
    LogEvent("stopped", DEBUG, "an attempt was cancelled, or its worker has lost it"),
    LogEvent("progress", DEBUG, "a task or workflow says how far it is"),
    LogEvent("log", DEBUG, "a workflow says something with `log(…)`, or sets an attribute"),
    LogEvent("timer", DEBUG, "a workflow begins to sleep"),
    LogEvent("wait", DEBUG, "a workflow waits for a signal or event"),
    LogEvent("signal", DEBUG, "a workflow takes a signal"),
    LogEvent("publish", DEBUG, "a workflow publishes an event"),
    LogEvent("approval", DEBUG, "a workflow asks for an approval"),
    LogEvent("completed", DEBUG, "a workflow has completed"),
    LogEvent("failed", INFO, "a workflow has failed"),
    LogEvent("cancelled", DEBUG, "a workflow was cancelled"),
    LogEvent("blocked", DEBUG, "a workflow was blocked: a step of it said so, or a person"),
)
EVENTS = {event.name: event for event in _TABLE}
# Events that end a lasting condition, with the event that began it.
ENDS = {"database_back": "database_unanswered", "service_recovered": "service_failed"}
LASTING = frozenset(ENDS.values())
# The fields of what a task logs with `rhythm.current().log`.
OF_A_TASK = ("execution_id", "task", "attempt")


def log_event(name: str, level: int | None = None, log: str = LOG, **fields: Any) -> None:
    """Logs an event.

    `name` is one of the events in the table above. The field `detail` says what happened, for
    people; empty fields are left out. Without `level`, the event's own is used. `log` is the name
    of the logger.
    """
    level = EVENTS[name].level if level is None else level
    logger = logging.getLogger(log)
    if logger.isEnabledFor(level):
        fields = {key: value for key, value in fields.items() if value != ""}
        logger.log(
            level, "%s%s", name, Fields(fields), extra={**fields, "event": name, "fields": fields}
        )


class EventLogger:
    """Logs the events of one worker; an observer for the worker and its services.

    It may be called from any thread. `count` is called with the name of every event, also of those
    that are not logged again.
    """

    def __init__(self, worker: str, count: Callable[[str], None] = lambda name: None) -> None:
        self.worker, self.count = worker, count
        self._lasting: set[tuple[str, str]] = set()

    def __call__(self, name: str, id: str = "", detail: str = "", **fields: Any) -> None:
        # A test finds names that are not in the table; a worker must not die of one.
        event = EVENTS.get(name) or LogEvent(name, WARNING, "")
        self.count(name)
        level = self._level(event, id)
        if level is None:
            return
        if name == "bug" and "\n" in detail:
            fields["traceback"], detail = detail, detail.rstrip().rpartition("\n")[2]
        elif name == "failure":
            detail, _, fields["traceback"] = detail.partition("\n")
        log_event(name, level, worker=self.worker, **{event.of: id}, **fields, detail=detail)

    def _level(self, event: LogEvent, id: str) -> int | None:
        """Returns the level to log an event at; None: it is not logged.

        While a condition lasts, its event is logged again only at DEBUG. Its end is logged only if
        its beginning was.
        """
        if event.name not in LASTING and event.name not in ENDS:
            return event.level
        key = ENDS.get(event.name, event.name), id if event.of == "service" else ""
        known = key in self._lasting
        if event.name in ENDS:
            self._lasting.discard(key)
            return event.level if known else None
        self._lasting.add(key)
        return DEBUG if known else event.level


class Fields:
    """The fields of an event as text: ` worker=a execution_id=b: what happened`.

    The text is made only if the record is written.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    def __str__(self) -> str:
        plain = {
            key: value for key, value in self.fields.items() if key not in ("detail", "traceback")
        }
        text = "".join(f" {key}={_value(value)}" for key, value in plain.items())
        detail = escaped(" ".join(str(self.fields.get("detail", "")).split()), DETAIL)
        return (
            text
            + (f": {detail}" if detail else "")
            + _traceback(str(self.fields.get("traceback", "")))
        )


def _value(value: Any) -> str:
    text = escaped(str(value), VALUE)
    return (
        text if text and not any(c in text for c in ' "=') else '"' + text.replace('"', '\\"') + '"'
    )


def _traceback(text: str) -> str:
    lines = text.rstrip().split("\n") if text else []
    return "".join(f"\n    {escaped(line, VALUE)}" for line in lines[-TRACEBACK:])


def escaped(text: str, longest: int) -> str:
    """Returns the text on one line, cut to a length of `longest`.

    Control characters that a terminal would obey are escaped.
    """
    return printable.escaped(text if len(text) <= longest else text[: longest - 1] + "…")


class TextFormatter(logging.Formatter):
    """Formats a record as one line of text, in UTC.

    `2026-11-15 17:20:01.123 WARNING claim_lost worker=… execution_id=…: what happened`. A traceback
    follows, indented.
    """

    def format(self, record: logging.LogRecord) -> str:
        second = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(record.created))
        at = f"{second}.{int(record.msecs):03d}"
        name, said = getattr(record, "event", None), getattr(record, "fields", None)
        own = {key: getattr(record, key) for key in OF_A_TASK if hasattr(record, key)}
        plain = f"{record.name}{Fields({**own, 'detail': record.getMessage()})}"
        text = f"{name}{Fields(said)}" if name and said is not None else plain
        trace = _traceback(self.formatException(record.exc_info)) if record.exc_info else ""
        return f"{at} {record.levelname} {text}{trace}"


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line: time, level, logger, event, and its fields.

    A record that is no event has a `message` instead.
    """

    def format(self, record: logging.LogRecord) -> str:
        import json

        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        at = f"{second}.{int(record.msecs):03d}Z"
        said = (
            {"event": record.event, **record.fields}
            if hasattr(record, "event") and hasattr(record, "fields")
            else None
        )
        own = {key: getattr(record, key) for key in OF_A_TASK if hasattr(record, key)}
        item = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            **(said or {**own, "message": record.getMessage()}),
        }
        if record.exc_info:
            item["traceback"] = self.formatException(record.exc_info)
        return printable.escaped_json(json.dumps(item, default=str))
