"""Lines that wait in a worker: bounded, in groups, sent again when an answer is lost."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from rhythm.engine.levels import level_name, level_of
from rhythm.engine.said import fields_of, said_of, text_of
from rhythm.errors import StoreError
from rhythm.limits import LOGS
from rhythm.store.interfaces.logs import HEARTBEAT, LOG, PROGRESS, RootLines, Said
from rhythm.store.interfaces.turns import TurnCommit
from rhythm.vm import commands as c
from rhythm.worker.current import Current
from rhythm.worker.lines import MAX_HEARTBEAT_S, LineBuffer, LineWriter
from rhythm.worker.prints import Prints, keep_prints, leave_prints
from rhythm.worker.task_log import _message


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


class Written:
    """A store that remembers what is written; it fails as often as it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[Sequence[RootLines], bool]] = []
        self.problems: list[Exception] = []
        self.logs = self
        self.closed = False

    def write(self, roots: Sequence[RootLines], again: bool = False) -> None:
        self.calls.append((roots, again))
        if self.problems:
            raise self.problems.pop(0)

    def totals(self, root_id: str) -> None: ...

    def messages(self) -> list[str]:
        return [line.message for roots, _ in self.calls for each in roots for line in each.lines]

    def sibling(self) -> Written:
        return self

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> Clock:
    return Clock()


def made(clock: Clock, level: int = 20, **limits: int) -> LineBuffer:
    return LineBuffer(level, "a", clock, LOGS.replace(**limits))


def attempt(lines: LineBuffer | None, id: str = "w.1", number: int = 1, fence: int = 7) -> Current:
    current = Current(id, "work", number)
    current.lines, current.fence = lines, fence
    return current


def store_of(written: Written) -> Any:
    return written


# what a line can be: pure


def test_level_of_a_line_is_a_field_that_names_one() -> None:
    said = said_of(c.Log("hi", {"level": "warning", "a": 1}))
    assert said == Said(LOG, 30, "hi", '{"a":1}')
    assert said_of(c.Log("hi", {"level": "tall"})) == Said(LOG, 20, "hi", '{"level":"tall"}')
    assert said_of(c.Log("hi", {})) == Said(LOG, 20, "hi", None)
    assert said_of(c.Progress(0.5, "half")) == Said(PROGRESS, 20, "half", '{"fraction":0.5}')


@pytest.mark.parametrize(
    ("named", "level"),
    [("INFO", 20), ("exception", 40), ("25", 25), (10, 10), (True, None), ("-1", None), (-1, None),
     (10**9, None), (None, None), ([], None), ("²", None)],
)  # fmt: skip
def test_level_is_a_name_or_a_number(named: Any, level: int | None) -> None:
    assert level_of(named) == level


def test_every_level_has_a_name() -> None:
    assert [level_name(n) for n in (0, 9, 10, 25, 35, 40, 50, 99)] == [
        "debug", "debug", "debug", "info", "warning", "error", "critical", "critical",
    ]  # fmt: skip


def test_text_is_cut_and_can_be_stored() -> None:
    assert text_of("a\0b\ud800ü") == "a␀b?ü"
    long = text_of("x" * 1_000_000)
    assert (len(long), long[-24:]) == (LOGS.message, "xx… (1,000,000 characters)"[-24:])


class Vain:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ({}, None),
        ({"a": "\x1b"}, '{"a":"\\u001b"}'),
        (3, '{"value":3}'),
        ([1], '{"value":[1]}'),
        ({"a": "x" * LOGS.fields_bytes}, '{"…":"4,104 bytes"}'),
        (Vain(), '{"…":"a value of type Vain"}'),
        ({1: object}, None),
        ({"a": "\0"}, None),
    ],
)
def test_fields_are_an_object_of_bounded_size(value: Any, text: str | None) -> None:
    found = fields_of(value)
    if text is None and value:
        assert found is not None
        assert found.startswith('{"…":"')
    else:
        assert found == text


# what waits


