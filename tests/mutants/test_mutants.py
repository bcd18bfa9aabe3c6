"""The table of guards is true: everything it would change is there, every test it names exists, and
red means red."""

from __future__ import annotations

import re

import pytest

from tests.mutants.guards import MUTANTS, lite, rule
from tests.mutants.mutate import ROOT, Change, Mutant, NotFound, changed, mutated, verdict

RULE = rule("dropping_needs_the_fence")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.guard}-{mutant.database}")
def test_text_of_every_mutation_is_found_once_and_its_tests_exist(mutant: Mutant) -> None:
    for path, text in mutated(ROOT / "src" / "rhythm", mutant).items():
        assert text != path.read_text()
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), test


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (Change("queries.sql", "b", "gone", ""), "found 0 times"),
        (Change("queries.sql", "b", "one", ""), "found 2 times"),
        (Change("queries.sql", "c", "one", ""), "found 0 times instead of once: c"),
    ],
)
def test_text_that_is_not_there_once_is_an_error(change: Change, problem: str) -> None:
    with pytest.raises(NotFound, match=problem):
        changed("-- name: a\ngone\n\n-- name: b\none one\n", change)


def test_missing_guard_is_red_and_a_change_without_effect_is_not() -> None:
    without = Mutant(
        "drop: only under my fence",
        "sqlite",
        RULE,
        lite("delete_claimed", " AND fence = ?", " AND ? > 0"),
    )
    assert verdict(without).word == "red"
    same = without._replace(
        changes=lite(
            "delete_claimed",
            "DELETE FROM ready WHERE id = ?",
            "DELETE FROM ready WHERE ready.id = ?",
        )
    )
    assert verdict(same).word == "NOT RED"
    unfit = without._replace(
        changes=lite("delete_claimed", "DELETE FROM ready", "DELETE FORM ready")
    )
    assert verdict(unfit).word == "BROKEN"
