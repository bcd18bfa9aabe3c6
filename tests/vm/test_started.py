"""What was started without await: it goes on, it is carried out once, and a snapshot does not
remember it for ever."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.lang.flow.compile import compile_flow
from rhythm.vm.machine import STARTED
from tests.support.world import Execution, World


def run(text: str, signals: list[dict[str, Any]] | None = None) -> tuple[Execution, list[Any]]:
    """The ended execution of a workflow `w`, and the inputs of every task that ran, in order."""
    ran: list[Any] = []
    world = World(
        list(compile_flow(text, "w.flow").programs_or_raise()),
        tasks={"note": lambda inputs: ran.append(inputs["x"]) or inputs["x"]},
    )
    return world.run("w", None, signals), ran


@pytest.mark.parametrize(
    ("body", "ran"),
    [
        (
            (
                'try { await all([task("fail"), *], { concurrency: 1, keep: true }) } catch '
                "(e) { log(e) }"
            ),
            [1, 2],
        ),
        ("let g = all([*], { concurrency: 1 })", [1, 2]),
        ('for (r in completed([task("nothing"), *], { concurrency: 1 })) { break }', [1, 2]),
        (
            (
                'let g = race([task("nothing"), all([*], { concurrency: 1 })], { keep: true '
                "})\nawait g"
            ),
            [1, 2],
        ),
        (
            (
                'let a = task("note", { x: 1 })\nlet b = task("note", { x: 2 })\nawait '
                'task("nothing")\nawait all([a, b], { concurrency: 1 })'
            ),
            [1, 2],
        ),
    ],
)
def test_what_concurrency_held_back_goes_on_once_when_nobody_waits(
    body: str, ran: list[int]
) -> None:
    body = body.replace("*", 'task("note", { x: 1 }), task("note", { x: 2 })')
    assert run(f"workflow w {{\n{body}\nawait sleep(100)\n}}")[1] == ran


def test_what_concurrency_held_back_goes_on_when_the_workflow_completes() -> None:
    child = (
        'workflow kid { let _g = all([task("note", { x: 1 }), task("note", { x: 2 })], { '
        "concurrency: 1 })\nreturn 1 }"
    )
    assert run(f'workflow w {{\nawait workflow("kid")\nawait sleep(100)\n}}\n{child}')[1] == [1, 2]


def test_plans_of_things_whose_ids_are_gone_are_forgotten() -> None:
    execution, _ = run(
        """workflow w {
          let kept = signal("late", { timeout: "1d", default: "kept" })
          for (i in range(500)) {
            let s = signal("tick", { timeout: 0, default: i })
            await s
          }
          await sleep(1)
          let again = await kept
          return again
        }"""
    )
    assert execution.value == "kept"
    assert len(execution.snapshot.locals[STARTED]) <= 101
