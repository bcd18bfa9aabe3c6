"""`rhythm convert`: the `.flow` of a Python workflow compiles, and does the same."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.app.database import memory_store
from rhythm.authoring.workflow import Workflow
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.flow.format import format_source
from rhythm.lang.flow.write import Unwritable, write_workflow
from rhythm.worker.runner import Clock, InProcessRunner
from tests.python.converted import CASES, TASKS, child, numbers
from tests.python.corpus import Corpus, in_world, load, local
from tests.python.given import GIVEN


def text_of(workflow: Workflow[..., Any]) -> str:
    workflow.compilation.programs_or_raise()
    [(tree, options)] = workflow.compilation.workflows
    return write_workflow(tree, options)


def converted(name: str) -> Program:
    compilation = compile_flow(text_of(CASES[name][0]), f"{name}.flow")
    assert [d for d in compilation.diagnostics if d.severity != "note"] == []
    return compilation.programs[0]


def ended(find: Any, name: str, inputs: Any) -> tuple[str, Any]:
    runner = InProcessRunner(memory_store, find, TASKS, lambda task: "it is not there", Clock(True))
    try:
        run = runner.run(name, inputs)
    finally:
        runner.close()
    return run.status, run.value


@pytest.mark.parametrize("name", CASES)
def test_converted_workflow_gives_the_same(name: str) -> None:
    for inputs in CASES[name][1]:
        original = ended(lambda name: CASES[name][0].program, name, inputs)
        assert ended(converted, name, inputs) == original
        assert original[0] == "completed" or original[1]["code"] in ("TaskFailed", "ValueError")


@pytest.mark.parametrize("name", CASES)
def test_converted_text_is_formatted(name: str) -> None:
    text = text_of(CASES[name][0])
    assert format_source(text) == text


class Converted(Corpus):
    """The corpus, of which each program is made from the `.flow` that it is converted to."""

    def program(self, name: str) -> Program:
        if name not in self.workflows:
            return super().program(name)
        compilation = compile_flow(text_of(self.workflows[name]), f"{name}.flow")
        assert compilation.errors == [], name
        return compilation.programs[0]


CORPUS = load()
CONVERTED = Converted(CORPUS.workflows, CORPUS.tasks)


@pytest.mark.parametrize("name", GIVEN)
def test_converted_program_of_the_corpus_gives_what_cpython_gives(name: str) -> None:
    text = text_of(CORPUS.workflows[name])
    assert format_source(text) == text
    for inputs in GIVEN[name]:
        expected = local(CORPUS, name, inputs)
        assert in_world(CONVERTED, name, inputs, through_json=True) == expected, inputs


def test_variable_is_declared_where_it_is_first_set() -> None:
    assert text_of(child) == (
        "workflow child(n: integer) {\n"
        '  let value = await task("double", { n })\n'
        "  return { n, twice: value }\n"
        "}\n"
    )


def test_options_become_annotations() -> None:
    options = {
        "queue": 'or"ders',
        "timeout": 90.0,
        "on": ["order.paid", "order.sent"],
        "schedule": [
            {"cron": "0 9 * * *", "tz": "Europe/Berlin", "inputs": {"n": 1}},
            {"cron": "0 1 * * *", "inputs": {"n": 2}},
        ],
        "version": "two",
    }
    workflow: Workflow[..., Any] = Workflow(numbers.function, "numbers", options)
    [program] = compile_flow(text_of(workflow)).programs_or_raise()
    assert program.options == {**options, "inputs": workflow.inputs}


@pytest.mark.parametrize("name", ["order-paid", "größe", "catch", "a b"])
def test_name_that_is_no_word_is_refused(name: str) -> None:
    with pytest.raises(Unwritable, match=f"`{name}` cannot be written in .flow"):
        text_of(Workflow(numbers.function, name, {}))
