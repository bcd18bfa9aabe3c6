"""Workflows in Python next to the same ones in `.flow`: compiling, computing, and J2's steps.

Both become the same kind of program, so what differs is how it is written down and which builtins
compute (`py.add` in place of `+`).
"""

from __future__ import annotations

import ast
import importlib.util
import tempfile
import time
from contextlib import closing
from pathlib import Path
from types import ModuleType

from bench.jobs import EVERYWHERE, FLOW, ROUNDS, STEPS, WORKFLOWS
from bench.language import NOW, compiled
from bench.measure import best_s, row, show_s
from bench.places import Place, cleanup
from rhythm.authoring.workflow import Workflow, workflow
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.vm.interpreter import Suspended, advance
from rhythm.vm.snapshot import Snapshot

ITEMS = 14  # of the workflow that is compiled: each is seven lines
HEAD = 'import rhythm\n\n@rhythm.task(name="untyped_note")\nasync def note(x): ...\n\n'
PY_ITEM = """
    item{i} = items[{i}]
    price{i} = await note({{"item": item{i}["name"], "count": item{i}["count"]}})
    if price{i} > 100 and item{i}["count"] > 1:
        total += price{i} * 0.9
    else:
        total += price{i}
    seen.append(f"{{item{i}['name']}}: {{price{i}:.2f}}")"""
FLOW_ITEM = """
    let item{i} = inputs.items[{i}]
    let price{i} = await task("note", {{ x: {{ item: item{i}.name, count: item{i}.count }} }})
    if (price{i} > 100 && item{i}.count > 1) {{
        total += price{i} * 0.9
    }} else {{
        total += price{i}
    }}
    seen += [`${{item{i}.name}}: ${{price{i}}}`]"""
LOOP = "workflow loop() {\nlet total = 0\nlet i = 0\n{body}await sleep(1)\nreturn total\n}"
LOOP_BODY = (
    "while (i < 15000) {\nif (i % 3 == 0) { total += i * 2 } else { total -= 1 }\ni += 1\n}\n"
)


def python() -> None:
    """Compiles, computes and runs the same workflows in both languages."""
    _compiling()
    _computing()
    _steps()


def _module(text: str) -> ModuleType:
    """The module of this text, from a file: a workflow's source is read there."""
    path = Path(cleanup.enter_context(tempfile.TemporaryDirectory())) / "made.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location("made", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compiling() -> None:
    numbers = range(ITEMS)
    head = "async def big(items):\n    total = 0.0\n    seen = []"
    code = head + "".join(PY_ITEM.format(i=i) for i in numbers) + "\n    return [total, seen]\n"
    flow = "workflow big(inputs) {\n    let total = 0.0\n    let seen = []"
    flow += "".join(FLOW_ITEM.format(i=i) for i in numbers) + "\n    return [total, seen]\n}\n"
    function = _module(HEAD + code).big
    lines = code.count("\n")
    assert not Workflow(function, "big", {}).compilation.errors
    ours = best_s(lambda: Workflow(function, "big", {}).compilation) * 100 / lines
    as_flow = best_s(lambda: compile_flow(flow)) * 100 / lines
    theirs = best_s(lambda: compile(ast.parse(code), "made.py", "exec")) * 100 / lines
    for what, took in ((".flow", as_flow), ("CPython's compile", theirs)):
        row("compile 100 lines", show_s(ours), f"{what}: {show_s(took)}", f"{ours / took:.1f} ×")


def _computing() -> None:
    text = (
        "import rhythm\n\nasync def loop():\n    total = 0\n    i = 0\n    while i < 15000:\n"
        "        if i % 3 == 0:\n            total += i * 2\n        else:\n"
        "            total -= 1\n        i += 1\n    await rhythm.sleep(1)\n    return total\n"
    )
    made = Workflow(_module(text).loop, "loop", {}).program
    in_flow = compiled(LOOP.replace("{body}", LOOP_BODY))
    ours, as_flow = (_turn_s(program) for program in (made, in_flow))
    ratio = f"{ours / as_flow:.2f} ×"
    row("15,000 rounds of a loop", show_s(ours), f".flow: {show_s(as_flow)}", ratio)


def _turn_s(program: Program) -> float:
    turn = advance(program, Snapshot(), NOW)
    assert isinstance(turn, Suspended), turn
    return best_s(lambda: advance(program, Snapshot(), NOW))


def _steps() -> None:
    """J2 in both languages, in turn on the same kind of database."""
    workflow(_module(_sequence()).py_steps)  # a start registers it
    for where, make, processes in EVERYWHERE:
        best = {"steps": 0.0, "py_steps": 0.0}
        for _ in range(ROUNDS):
            for name in best:
                with closing(make()) as place:
                    best[name] = max(best[name], _steps_a_second(place, name, processes))
        ours, as_flow = best["py_steps"], best["steps"]
        row(
            f"J2 steps, {where}",
            f"{ours:,.0f}/s",
            f".flow: {as_flow:,.0f}/s",
            f"{as_flow / ours:.2f} ×",
        )


def _sequence() -> str:
    return (
        "from bench.tasks import note\n\n"
        f"async def py_steps():\n    total = 0\n    for i in range({STEPS}):\n"
        "        total += await note.run(i)\n    return total\n"
    )


def _steps_a_second(place: Place, name: str, processes: int) -> float:
    place.app.register(FLOW)
    with place.workers(processes, "one"):
        place.app.start_many(name, [None] * WORKFLOWS)
        return WORKFLOWS * STEPS / place.until_done(time.time())
