"""Programs that want everything: each ends in a limit, or yields, soon and in little memory.

They run in processes of their own, several in each, so that the memory that one takes at its worst
can be seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.support.length import sampled, sweep

HALF_MEGABYTE = 'let t = "0123456789abcdef"\nfor (n in range(15)) { t = t + t }\n'
TWO_TREES = "let xs = [1]\nlet ys = [1]\nfor (n in range(60)) { xs = [xs, xs]\nys = [ys, ys] }\n"
ROW = "let row = range(100000)\n"

LIMITED = {  # these end in LimitExceeded, in whichever turn
    "doubling text": 'let t = "ab"\nwhile (true) { t = t + t }',
    "doubling text by template": 'let t = "ab"\nwhile (true) { t = `${t}${t}` }',
    "text that grows": 'let t = ""\nwhile (true) { t += "0123456789012345678901234567890123456789" }',
    "doubling list": "let xs = [1]\nwhile (true) { xs = xs + xs }",
    "doubling list by spread": "let xs = [1]\nwhile (true) { xs = [...xs, ...xs] }",
    "list that holds itself twice": "let xs = [1]\nwhile (true) { xs = [xs, xs] }",
    "object that holds itself twice": "let o = {}\nwhile (true) { o = { a: o, b: o } }",
    "list that nests": "let xs = []\nwhile (true) { xs = [xs] }",
    "list of long texts": f"{HALF_MEGABYTE}let xs = []\nwhile (true) {{ xs += [t + str(len(xs))] }}",
    "far range": "return range(100000000000)",
    "far range downwards": "return len(range(0, -9000000000000000000, -1))",
    "loop over a far range": "for (i in range(1000000000)) { let x = i }",
    "result that shares its parts": f"{TWO_TREES}return xs",
    "result that is nested": "let xs = []\nfor (i in range(5000)) { xs = [xs] }\nreturn xs",
    "state that shares its parts": f"{TWO_TREES}await sleep(1)\nreturn len(xs)",
    "state that is nested": "let xs = []\nfor (i in range(5000)) { xs = [xs] }\nawait sleep(1)",
    "task inputs that share their parts": f'{TWO_TREES}await task("a", {{ xs }})',
    "JSON of what shares its parts": f"{TWO_TREES}return json(xs)",
    "text of what shares its parts": f"{TWO_TREES}return `${{xs}}`",
    "hash of what shares its parts": f"{TWO_TREES}return hash(xs)",
    "unique of what shares its parts": f"{TWO_TREES}return unique(xs)",
    "comparison of what shares its parts": f"{TWO_TREES}return xs == ys",
    "search in what shares its parts": f"{TWO_TREES}return xs in [ys, ys]",
    "comparison of long lists of one list": f"{ROW}let other = range(100000)\n"
    "let xs = [row for i in range(1000)]\nreturn xs == [other for i in range(1000)]",
    "flatten": f"{ROW}return flatten([row for i in range(100000)])",
    "join": f"{HALF_MEGABYTE}return join([t for i in range(100000)])",
    "join with a long mark": f"{HALF_MEGABYTE}return join(range(100000), t)",
    "replace": f'{HALF_MEGABYTE}return replace(t, "0", t)',
    "split": 'let t = "a,"\nfor (i in range(18)) { t = t + t }\nreturn split(t, ",")',
    "split into characters": 'let t = "a,"\nfor (i in range(18)) { t = t + t }\nreturn split(t, "")',
    "split at spaces": 'let t = "a "\nfor (i in range(18)) { t = t + t }\nreturn split(t)',
    "format of a date": (
        'let t = "%Y%Y%Y%Y"\nfor (i in range(16)) { t = t + t }\nreturn '
        'format_date("2026-01-01", t)'
    ),
    "comprehensions in comprehensions": "return [[[x for x in range(1000)] for y in range(1000)] for z in range(1000)]",
    "comprehension in a condition": "return [x for x in range(100000) if len([y for y in range(100000)]) > 0]",
    "comprehension of ranges": "return [range(100000) for x in range(100000)]",
    "comprehension of long lists": f"{ROW}return [row + [] for i in range(100000)]",
    "comprehension of slices": f"{ROW}return [slice(row, 0) for i in range(100000)]",
    "comprehension of long texts": f'{HALF_MEGABYTE}return [t + "x" for i in range(100000)]',
    "comprehension of searches": f"{ROW}return [find_index(row, -1) for x in range(100000)]",
    "comprehension of JSON": f"{ROW}return [json(row) for x in range(100000)]",
    "comprehension of sorted lists": f"{ROW}return [sort(row) for x in range(100000)]",
    "search in a condition": f"{ROW}return [x for x in range(100000) if -1 in row]",
    "fan-out": 'await all([task("a", { i }) for i in range(100000)])',
    "fan-out that nobody awaits": 'let ids = [task("a") for i in range(100000)]',
    "fan-out of fan-outs": 'await all([all([task("a") for i in range(1000)]) for j in range(1000)])',
    "fan-out of signals": 'await all([all([signal("a") for i in range(1000)]) for j in range(1000)])',
    "fan-out of branches with large copies": f"{ROW}await all([branch {{ return row }} for j in range(10000)])",
    "fan-out of tasks with large inputs": f'{HALF_MEGABYTE}await all([task("a", {{ t }}) for j in range(10000)])',
    "error with everything in it": f'{HALF_MEGABYTE}throw {{ code: "A", message: t, data: [t for i in range(100000)] }}',
}
YIELDING = {  # these go on for ever, in turns
    "nothing": "while (true) {}",
    "counting": "let i = 0\nwhile (true) { i = i + 1 }",
    "object that grows": "let o = {}\nlet i = 0\nwhile (true) { o[`k${i}`] = i\ni += 1 }",
    "sorting": (
        "let xs = [x * 7919 % 100003 for x in range(100000)]\nwhile (true) { let ys = sort(xs) }"
    ),
    "adding up": f"{ROW}while (true) {{ let x = sum(row) }}",
    "changing one element": f"{ROW}while (true) {{ row[0] = 1 }}",
    "unique": f"{ROW}while (true) {{ let x = unique(row) }}",
    "reading JSON": f"{ROW}let t = json(row)\nwhile (true) {{ let x = parse_json(t) }}",
    "reading what is not JSON": (
        f"{HALF_MEGABYTE}while (true) {{ try {{ let x = parse_json(t) }} catch (e) {{ let y = "
        f"e.code }} }}"
    ),
    "searching a text": f'{HALF_MEGABYTE}while (true) {{ let x = contains(t, "!") }}',
    "comparing texts": f'{HALF_MEGABYTE}let u = t + ""\nwhile (true) {{ let x = t == u }}',
    "hashing": f"{HALF_MEGABYTE}while (true) {{ let x = hash(t) }}",
    "letters": f"{HALF_MEGABYTE}while (true) {{ let x = upper(t) }}",
    "walking pairs": f"{ROW}while (true) {{ for (i, x in row) {{ break }} }}",
    "failing": 'while (true) { try { throw "a" } catch (e) { let x = e } }',
    "missing properties": "let o = { a: 1 }\nwhile (true) { try { let x = o.b } catch (e) { let y = e } }",
    "starting": 'workflow w { while (true) { let _ = task("a") } }',
    "logging": 'while (true) { log("x") }',
    "logging much": f"{HALF_MEGABYTE}while (true) {{ log(t, {{ t }}) }}",
    "publishing much": f'{HALF_MEGABYTE}while (true) {{ publish("x", t) }}',
}
ENDING = {  # these end with this code
    "4294967296 * 4294967296": "Overflow",
    "-9223372036854775807 - 2": "Overflow",
    "1e300 * 1e300": "Overflow",
    "sum([9223372036854775807, 1])": "Overflow",
    "abs(-9223372036854775808)": "Overflow",
    "int(1e300)": "Overflow",
    'int("9999999999999999999")': "Overflow",
    'parse_json("18446744073709551616")': "InvalidArgument",
    'parse_json("1e999")': "InvalidArgument",
    'float("1e999")': "Overflow",
    "1 % 0": "DivisionByZero",
}

CHILD = """
    import json, os, resource, sys
    from rhythm.lang.flow.compile import compile_flow
    from rhythm.vm.interpreter import Continue, advance
    from rhythm.vm.machine import Inputs
    from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot
    from tests.support.calls import calls

    def memory_mb():
        # Linux counts what a process was before `exec` into ru_maxrss: the test runner may have been larger than we ever are.
        if os.path.exists("/proc/self/status"):
            return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)

    def run(text, turns):
        [program] = compile_flow(text).programs_or_raise()
        snapshot, worst, commands, ended = Snapshot(), 0, 0, []
        for _ in range(turns):
            inputs = Inputs("2026-11-15T09:00:00Z", "seed", None, {"id": "run"})
            worst = max(worst, calls(lambda: ended.append(advance(program, snapshot, inputs))))
            turn = ended.pop()
            commands = max(commands, len(turn.commands))
            if not isinstance(turn, Continue):
                break
            snapshot = decode_snapshot(encode_snapshot(turn.snapshot))
        code = turn.error["code"] if hasattr(turn, "error") else type(turn).__name__
        return {"code": code, "calls": worst, "commands": commands, "memory_mb": memory_mb()}

    texts, turns = json.load(sys.stdin)
    print(json.dumps([run(text, turns) for text in texts]))
