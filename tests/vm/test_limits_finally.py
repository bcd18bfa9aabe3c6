"""What is over a limit runs its `finally` blocks, each once, and nothing else: tried on programs
that grow until they meet the limit, wherever that is."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any
from unittest import mock

import pytest

from rhythm.ir.cleanup import cleanup_of
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.vm import commands as c
from rhythm.vm import interpreter
from rhythm.vm.interpreter import Continue, Failed, Suspended, advance
from rhythm.vm.machine import Inputs, Outcome
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot
from rhythm.vm.state_size import check_state
from rhythm.vm.values import LimitFault
from tests.support.calls import calls
from tests.support.length import sampled, sweep
from tests.support.world import Execution, World

SEEDS = range(sampled(40, 3000))
# `log` says whether the program is in a `finally` block; the number is that of a `try`.
IN_BODY, IN_FINALLY = "body", "finally"


class _Writer:
    """Writes a program that grows, with blocks in blocks."""

    def __init__(self, random: Random) -> None:
        self.random, self.tries, self.loops = random, 0, 0

    def program(self) -> str:
        return f"let g = []\nlet kept = 0\n{self.block(0, IN_BODY, False)}\nreturn len(g)"

    def block(self, depth: int, where: str, loop: bool) -> str:
        count = self.random.randint(1, 3 if depth else 5)
        return "\n".join(self.statement(depth, where, loop) for _ in range(count))

    def statement(self, depth: int, where: str, loop: bool) -> str:
        kinds = [self.grow, self.wait, self.say]
        if depth < 4:
            kinds += [self.try_, self.try_, self.loop, self.condition]
        if where == IN_BODY or loop:
            kinds.append(self.leave)
        return self.random.choice(kinds)(depth, where, loop)

    def grow(self, *_: Any) -> str:
        return "g = [...g, 1, 2, 3, 4, 5, 6, 7, 8]"

    def wait(self, *_: Any) -> str:
        return self.random.choice(["await sleep(1)", 'await task("nothing")'])

    def say(self, depth: int, where: str, loop: bool) -> str:
        return f'log("{where}")'

    def condition(self, depth: int, where: str, loop: bool) -> str:
        return f"if (len(g) % 3 == 1) {{\n{self.block(depth + 1, where, loop)}\n}}"

    def loop(self, depth: int, where: str, loop: bool) -> str:
        self.loops += 1
        return f"for (i{self.loops} in range(2)) {{\n{self.block(depth + 1, where, True)}\n}}"

    def leave(self, depth: int, where: str, loop: bool) -> str:
        """Leaves blocks, but never the `finally` block that it is in."""
        ways = ["break", "continue"] if loop else []
        ways += ["return 1", 'throw "t"'] if where == IN_BODY else []
        return f"if (len(g) % 5 == 3) {{ {self.random.choice(ways)} }}"

    def try_(self, depth: int, where: str, loop: bool) -> str:
        self.tries += 1
        n, reads = self.tries, self.random.choice(["", "kept = len(g)\n"])
        body = self.block(depth + 1, where, loop)
        caught = " catch (e) { log(e.code) }" if self.random.random() < 0.4 else ""
        inside = self.block(depth + 1, IN_FINALLY, False)
        return (
            f'log("enter {n}")\ntry {{\n{body}\n}}{caught} finally {{\n'
            f'log("begin {n}")\n{inside}\n{reads}log("end {n}")\n}}'
        )


class Watched(World):
    """Notes what an execution that is over a limit does from the next turn on."""

    def turn(self, e: Execution) -> None:
        over, before = e.snapshot.limit is not None, len(self.log)
        super().turn(e)
        said = [entry.message for entry in self.log[before:]]
        self.__dict__.setdefault("afterwards", []).extend(said if over else ())


def run(program: Program, limits: Limits, **how: Any) -> tuple[Watched, Execution]:
    world = Watched([program], limits=limits, **how)
    return world, world.run(program.name)


def said(world: World) -> list[str]:
    return [entry.message for entry in world.log]


def check(world: Watched, ended: Execution) -> None:
    """Each `try` that was entered had its `finally` run from beginning to end, once."""
    count = Counter(tuple(line.split()) for line in said(world) if " " in line)
    for kind, n in count:
        assert count[kind, n] == count["enter", n] == count["begin", n] == count["end", n]
    assert "LimitExceeded" not in said(world), "nobody catches it"
    afterwards = world.__dict__.get("afterwards", [])
    assert IN_BODY not in afterwards, "only `finally` blocks run"
    assert ended.status in ("completed", "failed")


def generated(seed: int) -> tuple[Program, Limits]:
    random = Random(seed)
    [program] = compile_flow(_Writer(random).program()).programs_or_raise()
    return program, DEFAULT_LIMITS.replace(snapshot_bytes=random.randint(40, 400))


@sweep
def test_each_finally_runs_once_wherever_the_state_is_over_the_limit() -> None:
    met = 0
    for seed in SEEDS:
        program, limits = generated(seed)
        world, ended = run(program, limits)
        check(world, ended)
        met += ended.status == "failed" and ended.value["code"] == "LimitExceeded"
        stored, again = run(program, limits, through_json=True)
        assert (said(stored), again.status, again.value) == (said(world), ended.status, ended.value)
    assert met > len(SEEDS) // 4, "many of them meet the limit"


@sweep
def test_each_finally_runs_once_when_every_instruction_is_a_turn_of_its_own() -> None:
    with mock.patch.object(interpreter, "CHUNK", 1):
        for seed in SEEDS:
            program, limits = generated(seed)
            check(*run(program, limits.replace(turn_instructions=1), through_json=True))


@sweep
def test_each_finally_runs_once_when_the_instructions_are_over_the_limit() -> None:
    for seed in SEEDS:
        program, _ = generated(seed)
        limits = DEFAULT_LIMITS.replace(turn_instructions=1, lifetime_instructions=seed % 97)
        with mock.patch.object(interpreter, "CHUNK", 1):
            check(*run(program, limits, through_json=True))


LEAVING = [
    'try { TRY } catch (e) { log("caught") }\nlog("after")',
    'for (i in range(2)) { TRY }\nlog("after")',
    'try { try { TRY } catch (e) { log("caught") } } finally { log("outer") }\nlog("after")',
]
WAYS = ['throw "t"', "return 1", "break", "continue", "log(1)"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("around", LEAVING)
def test_what_leaves_a_finally_block_over_a_limit_leads_outwards(around: str, way: str) -> None:
    if way in ("break", "continue") and "for" not in around:
        around = f"for (i in range(2)) {{ {around} }}"
    text = around.replace("TRY", f"try {{ let xs = range(11) }} finally {{ log(0)\n{way} }}")
    [program] = compile_flow(text).programs_or_raise()
    world, ended = run(program, DEFAULT_LIMITS.replace(entries=10), through_json=True)
    assert (ended.status, ended.value["code"]) == ("failed", "LimitExceeded")
    inner, outer = ["0", "1"] if way == "log(1)" else ["0"], ["outer"] if "outer" in around else []
    assert said(world) == inner + outer


def test_a_limit_that_has_passed_a_finally_block_is_not_caught_either() -> None:
    [program] = compile_flow(
        """
        try { throw "x" } finally {
          try { try { let xs = range(11) } finally { log("inner") } } catch (e) { log("caught") }
        }
        """
    ).programs_or_raise()
    world, ended = run(program, DEFAULT_LIMITS.replace(entries=10))
    assert (said(world), ended.value["code"]) == (["inner"], "LimitExceeded")


def test_a_finally_that_grows_the_state_again_ends_at_once() -> None:
    [program] = compile_flow(
        """
        let xs = range(1000)
        try { await sleep(1) } finally {
          for (i in range(500)) { xs = [...xs, 1]\nawait sleep(1)\nlog(len(xs)) }
        }
        """
    ).programs_or_raise()
    limits = DEFAULT_LIMITS.replace(snapshot_bytes=2048, cleanup_bytes=4096)
    world, ended = run(program, limits)
    assert 0 < len(said(world)) < 400
    assert "Its `finally` blocks did not run to their end: the state" in ended.value["message"]


SAGA = """
let undo = []
let pages = []
try {
  for (i in range(3)) {
    let r = await task("value", { value: i })
    undo += [r]
    if (i == 1) { pages = range(2000) }
  }
} finally { await task("value", { value: undo }) }
return pages
"""
SMALL = DEFAULT_LIMITS.replace(snapshot_bytes=4096)


def inputs(**outcomes: Any) -> Inputs:
    ended = {int(n[1:]): Outcome("completed", value) for n, value in outcomes.items()}
    return Inputs("2026-11-15T09:00:00Z", "seed", None, {"id": "run"}, ended)


def saga_over_the_limit() -> tuple[Program, Snapshot, Suspended]:
    """The snapshot before the turn that meets the limit, and that turn."""
    [program] = compile_flow(SAGA).programs_or_raise()
    first = advance(program, Snapshot(), inputs(), SMALL)
    assert isinstance(first, Suspended)
    before = advance(program, first.snapshot, inputs(n1=0), SMALL)
    assert isinstance(before, Suspended)
    over = advance(program, before.snapshot, inputs(n2=1), SMALL)
    assert isinstance(over, Suspended)
    return program, before.snapshot, over


def test_the_turn_that_meets_a_limit_is_the_same_whoever_computes_it() -> None:
    program, before, over = saga_over_the_limit()
    stored = decode_snapshot(encode_snapshot(before))
    again = advance(program, stored, inputs(n2=1), SMALL)
    assert isinstance(again, Suspended)
    assert (again.commands, encode_snapshot(again.snapshot)) == (
        over.commands,
        encode_snapshot(over.snapshot),
    )


def test_the_await_over_the_limit_does_not_begin_and_finally_sees_the_last_result() -> None:
    _, _, over = saga_over_the_limit()
    assert over.commands == (c.StartTask(4, "value", {"value": [0, 1]}, {}),)
    assert over.snapshot.limit is not None
    assert "pages" not in over.snapshot.locals


def test_a_snapshot_says_the_newer_format_only_if_it_is_over_a_limit() -> None:
    _, before, over = saga_over_the_limit()
    assert encode_snapshot(before).startswith(b'{"v":1,')
    assert encode_snapshot(over.snapshot).startswith(b'{"v":2,')
    assert decode_snapshot(encode_snapshot(over.snapshot)) == over.snapshot


def test_a_refused_start_fails_where_the_program_starts_something() -> None:
    [program] = compile_flow(
        'let a = 1\ntry { let x = await task("value") } finally { await task("value", a) }'
    ).programs_or_raise()
    turn = advance(program, Snapshot(), inputs().replace(refused="too many"))
    assert isinstance(turn, Suspended)
    assert [command.inputs for command in turn.commands if isinstance(command, c.StartTask)] == [1]
    ended = advance(program, turn.snapshot, inputs(n1=None))
    assert isinstance(ended, Failed)
    assert (ended.error["message"], ended.error["data"]) == ("too many", {"refused": True})
    assert program.position(ended.at) == (2, 21)


def test_variables_that_share_a_large_value_are_named_in_bounded_work() -> None:
    def work(variables: int) -> int:
        large = list(range(1000))
        locals = {f"v{n}": large for n in range(variables)}

        def act() -> None:
            with pytest.raises(LimitFault, match="`v0` has 2 KiB, `v1` has 2 KiB, `v2` has 2 KiB"):
                check_state(locals, None, DEFAULT_LIMITS.replace(snapshot_bytes=20_000), False)

        return calls(act)

    work(100)  # what Python does only once is done
    assert work(5000) < 2 * work(500)


def test_what_is_within_its_limits_never_looks_for_its_finally_blocks() -> None:
    [program] = compile_flow(
        'try { await task("value") } finally { await sleep(1) }\nreturn 1'
    ).programs_or_raise()
    with mock.patch.object(interpreter, "cleanup_of", side_effect=AssertionError):
        turn = advance(program, Snapshot(), inputs())
        while isinstance(turn, Suspended | Continue):
            turn = advance(program, turn.snapshot, inputs(n1=1, n2=1))
    assert cleanup_of(program).holds(0) is False
