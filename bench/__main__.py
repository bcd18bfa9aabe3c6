"""Runs the benchmarks named, or all of them."""

from __future__ import annotations

import os
import platform
import sys

from bench import engine, groups, jobs, language, payloads, people, python_workflows, startup
from bench.places import cleanup
from rhythm.cli.output.progress import progress

BENCHMARKS = {
    work.__name__: work
    for work in (
        language.compiling, language.running, language.suspending, language.snapshots,
        payloads.payloads, startup.startup,
        engine.registering, engine.reacting, jobs.queue, jobs.sequences, jobs.single, jobs.family,
        people.people, people.decisions, python_workflows.python, groups.groups,
    )
}  # fmt: skip


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(
            f"there is no benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}",
            file=sys.stderr,
        )
        return 2
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {_load()}; ratio to "
        f"the yardstick beside it\n"
    )
    chosen = names or [*BENCHMARKS]
    # it does not move by itself: that would be measured, too
    with cleanup, progress("benchmarks", len(chosen), moves=False) as tell:
        for number, name in enumerate(chosen):
            tell(number, len(chosen), name)
            print(name)
            BENCHMARKS[name]()
    print(f"\n{_load()} at the end\n")
    jobs.summary()
    return 0


def _load() -> str:
    """How much else goes on: figures of a busy machine are to be read as ratios."""
    return f"load {os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
