"""`python -m tests.mutants [WORD …]`: every guard of the protocol taken away, one at a time; its
tests must turn red.

With words, only the guards whose names contain one of them.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from tests.mutants.guards import MUTANTS
from tests.mutants.mutate import ROOT, Mutant, Verdict, mutated, run_tests, verdict
from tests.support.postgres import GIVEN, server

AT_ONCE = 2


def main() -> int:
    words = sys.argv[1:]
    mutants = [
        mutant for mutant in MUTANTS if not words or any(word in mutant.guard for word in words)
    ]
    for mutant in mutants:
        # before anything is run: a text that is gone is an error
        mutated(ROOT / "src" / "rhythm", mutant)
    began = time.monotonic()
    with server() as url:
        if problem := _without_mutation(mutants, {GIVEN: url}):
            print(problem)
            return 1
        verdicts = _all_verdicts(mutants, {GIVEN: url})
    survived = [verdict for verdict in verdicts if verdict.word != "red"]
    for each in survived:
        print(
            f"\n== {each.mutant.guard} ({each.mutant.database}): {each.word}\n{each.output[-3000:]}"
        )
    print(
        f"\n{len(verdicts)} guards taken away, {len(survived)} not noticed, "
        f"{time.monotonic() - began:.0f} s"
    )
    return bool(survived)


def _without_mutation(mutants: list[Mutant], environment: dict[str, str]) -> str:
    """What is wrong if the tests are not green to begin with: then red would mean nothing."""
    tests = tuple(sorted(set(chain.from_iterable(mutant.tests for mutant in mutants))))
    code, output = run_tests(tests, ROOT, environment, limit_s=None)  # they are many
    return "" if code == 0 else f"the tests are not green without any mutation:\n{output}"


def _all_verdicts(mutants: list[Mutant], environment: dict[str, str]) -> list[Verdict]:
    verdicts = []
    print(f"{'guard taken away':<66} {'database':<8} {'tests':<8} {'s':>6}  must turn red")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for each in threads.map(lambda mutant: verdict(mutant, environment), mutants):
            print(each.line(), flush=True)
            verdicts.append(each)
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
