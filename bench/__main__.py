"""Runs the benchmarks named, or all of them."""

from __future__ import annotations

import os
import platform
import sys

from bench import engine, language, payloads, startup

BENCHMARKS = {
    work.__name__: work
    for work in (
        language.compiling, language.running, language.suspending, language.snapshots, payloads.payloads, startup.starting,
        engine.registering, engine.single, engine.sequences, engine.fan_out, engine.reacting,
    )
}  # fmt: skip


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"there is no benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores; best of several rounds, ratio to the yardstick beside it\n")
    for name in names or BENCHMARKS:
        print(name)
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
