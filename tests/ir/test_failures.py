"""Which failures end a workflow, in every language: those that no handler is sure to take."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from rhythm.ir.failures import unhandled
from rhythm.ir.program import Program
from rhythm.lang.languages import compile_text
from tests.python.modules import compiled


def found(program: Program) -> list[tuple[int, str]]:
    return [(failure.line, failure.what) for failure in unhandled(program)]


FLOW: list[tuple[str, list[tuple[int, str]]]] = [
    ('await task("a")\nawait workflow("b")', [(2, "task a"), (3, "workflow b")]),
    ('try { await task("a") } catch (e) { log(e) }', []),
    ('try { await task("a") } finally { log("x") }', [(2, "task a")]),
    ('try { await task("a") } catch (e) { throw e }', [(2, "task a")]),
    ('try { await task("a") } catch (e) { throw "other" }', []),
    ('try { try { await task("a") } catch (e) { throw e } } catch (f) { log(f) }', []),
    ('try { log("x") } catch (e) { await task("a") }', [(2, "task a")]),
    ('await task("a", {}, { settle: true })', []),
    ('await all([task("a"), task("b"), sleep(1)])', [(2, "task a, task b")]),
    ('await all({ x: task("a"), y: task("a") })', [(2, "task a")]),
    ('await all([task("a") for x in [1, 2]])', [(2, "task a")]),
    ('await all([task("a")], { settle: true })', []),
    ('await any([task("a"), task("b")])', [(2, "all of: task a, task b")]),
    ('await race([task("a"), sleep(1)])', []),
    ('for (r in completed([task("a")])) { log(r) }', []),
    ('await sleep(1)\nawait signal("a")\nawait approval({ role: "b" })', []),
    ('await signal("a", { timeout: 5 })', [(2, "signal a")]),
    ('await event("a", { timeout: 5, default: 1 })', []),
    ('let id = task("a")\nawait id', [(3, "what was started before")]),
    ('await task("a" + "b")', [(2, "task of a computed name")]),
    ('await branch { await task("a") }', [(2, "task a")]),
    ('try { await branch { await task("a") } } catch (e) { log(e) }', []),
    ('await branch { try { await task("a") } catch (e) { log(e) } }', []),
    ('if (inputs) { await task("a") } else { try { await task("b") } catch (e) { } }',
     [(2, "task a")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ends"), FLOW)
def test_in_flow(text: str, ends: list[tuple[int, str]]) -> None:
    compilation = compile_text(f"workflow main(inputs) {{\n{text}\n}}", "main.flow")
    [program] = compilation.programs_or_raise()
    assert found(program) == ends


HEADER = """import asyncio, rhythm
@rhythm.task(name="a")
async def a(): ...
@rhythm.workflow(name="b")
async def b(): ...
async def workflow(x=None):
"""
PYTHON: list[tuple[str, list[tuple[int, str]]]] = [
    ("await a()", [(1, "task a")]),
    ("try:\n    await a()\nexcept Exception:\n    pass", []),
    ("try:\n    await a()\nexcept rhythm.TaskFailed:\n    pass", []),
    ("try:\n    await a()\nexcept ValueError:\n    pass", [(2, "task a")]),
    ("try:\n    await a()\nexcept (KeyError, rhythm.RhythmError):\n    pass", []),
    ("try:\n    await a()\nexcept ValueError:\n    pass\nexcept rhythm.TaskFailed:\n    pass", []),
    ("try:\n    await a()\nexcept Exception:\n    raise", [(2, "task a")]),
    ("try:\n    await a()\nexcept Exception as e:\n    raise ValueError() from e", []),
    ("try:\n    await b()\nexcept rhythm.TaskFailed:\n    pass", [(2, "workflow b")]),
    ("try:\n    await b()\nexcept rhythm.ChildFailed:\n    pass", []),
    ("try:\n    await rhythm.signal('s', timeout=5)\nexcept TimeoutError:\n    pass", []),
    ("with rhythm.timeout(5):\n    await a()", [(2, "task a")]),
    ("try:\n    await asyncio.wait_for(a(), 5)\nexcept Exception:\n    pass", []),
    ("await asyncio.gather(a(), b())", [(1, "task a, workflow b")]),
    ("return [await a() for i in range(3)]", [(1, "task a")]),
    ("try:\n    try:\n        await a()\n    except KeyError:\n        pass\nexcept Exception:\n"
     "    pass", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ends"), PYTHON)
def test_in_python(text: str, ends: list[tuple[int, str]], tmp_path: Path) -> None:
    compilation = compiled(f"{HEADER}{textwrap.indent(text, '    ')}\n", tmp_path)
    [program] = compilation.programs_or_raise()
    lines = HEADER.count("\n")
    assert [(line - lines, what) for line, what in found(program)] == ends


def step(id: str, task: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "task", "task": task, **more}


def test_in_json_steps() -> None:
    steps = [step("one", "a"), step("two", "b", on_failure="sorry"), {"id": "sorry", "type": "end"}]
    text = json.dumps({"workflow_id": "main", "steps": steps}, indent=1)
    [program] = compile_text(text, "main.steps.json").programs_or_raise()
    assert [what for _, what in found(program)] == ["task a"]
