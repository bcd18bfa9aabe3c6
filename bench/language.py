"""Compiling and running `.flow` programs: no I/O at all."""

from __future__ import annotations

import ast
import json
from typing import Any

from bench.measure import best_s, row, show_s
from rhythm.ir.program import Program
from rhythm.lang.flow.check import check_flow
from rhythm.lang.flow.compile import compile_flow
from rhythm.vm.interpreter import Suspended, advance
from rhythm.vm.machine import Inputs, Outcome
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot

NOW = Inputs(now="2026-11-15T09:00:00Z", seed="bench")


def compiled(text: str) -> Program:
    return compile_flow(text, "bench.flow").programs_or_raise()[0]


def compiling() -> None:
    """Text to program, next to CPython's own compiler on the same statements."""
    flow, python = (
        ["workflow big(inputs) {", "let total = 0"],
        ["def big(inputs, task):", " total = 0"],
    )
    for i in range(24):
        flow += [
            f"let item{i} = inputs.items[{i}]",
            f'let price{i} = await task("price", {{ item: item{i}.name, count: item{i}.count }})',
            (
                f"if (price{i} > 100 && item{i}.count > 1) {{ total += price{i} * 0.9 }} else "
                f"{{ total += price{i} }}"
            ),
        ]
        python += [
            f" item{i} = inputs['items'][{i}]",
            f" price{i} = task('price', {{'item': item{i}['name'], 'count': item{i}['count']}})",
            (
                f" if price{i} > 100 and item{i}['count'] > 1:\n  total += price{i} * 0.9\n "
                f"else:\n  total += price{i}"
            ),
        ]
    flow += ["return total", "}"]
    python += [" return total"]
    text, code = "\n".join(flow), "\n".join(python)
    statements = 2 + 24 * 4 + 2
    checking, ours = best_s(lambda: check_flow(text)), best_s(lambda: compile_flow(text))
    theirs = best_s(lambda: compile(ast.parse(code), "bench.py", "exec"))
    row(
        f"check {statements} statements",
        show_s(checking),
        f"{statements / checking:,.0f} statements/s",
    )
    row(
        f"parse and compile {statements} statements",
        show_s(ours),
        f"CPython's compile: {show_s(theirs)}",
        f"{ours / theirs:.1f} ×",
    )


def running() -> None:
    """Instructions per second, next to the same loop in plain CPython."""
    program = compiled(
        "workflow loop() {\nlet total = 0\nlet i = 0\n"
        "while (i < 15000) {\nif (i % 3 == 0) { total += i * 2 } else { total -= 1 }\ni += 1\n}\n"
        "await sleep(1)\nreturn total\n}"
    )
    namespace: dict[str, Any] = {}
    exec(
        "def loop():\n total = 0\n i = 0\n while i < 15000:\n"
        "  if i % 3 == 0:\n   total += i * 2\n  else:\n   total -= 1\n  i += 1\n return total",
        namespace,
    )
    turn = advance(program, Snapshot(), NOW)
    assert isinstance(turn, Suspended), turn
    assert turn.snapshot.locals["total"] == namespace["loop"]()
    ours, theirs = best_s(lambda: advance(program, Snapshot(), NOW)), best_s(namespace["loop"])
    speed = turn.snapshot.instructions / ours
    row(
        "instructions",
        f"{speed / 1e6:.1f} million/s",
        f"the same loop in CPython: {show_s(theirs)}",
        f"{ours / theirs:.1f} ×",
    )


def suspending() -> None:
    """One turn of a workflow with ten locals: take the result of a task, compute, wait for the next
    task."""
    declared = "\n".join(
        f"let local{i} = {{ name: `local ${{{i}}}`, value: {i} }}" for i in range(9)
    )
    program = compiled(
        f'workflow w() {{\n{declared}\nlet x = 0\nwhile (true) {{\nx = await task("step", '
        f"{{ x }})\nx += 1\n}}\n}}"
    )
    first = advance(program, Snapshot(), NOW)
    assert isinstance(first, Suspended), first
    stored = encode_snapshot(first.snapshot)
    inputs = NOW.replace(outcomes={1: Outcome("completed", 1, 1.0)})
    plain = json.loads(stored)

    def turn() -> None:
        next = advance(program, decode_snapshot(stored), inputs)
        assert isinstance(next, Suspended)
        encode_snapshot(next.snapshot)

    alone = best_s(lambda: advance(program, first.snapshot, inputs))
    whole = best_s(turn)
    theirs = best_s(lambda: json.dumps(json.loads(stored)) and plain)
    row("a turn with ten locals, in memory", show_s(alone), f"{1 / alone:,.0f} turns/s")
    row(
        "… with decoding and encoding its snapshot",
        show_s(whole),
        f"json loads + dumps of it: {show_s(theirs)}",
        f"{whole / theirs:.1f} ×",
    )


def snapshots() -> None:
    """Encoding and decoding, next to the standard library's json on the same data."""
    for size, count in (("300 bytes", 2), ("10 KB", 131)):
        locals = {
            f"local{i}": {
                "name": f"something {i}",
                "price": i * 1.25,
                "tags": ["a", "b", None, True],
            }
            for i in range(count)
        }
        snapshot = Snapshot(7, locals, {"op": "task", "n": 4, "name": "charge"}, 5)
        stored = encode_snapshot(snapshot)
        plain = json.loads(stored)
        encoding, decoding = (
            best_s(lambda s=snapshot: encode_snapshot(s)),
            best_s(lambda b=stored: decode_snapshot(b)),
        )
        dumping, loading = (
            best_s(lambda p=plain: json.dumps(p)),
            best_s(lambda b=stored: json.loads(b)),
        )
        row(
            f"encode a snapshot of {size} ({len(stored):,})",
            show_s(encoding),
            f"json.dumps: {show_s(dumping)}",
            f"{encoding / dumping:.2f} ×",
        )
        row(
            f"decode a snapshot of {size}",
            show_s(decoding),
            f"json.loads: {show_s(loading)}",
            f"{decoding / loading:.2f} ×",
        )
