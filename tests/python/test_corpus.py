"""The corpus of Python workflows: the engine gives what CPython gives for the same function."""

from __future__ import annotations

import random

import pytest

from tests.python.corpus import calls, in_process, in_world, load, local
from tests.python.given import GIVEN
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
