"""What each operation and command asks the engine for, option by option: the part of a call that no
result shows."""

from __future__ import annotations

import pytest

from rhythm.lang.flow.compile import compile_flow
from rhythm.vm import commands as c
from tests.support.world import World


def asked(text: str) -> list[c.Command]:
    """The commands of the first turn."""
    world = World(list(compile_flow(text, "main.flow").programs_or_raise()))
    world.run("main", cancel_at=10**6)
    return world.commands


def first(text: str) -> c.Command:
    return asked(text)[0]


TASK = [
    ("{}", {}),
    ("{ retries: 5 }", {"retries": 5}),
    ("{ retries: 0 }", {"retries": 0}),
    ("{ backoff: 2 }", {"backoff": {"initial_s": 2.0}}),
    (
        '{ backoff: { initial: "2s", factor: 1.5, max: "1m", jitter: false } }',
        {"backoff": {"initial_s": 2.0, "factor": 1.5, "max_s": 60.0, "jitter": False}},
    ),
    ('{ timeout: "30s" }', {"timeout_s": 30.0}),
    ('{ queue: "slow" }', {"queue": "slow"}),
    ("{ priority: -3 }", {"priority": -3}),
    ("{ settle: true }", {}),
]


@pytest.mark.parametrize(("options", "reach"), TASK)
def test_options_of_a_task_reach_its_command(options: str, reach: dict[str, object]) -> None:
    assert first(f'await task("nothing", {{ a: 1 }}, {options})') == c.StartTask(
        1, "nothing", {"a": 1}, reach
    )


CHILD = [
    ('{ version: "v1" }', {"version": "v1"}),
    ('{ queue: "slow", priority: 2 }', {"queue": "slow", "priority": 2}),
    ('{ timeout: "1h" }', {"timeout_s": 3600.0}),
    ("{ settle: true }", {}),
]


@pytest.mark.parametrize(("options", "reach"), CHILD)
def test_options_of_a_child_reach_its_command(options: str, reach: dict[str, object]) -> None:
    assert first(f'await workflow("main2", {{ a: 1 }}, {options})') == c.StartWorkflow(
        1, "main2", {"a": 1}, reach
    )


OTHERS: list[tuple[str, c.Command]] = [
    ('await task("nothing")', c.StartTask(1, "nothing", None, {})),
    ('await sleep("1m")', c.StartTimer(1, 60.0)),
    (
        'await sleep_until("2026-11-15T10:00:00+01:00")',
        c.StartTimer(1, None, "2026-11-15T09:00:00Z"),
    ),
    ('await signal("go", { timeout: "1h" })', c.StartTimer(1, 3600.0, signal="go")),
    (
        'await event("paid", { where: { id: 7 }, timeout: 5 })',
        c.WaitEvent(1, "paid", {"id": 7}, 5.0),
    ),
    ('await event("paid")', c.WaitEvent(1, "paid", {}, None)),
    ('await approval({ role: "boss" })', c.RequestApproval(1, "boss", "", None, None, 1, True)),
    (
        (
            'await approval({ role: "boss", reason: "why", data: { n: 1 }, timeout: "1d", '
            'quorum: 2, four_eyes: false, escalate: "ceo" })'
        ),
        c.RequestApproval(1, "boss", "why", {"n": 1}, 86400.0, 2, False, ({"role": "ceo"},)),
    ),
    (
        'await approval({ role: "boss", notify: "tell" })',
        c.RequestApproval(1, "boss", "", None, None, 1, True, notify="tell"),
    ),
    ("let x = 5\nlet y = 6\nawait branch { return x }", c.StartBranch(1, 0, {"x": 5})),
    ('publish("paid", { id: 7 })', c.Publish("paid", {"id": 7})),
    ('send("o-7", "go", 1)', c.Send("o-7", "go", 1)),
    ('log("paid", { id: 7 })', c.Log("paid", {"id": 7})),
    ('progress(1, "done")', c.Progress(1.0, "done")),
    ('set_attribute("vip", true)', c.SetAttribute("vip", True)),
]


@pytest.mark.parametrize(("text", "command"), OTHERS)
def test_a_call_asks_for_one_thing(text: str, command: c.Command) -> None:
    assert first(text) == command


def test_signal_without_a_timeout_asks_for_nothing() -> None:
    assert not [
        command for command in asked('await signal("go")') if not isinstance(command, c.Cancel)
    ]


def test_children_over_the_concurrency_are_asked_for_but_held() -> None:
    started = [
        command
        for command in asked("await all([sleep(1) for i in range(4)], { concurrency: 2 })")
        if isinstance(command, c.StartTimer)
    ]
    assert [(command.n, command.held) for command in started] == [
        (2, False),
        (3, False),
        (4, True),
        (5, True),
    ]


def test_held_children_are_released_as_others_end() -> None:
    released = [
        command
        for command in asked("await all([sleep(i + 1) for i in range(4)], { concurrency: 2 })")
        if isinstance(command, c.Release)
    ]
    assert released == [c.Release(4, 4), c.Release(5, 5)]


def test_losers_of_a_race_are_cancelled_as_ranges() -> None:
    assert c.Cancel(3, 5) in asked("await race([sleep(1), sleep(9), sleep(9), sleep(9)])")


def test_keep_cancels_nothing() -> None:
    assert not [
        command
        for command in asked("await race([sleep(1), sleep(9)], { keep: true })")
        if isinstance(command, c.Cancel)
    ]


def test_a_signal_is_taken_once_it_is_awaited() -> None:
    world = World(list(compile_flow('await signal("go")', "main.flow").programs))
    world.run("main", signals=[{"name": "go"}, {"name": "go"}])
    assert [command for command in world.commands if isinstance(command, c.TakeSignal)] == [
        c.TakeSignal("0")
    ]