"""
GROUP = 8  # programs in one process
# in one turn; a limit that does not hold has no end
MOST_CALLS = 5_000_000
LARGEST_MB = 200


def in_a_process(texts: list[str], turns: int) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD)],
        input=json.dumps([texts, turns]),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert ran.returncode == 0, ran.stderr
    return list(json.loads(ran.stdout))


def groups(programs: dict[str, str]) -> list[list[str]]:
    names = list(programs)[:: sampled(3, 1)]
    return [names[i : i + GROUP] for i in range(0, len(names), GROUP)]


def check(name: str, ended: dict[str, Any], code: str) -> None:
    assert ended["code"] == code, name
    assert ended["calls"] < MOST_CALLS, name
    assert ended["memory_mb"] < LARGEST_MB, f"{name}, or one before it"
    assert ended["commands"] <= 11_000, name


@sweep
@pytest.mark.parametrize("names", groups(LIMITED), ids=lambda names: names[0])
def test_what_is_too_large_ends_in_a_limit_soon(names: list[str]) -> None:
    for name, ended in zip(
        names, in_a_process([LIMITED[name] for name in names], 20_000), strict=True
    ):
        check(name, ended, "LimitExceeded")


@sweep
@pytest.mark.parametrize("names", groups(YIELDING), ids=lambda names: names[0])
def test_what_never_ends_yields_soon(names: list[str]) -> None:
    for name, ended in zip(names, in_a_process([YIELDING[name] for name in names], 3), strict=True):
        check(name, ended, "Continue")


def test_numbers_that_do_not_fit_are_errors() -> None:
    ended = in_a_process([f"return {expression}" for expression in ENDING], 1)
    assert dict(zip(ENDING, (end["code"] for end in ended), strict=True)) == ENDING


def test_lifetime_ends_an_execution_that_never_does() -> None:
    script = "from functools import partial\nfrom rhythm.limits import *\n"
    script += "import rhythm.vm.interpreter as i\n"
    script += "few = DEFAULT_LIMITS.replace(lifetime_instructions=500_000)\n"
    script += "i.advance = partial(i.advance, limits=few)\n"
    ran = subprocess.run(
        [sys.executable, "-c", script + textwrap.dedent(CHILD)],
        input=json.dumps([["while (true) {}"], 20]),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert json.loads(ran.stdout)[0]["code"] == "LimitExceeded"
