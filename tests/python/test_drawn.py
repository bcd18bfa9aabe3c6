"""Drawn Python workflows end on the engine as they end in CPython."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rhythm.errors import FlowError
from rhythm.worker.handlers import Task
from tests.python.corpus import Corpus, Ended, in_process, in_world, local
from tests.python.generated import Drawn, workflow_of
from tests.python.programs._tasks import echo, maybe
from tests.support.length import sampled, sweep
from tests.support.stores import sqlite_in_memory

# A change of a shared value, and a name that may have no value: the checks are careful.
MAY_REFUSE = {"P021", "P040", "P041"}
HELD = "is also held elsewhere"  # the same, where only the run shows whether it is a list
INPUTS = {
    "i": st.integers(-9, 9),
    "s": st.sampled_from(["", "ab", "a b"]),
    "xs": st.just([1, 2, 3]),
}


def drawn(text: str) -> Corpus:
    """The workflow of the text, if it is not refused for what may be refused."""
    workflow = workflow_of(text)
    try:
        workflow.program  # noqa: B018  # it is compiled when it is asked for
    except FlowError:
        assert {wrong.code for wrong in workflow.compilation.errors} <= MAY_REFUSE, text
        assume(False)
    tasks: dict[str, Task[..., Any]] = {"echo": echo, "maybe": maybe}
    return Corpus({"drawn": workflow}, tasks)


@sweep
@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # such as `True[0]`, which may be drawn
@settings(max_examples=sampled(60, 3000))
@given(st.randoms(use_true_random=False), st.fixed_dictionaries(INPUTS), st.integers(0, 99))
def test_drawn_program_gives_what_cpython_gives(
    random: Random, inputs: dict[str, Any], shuffle: int
) -> None:
    text = Drawn(random).text()
    corpus = drawn(text)
    expected = local(corpus, "drawn", inputs)
    ends: list[Ended] = [
        in_world(corpus, "drawn", inputs, through_json=True),
        in_world(corpus, "drawn", inputs, through_json=False, shuffle=shuffle),
    ]
    assume(not any(HELD in each.message for each in ends))
    assert ends == [expected, expected], text


@sweep
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=sampled(15, 500))
@given(st.randoms(use_true_random=False), st.fixed_dictionaries(INPUTS))
def test_drawn_program_gives_the_same_on_a_store(random: Random, inputs: dict[str, Any]) -> None:
    text = Drawn(random).text()
    corpus = drawn(text)
    expected = local(corpus, "drawn", inputs)
    end = in_process(corpus, sqlite_in_memory, "drawn", inputs)
    assume(HELD not in end.message)
    assert end == expected, text
