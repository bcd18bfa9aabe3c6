"""`python -m tests.model`: Spin proves the rules of `owner.pml`, and that each of its guards is
needed for one of them.

It is a model, not the code: it covers every interleaving of two workers, a rescuer, an outside
event and a cancel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

MODEL = Path(__file__).with_name("owner.pml")
RULES = {
    "safe": (),  # no body after its completion was committed, no turn but by the owner, one end
    "once": (),  # each completion is applied once
    "wakeup": (),  # nobody sleeps while there is something to do
    "live": ("-f",),  # it ends, if every process that can go on does (weak fairness)
}
GUARDS = {
    "FENCE": "a turn finds no newer fence in the context",
    "SEQ": "a turn is its own, not a repetition",
    "WAKES": "parking only if nothing has happened since the load",
    "RAISE": "rescue raises the context's fence",
    "BUMP": "a wake of a claimed row is counted",
    "DEADLINE": "no body begins beyond the local deadline",
}
PROGRAMS = {"spin": "spin", "gcc": "gcc"}  # and the Debian packages that have them


class Result(NamedTuple):
    holds: bool
    states: int
    seconds: float


def main() -> int:
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        packages = " ".join(PROGRAMS[name] for name in missing)
        print(
            f"{' and '.join(missing)} not found. On Debian and Ubuntu: apt-get install {packages}",
            file=sys.stderr,
        )
        return 2
    print(
        f"{'guard taken away':<60} "
        + " ".join(f"{rule:<8}" for rule in RULES)
        + "    states      s"
    )
    whole = _check("nothing", ())
    found = [_check(f"{name}: {what}", (f"-D{name}=0",)) for name, what in GUARDS.items()]
    needless = [
        name
        for name, results in zip(GUARDS, found, strict=True)
        if all(result.holds for result in results.values())
    ]
    wrong = [rule for rule, result in whole.items() if not result.holds]
    for name in needless:
        print(f"without {name} nothing breaks: the model does not show that it is needed")
    for rule in wrong:
        print(f"the rule `{rule}` is broken with all guards in place")
    return bool(needless or wrong)


def _check(name: str, defines: tuple[str, ...]) -> dict[str, Result]:
    """Which rules hold, told in one line."""
    with tempfile.TemporaryDirectory(prefix="rhythm-model-") as folder:
        _run(["spin", *defines, "-a", str(MODEL)], folder)
        _run(["gcc", "-O2", "-w", "-DNFAIR=3", "-o", "pan", "pan.c"], folder)
        results = {rule: _rule(rule, options, folder) for rule, options in RULES.items()}
    words = " ".join(f"{'holds' if result.holds else 'BROKEN':<8}" for result in results.values())
    states, seconds = (
        sum(result.states for result in results.values()),
        sum(result.seconds for result in results.values()),
    )
    print(f"{name:<60} {words} {states:>9,} {seconds:6.1f}", flush=True)
    return results


def _rule(rule: str, options: tuple[str, ...], folder: str) -> Result:
    began = time.monotonic()
    said = _run(["./pan", "-a", *options, "-N", rule, "-m400000"], folder)
    errors, states = re.search(r"errors: (\d+)", said), re.search(r"(\d+) states, stored", said)
    if not errors or not states or "max search depth too small" in said:
        raise RuntimeError(f"the model checker did not finish:\n{said}")
    return Result(errors[1] == "0", int(states[1]), time.monotonic() - began)


def _run(command: list[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
