"""The corpus of Python workflows: the engine gives what CPython gives for the same function."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.python.corpus import (
    Ended,
    calls,
    completed,
    failed,
    in_process,
    in_world,
    load,
    local,
    normal,
)  # fmt: skip
from tests.python.given import GIVEN
from tests.python.interrupted import PythonWorld, deaths
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, sqlite_in_memory

CORPUS = load()
NAMES = list(GIVEN)
FEW = 25  # programs that are run on a database in `make test`
CHOSEN = sampled(random.Random(7).sample(NAMES, min(FEW, len(NAMES))), NAMES)


def test_corpus_has_two_hundred_programs_and_each_is_called() -> None:
    assert len(NAMES) >= 200
    assert set(NAMES) <= CORPUS.workflows.keys()
    assert len(calls()) >= 400


@pytest.mark.parametrize("name", NAMES)
def test_program_gives_what_cpython_gives(name: str) -> None:
    for inputs in GIVEN[name]:
        expected = local(CORPUS, name, inputs)
        straight = in_world(CORPUS, name, inputs, through_json=False)
        assert straight == expected, inputs
        assert in_world(CORPUS, name, inputs, through_json=True) == expected, inputs
        assert in_process(CORPUS, sqlite_in_memory, name, inputs) == expected, inputs


@sweep
@pytest.mark.parametrize("name", CHOSEN)
def test_program_gives_the_same_on_every_store(name: str, make_store: MakeStore) -> None:
    for inputs in GIVEN[name]:
        expected = local(CORPUS, name, inputs)
        assert in_process(CORPUS, make_store, name, inputs) == expected, inputs


@sweep
@pytest.mark.parametrize("name", CHOSEN)
def test_program_that_is_interrupted_gives_the_same(name: str, make_store: MakeStore) -> None:
    """The worker dies before a commit, after it, or before it has the answer."""
    inputs = GIVEN[name][0]
    expected = local(CORPUS, name, inputs)
    straight, calls_of_store = _interrupted(make_store, name, inputs, 0, "")
    assert straight == expected
    for at, mode in deaths(calls_of_store, sampled(2, 12)):
        assert _interrupted(make_store, name, inputs, at, mode)[0] == expected, (at, mode)


def _interrupted(
    make_store: MakeStore, name: str, inputs: dict[str, Any], fail_at: int, mode: str
) -> tuple[Ended, int]:
    """How it ends if its worker dies at a call of the store, and how many calls there were."""
    family = [CORPUS.workflows[each.name] for each in CORPUS.family(name)]
    world = PythonWorld(family, CORPUS.tasks, fail_at, mode, make_store)
    world.start(name, normal(inputs))
    ended = world.run()
    if ended.status == "completed":
        return completed(json.loads(ended.result or "null")), world.store.calls
    return failed(json.loads(ended.error or "null")), world.store.calls
