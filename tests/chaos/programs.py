"""The load: generated programs and fixed ones that wait for signals, each under a name of its own,
with what it must give."""

from __future__ import annotations

import random
import re
from typing import Any, NamedTuple

from rhythm.engine.definitions import definition_of
from rhythm.lang.flow.compile import compile_flow
from rhythm.store.interfaces.definitions import Definition
from tests.engine.simulated_programs import CHAIN, CLEANUP, FAMILIES, FIXED, LETTERS, RACES, SIGNALS
from tests.support.generate import program as generated
from tests.support.reference import Expected

# Generated programs sleep for as long as people do; the result does not depend on it.
QUICKER = (
    (r"sleep\(1\)", "sleep(0.05)"),
    (r"sleep\([\"']90s[\"']\)", "sleep(0.1)"),
    (r"sleep\([\"']1h30m[\"']\)", "sleep(0.3)"),
    (r"sleep\(\"10s\"\)", "sleep(0.1)"),
    (r"sleep\(n\)", "sleep(n / 20)"),
    (r"timeout: 40", "timeout: 0.4"),
)
FIXED_ONES = [one for one in FIXED if one[0] in (CHAIN, CLEANUP, FAMILIES, LETTERS, RACES, SIGNALS)]
EVERY_FIXED = 4  # one program of so many is a fixed one


class Case(NamedTuple):
    name: str
    version: str
    definitions: list[Definition]
    expected: Expected
    signals: tuple[tuple[str, Any], ...]


def case_of(seed: int, number: int) -> Case:
    name, signals = f"p{number}", tuple[tuple[str, Any], ...]()
    if number % EVERY_FIXED == 0:
        text, result, signals = FIXED_ONES[number // EVERY_FIXED % len(FIXED_ONES)]
        expected = Expected("completed", result)
    else:
        text, expected = generated(random.Random(f"{seed} {number}"))
    return compiled(name, _named(_quicker(text), name), expected, signals)


def compiled(
    name: str, text: str, expected: Expected, signals: tuple[tuple[str, Any], ...] = ()
) -> Case:
    programs = compile_flow(text, f"{name}.flow").programs_or_raise()
    definitions = [definition_of(p, text) for p in programs]
    return Case(name, programs[0].version, definitions, expected, signals)


def _quicker(text: str) -> str:
    for slow, quick in QUICKER:
        text = re.sub(slow, quick, text)
    return text


def _named(text: str, name: str) -> str:
    """Under names that no other program has: `main` is `p7`, its child `first` is `p7_first`."""
    text = re.sub(
        r"^workflow (\w+)",
        lambda found: f"workflow {_own(name, found[1])}",
        text,
        flags=re.MULTILINE,
    )
    return re.sub(
        r"\bworkflow\(\"(\w+)\"", lambda found: f'workflow("{_own(name, found[1])}"', text
    )


def _own(name: str, inner: str) -> str:
    return name if inner == "main" else f"{name}_{inner}"
