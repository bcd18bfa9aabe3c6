"""Every event has its line in the table, the table is that of the docs, and lines are safe to
print."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import rhythm
from rhythm.errors import StoreError
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import TASK
from rhythm.worker.current import Current
from rhythm.worker.logs import EVENTS, LASTING, EventLogger, JsonFormatter, TextFormatter, log_event
from rhythm.worker.services import Services, ServiceSettings
from tests.engine.driver import World
from tests.support.stores import MakeStore, rows

SOURCE = Path(rhythm.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "workers.md").read_text(encoding="utf-8")
SAYS = (
    r"(?:complain|observe|say|_failing|_log_event|log_event|unanswered|_event)\(\s*(?:args, said,\s+"
    r"|problem,\s+|logging\.\w+,\s+)?\"(\w+)\""
)


def records(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.event) for record in caplog.records]  # type: ignore[attr-defined]  # that it has one is the law


def test_table_of_the_docs_is_that_of_the_module() -> None:
    shown = re.findall(r"^\| `(\w+)` \| (debug|info|warning|error) \| (.*) \|$", PAGE, re.MULTILINE)
    assert shown == [
        (event.name, logging.getLevelName(event.level).lower(), event.means)
        for event in EVENTS.values()
    ]


def test_whatever_is_told_is_in_the_table() -> None:
    others = (
        "app/loading.py",
        "app/pooled.py",
        "cli/commands/worker.py",
        "store/postgres/hints.py",
        "http/refusals.py",
    )
    files = [*(SOURCE / "worker").glob("*.py"), *(SOURCE / name for name in others)]
    told = {name for file in files for name in re.findall(SAYS, file.read_text(encoding="utf-8"))}
    returned = set(
        re.findall(
            r"return \"(\w+)\",", (SOURCE / "worker/narration.py").read_text(encoding="utf-8")
        )
    )
    assert told | returned <= EVENTS.keys()
    assert {
        event.name for event in EVENTS.values() if event.level > logging.DEBUG
    } <= told | returned | {"snapshot_large", "payload_large"}


def test_record_has_the_event_and_its_fields_and_reads_as_a_sentence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    EventLogger("box-1")("claim_lost", "run.1", "the claim has passed to another worker")
    (record,) = caplog.records
    assert (record.event, record.worker, record.execution_id) == ("claim_lost", "box-1", "run.1")  # type: ignore[attr-defined]
    assert (
        record.getMessage()
        == "claim_lost worker=box-1 execution_id=run.1: the claim has passed to another worker"
    )
    assert TextFormatter().format(record).endswith(f" WARNING {record.getMessage()}")
    item = json.loads(JsonFormatter().format(record))
    assert item.pop("time").endswith("Z")
    assert item == {
        "level": "warning",
        "logger": "rhythm.worker",
        "event": "claim_lost",
        "worker": "box-1",
        "execution_id": "run.1",
        "detail": "the claim has passed to another worker",
    }


def test_lines_obey_nobody_and_end(caplog: pytest.LogCaptureFixture) -> None:
    log_event(
        "claim_lost", worker="a b", execution_id="x\x1b[2J\n\u202e", detail="y\r\n" + "z" * 5000
    )
    (record,) = caplog.records
    line = TextFormatter().format(record)
    assert line.isprintable()
    assert (len(line) < 1200, 'worker="a b"' in line, r"execution_id=x\x1b[2J\n\u202e" in line) == (
        True,
        True,
        True,
    )
    assert JsonFormatter().format(record).isprintable()


def test_traceback_of_a_bug_stands_below_its_line(caplog: pytest.LogCaptureFixture) -> None:
    EventLogger("w")(
        "bug",
        "run",
        'Traceback (most recent call last):\n  File "x.py"\nZeroDivisionError: division by zero\n',
    )
    first, *more = TextFormatter().format(caplog.records[0]).split("\n")
    assert first.endswith(
        "ERROR bug worker=w execution_id=run: ZeroDivisionError: division by zero"
    )
    assert more[0] == "    Traceback (most recent call last):"
    assert len(more) == 3


def test_records_of_others_are_formatted_too(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("rhythm.other").error("no %s", "event")
    assert TextFormatter().format(caplog.records[0]).endswith("ERROR rhythm.other: no event")
    assert json.loads(JsonFormatter().format(caplog.records[0]))["message"] == "no event"


def test_what_a_task_says_is_told_with_its_execution(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Current("run.1", "charge", 2).log.info("half way")
    assert (
        TextFormatter()
        .format(caplog.records[0])
        .endswith("rhythm.task.charge execution_id=run.1 task=charge attempt=2: half way")
    )
    said = json.loads(JsonFormatter().format(caplog.records[0]))
    assert (said["execution_id"], said["attempt"], said["message"]) == ("run.1", 2, "half way")


@pytest.mark.parametrize(
    ("lasts", "over"),
    [("database_unanswered", "database_back"), ("service_failed", "service_recovered")],
)
def test_what_lasts_is_told_once_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture, lasts: str, over: str
) -> None:
    counted: list[str] = []
    teller, of = (
        EventLogger("w", counted.append),
        "rescue" if lasts in LASTING and lasts == "service_failed" else "",
    )
    with caplog.at_level(logging.DEBUG, "rhythm"):
        for name in (over, lasts, lasts, over, over, lasts):
            teller(name, of, "why")
    assert records(caplog) == [
        (logging.WARNING, lasts),
        (logging.DEBUG, lasts),
        (logging.INFO, over),
        (logging.WARNING, lasts),
    ]
    assert counted == [over, lasts, lasts, over, over, lasts]


def test_rescue_tells_what_it_took_back_and_what_is_not_tried_again(make_store: MakeStore) -> None:
    world = World("workflow main() {\n  return 1\n}\n", make_store=make_store)
    told: list[tuple[str, str, str]] = []
    settings = ServiceSettings(crash_limit=2)
    services = Services(
        world.inner,
        settings,
        world.clock.now,
        world.clock.us,
        None,
        lambda *what: told.append(what),
    )
    world.inner.executions.start([NewExecution("t", TASK, "kills", "default")])
    for _ in range(2):
        world.inner.claims.claim("w", ["default"], 5, 60.0)
        rows(world.inner, "UPDATE ready SET claim_expires_at = 0")
        world.clock.seconds += 10
        services.run()
    taken = ("executions_rescued", "", "1 taken back from workers that are gone: t")
    assert told[:2] == [taken, taken]
    assert told[2][:2] == ("execution_quarantined", "t")
    assert told[2][2].startswith("kills: ")
    assert len(told) == 3


@pytest.mark.parametrize("made", [True, False])
def test_commit_without_an_answer_is_told_and_that_the_database_is_back(
    make_store: MakeStore, made: bool
) -> None:
    world = World("workflow main() {\n  return 1\n}\n", make_store=make_store)
    told, commit = list[tuple[str, str]](), world.inner.turns.commit

    def unanswered(*given: Any) -> Any:
        world.inner.turns.commit = commit  # type: ignore[method-assign]
        if made:
            commit(*given)
        raise StoreError("no answer")

    world.inner.turns.commit = unanswered  # type: ignore[method-assign]
    world.worker.narrator.complain = lambda what, id, detail: told.append((what, detail))
    world.start()
    world.run()
    assert told[0] == ("commit_unknown", "no answer")
    assert made or told[1:] == [("database_back", "it answers again")]


def test_service_that_works_again_says_so(make_store: MakeStore) -> None:
    world = World("workflow main() {\n  return 1\n}\n", make_store=make_store)
    told: list[tuple[str, str, str]] = []
    services = Services(
        world.inner,
        ServiceSettings(),
        world.clock.now,
        world.clock.us,
        None,
        lambda *what: told.append(what),
    )
    timers, once = services.services[0], services.services[0].run_once
    timers.run_once = lambda now: {}["broken"]  # type: ignore[method-assign]
    services.run()
    timers.run_once = once  # type: ignore[method-assign]
    world.clock.seconds += 10
    services.run()
    services.run()
    assert told == [
        ("service_failed", "timers", "'broken'"),
        ("service_recovered", "timers", "after 1 failure"),
    ]