def test_lines_are_written_in_groups_by_root_with_their_age(clock: Clock) -> None:
    lines, written = made(clock, group=2), Written()
    for n in range(3):
        attempt(lines, f"w{n % 2}.1").log.info("hello %d", n)
    clock.s += 0.5
    assert lines.write(store_of(written))
    assert not lines.write(store_of(written))
    assert not lines.write(store_of(written))
    (first, _), (second, _) = written.calls
    assert [(each.root_id, len(each.lines)) for each in first] == [("w0", 1), ("w1", 1)]
    (line,) = first[0].lines
    assert (line.execution_id, line.turn, line.n, line.attempt) == ("w0.1", 7, 0, 1)
    assert (line.age_us, line.level, line.message, line.name) == (500_000, 20, "hello 0", "work")
    assert [each.root_id for each in second] == ["w0"]
    assert lines.empty


def test_lines_of_an_attempt_are_numbered_and_below_the_level_left_out(clock: Clock) -> None:
    lines, written = made(clock, level=30), Written()
    now = attempt(lines)
    now.log.info("no")
    now.log.warning("one", extra={"a": 1})
    now.log.error("two")
    lines.write(store_of(written))
    (line, other) = written.calls[0][0][0].lines
    assert (line.n, line.message, line.fields, other.n) == (0, "one", '{"a":1}', 1)


def test_group_whose_answer_was_lost_is_sent_again_and_says_so(clock: Clock) -> None:
    lines, written = made(clock), Written()
    attempt(lines).log.info("one")
    written.problems = [StoreError("no answer")]
    with pytest.raises(StoreError):
        lines.write(store_of(written))
    attempt(lines).log.info("two")
    assert lines.write(store_of(written))
    lines.write(store_of(written))
    assert [again for _, again in written.calls] == [False, True, False]
    assert written.messages() == ["one", "one", "two"]


def test_what_waits_is_bounded_and_the_rest_is_counted(clock: Clock) -> None:
    lines, written = made(clock, waiting=2), Written()
    for n in range(5):
        attempt(lines, f"w{n % 2}.1").log.info("x")
    lines.write(store_of(written))
    assert {each.root_id: each.dropped for each in written.calls[0][0]} == {"w0": 2, "w1": 1}
    attempt(lines).log.info("there is room again")
    lines.write(store_of(written))
    assert [each.dropped for each in written.calls[1][0]] == [0]


def test_what_waits_is_bounded_in_bytes(clock: Clock) -> None:
    lines, written = made(clock, waiting_bytes=10), Written()
    for text in ("x" * 8, "x" * 8, "yy"):
        attempt(lines).log.info(text)
    lines.write(store_of(written))
    assert (written.messages(), written.calls[0][0][0].dropped) == (["x" * 8, "yy"], 1)


def test_group_that_cannot_be_stored_is_counted_and_holds_up_nothing(clock: Clock) -> None:
    lines, written = made(clock), Written()
    attempt(lines).log.info("bad")
    written.problems = [ValueError("it cannot be stored")]
    with pytest.raises(ValueError, match="cannot be stored"):
        lines.write(store_of(written))
    attempt(lines).log.info("good")
    lines.write(store_of(written))
    assert (written.messages(), written.calls[1][0][0].dropped) == (["bad", "good"], 1)


# heartbeats


def test_of_many_heartbeats_some_are_kept_and_always_the_last(clock: Clock) -> None:
    lines, written = made(clock), Written()
    now = attempt(lines)
    for n in range(1000):
        now.heartbeat({"n": n})
        clock.s += 0.01
        lines.write(store_of(written))
    lines.write(store_of(written), everything=True)
    found = [line for roots, _ in written.calls for each in roots for line in each.lines]
    assert 5 < len(found) <= 12
    assert (found[0].fields, found[-1].fields) == ('{"n":0}', '{"n":999}')
    assert {line.kind for line in found} == {HEARTBEAT}
    assert [line.n for line in found] == sorted({line.n for line in found})


def test_the_last_heartbeat_is_written_when_its_time_has_come(clock: Clock) -> None:
    lines, written = made(clock), Written()
    now = attempt(lines)
    now.heartbeat("first")
    now.heartbeat("second")
    lines.write(store_of(written))
    assert (written.messages(), lines.rest_s()) == (["first"], 1.0)
    clock.s += 1.0
    lines.write(store_of(written))
    assert (written.messages(), lines.rest_s(), lines.empty) == (["first", "second"], None, True)


def test_heartbeats_of_a_long_attempt_are_rare_but_not_too_rare(clock: Clock) -> None:
    lines, now = made(clock), 0.0
    speaker = lines.speaker("w.1", "work", 1, 1)
    for _ in range(1000):
        speaker.heartbeat_kept(now := speaker.next_heartbeat_s)
    assert speaker.next_heartbeat_s - now == MAX_HEARTBEAT_S


def test_heartbeat_without_details_is_no_line(clock: Clock) -> None:
    lines = made(clock)
    attempt(lines).heartbeat()
    assert lines.empty
    attempt(None).heartbeat("nobody listens")


# turns


def test_turn_says_its_lines_under_its_number(clock: Clock) -> None:
    lines, written = made(clock), Written()
    said = (Said(LOG, 10, "no"), Said(LOG, 20, "yes"), Said(PROGRESS, 20, "half"))
    turn = TurnCommit("w.2", 4, 9, 0, "own", "a", "turn", said=said)
    lines.add_turn(turn, "main", clock.s)
    lines.write(store_of(written))
    (each,) = written.calls[0][0]
    assert [(line.turn, line.n, line.message) for line in each.lines] == [
        (4, 1, "yes"),
        (4, 2, "half"),
    ]


# the logger


def test_logger_still_logs_and_names_the_caller(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    lines = made(clock)
    with caplog.at_level(logging.INFO, "rhythm.task.work"):
        attempt(lines).log.info("hello %s", "you")
    (record,) = caplog.records
    assert (record.getMessage(), record.attempt) == ("hello you", 1)  # type: ignore[attr-defined]
    assert record.filename == "test_lines.py"


def test_line_is_kept_whatever_the_process_logs(clock: Clock) -> None:
    lines, written = made(clock, level=10), Written()
    log = attempt(lines).log
    assert log.isEnabledFor(logging.DEBUG)
    log.debug("quiet")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("it failed")
    lines.write(store_of(written))
    first, second = written.calls[0][0][0].lines
    assert (first.message, first.level, second.level) == ("quiet", 10, 40)
    assert "ValueError: broken" in (second.fields or "")
    assert not attempt(None).log.isEnabledFor(logging.DEBUG)


def test_message_that_does_not_fit_its_values_is_a_line_all_the_same() -> None:
    assert _message("%s and %s", ("a", "b")) == "a and b"
    assert _message("%(a)s", ({"a": 1},)) == "1"
    assert _message("100%", ()) == "100%"
    for message, values in (("%d", ("x",)), ("%s", (Vain(),)), ("%s %s", ("a",))):
        assert _message(message, values) == "str with values that do not fit"


# what tasks print


def test_prints_of_a_task_are_lines(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    lines, written = made(clock), Written()
    keep_prints()
    keep_prints()
    leave_prints()
    now = attempt(lines)
    print("outside")
    token = now.enter()
    try:
        print("in", "side", end="")
        print("!\nand", 2)
    finally:
        now.leave(token)
        leave_prints()
    assert not isinstance(sys.stdout, Prints)
    lines.write(store_of(written))
    assert written.messages() == ["in side!", "and 2"]
    assert capsys.readouterr().out == "outside\nin side!\nand 2\n"


# the thread that writes


def test_writer_writes_what_is_left_when_it_ends(clock: Clock) -> None:
    lines, written = made(clock), Written()
    writer = LineWriter(lines, store_of(written), lambda *what: None)
    writer.start()
    now = attempt(lines)
    now.heartbeat("a")
    now.heartbeat("b")
    writer.close(10.0)
    assert written.messages() == ["a", "b"]
    assert not written.closed, "it is the store of others"


def test_writer_goes_on_after_a_bug_and_tells_it(clock: Clock) -> None:
    lines, written, told = made(clock), Written(), list[str]()
    written.problems = [KeyError("bug"), StoreError("away")]
    writer = LineWriter(lines, store_of(written), lambda what, id, detail: told.append(what))
    attempt(lines).log.info("one")
    assert writer._write()
    attempt(lines).log.info("two")
    assert not writer._write()
    assert writer._write()
    assert (told, written.messages()) == (["bug"], ["one", "two", "two"])
