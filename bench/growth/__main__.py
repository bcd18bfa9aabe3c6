"""Runs the rows named, or all of them, each on the databases that it is about."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import runs
from bench.growth.ground import Ground
from bench.growth.results import Case, Results, Sample
from bench.growth.rows import ALL, BY_NAME, Row
from bench.growth.tables import shown, table_of
from bench.pages import ROOT
from bench.servers import Store, server

CACHE = ROOT / ".cache" / "growth"
RESULTS, SOME = CACHE / "results.json", CACHE / "some.json"
ROUNDS = 2
MAX_CONNECTIONS = "1000"  # 128 worker processes have up to six each


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    if unknown := [name for name in options.rows if name not in BY_NAME]:
        print(f"there is no row {unknown[0]}; there are {', '.join(BY_NAME)}", file=sys.stderr)
        return 2
    rows = [row for row in ALL if not options.rows or row.name in options.rows]
    everything = len(rows) == len(ALL) and options.scale == 1
    path = Path(options.results) if options.results else RESULTS if everything else SOME
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    began = time.monotonic()
    with server(max_connections=MAX_CONNECTIONS) as postgres:
        ground = Ground(postgres, options.scale, options.rounds)
        results = Results(runs.begun(postgres, ground.rounds, ground.scale))
        runs.say_where(results.about)
        for row in rows:
            run(row, ground, results, path)
    print(f"\n{time.monotonic() - began:.0f} s in all; {path}")
    return 1 if any(sample.problem for sample in results.samples) else 0


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(BY_NAME)
    parser = argparse.ArgumentParser("python -m bench.growth", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {names}; else all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each job; the best counts")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes: 0.01 to try it")
    parser.add_argument(
        "--results", default="", metavar="FILE",
        help=f"else {RESULTS.relative_to(ROOT)}; {SOME.name} beside it if not all was run",
    )  # fmt: skip
    return parser


def run(row: Row, ground: Ground, results: Results, path: Path) -> None:
    """Measures one row, stores each case at once, and prints them."""
    began = time.monotonic()
    print(f"{row.name}: {row.title}", flush=True)
    for store in row.stores:
        for sample in _samples(row, ground, store):
            results.samples.append(sample)
            results.about["load"]["end"] = runs.load()
            results.save(path)
            cells = ", ".join(filter(None, shown(results, row, sample)))
            print(f"  {sample.took_s:>6.1f} s  {store}, {sample.case.title}: {cells}", flush=True)
    took_s = time.monotonic() - began
    print(f"\n{table_of(results, row)}\n\n  {took_s:.0f} s, load {runs.load()}\n", flush=True)


def _samples(row: Row, ground: Ground, store: Store) -> Iterator[Sample]:
    """The cases of a row on one database; the last one has the reason if some are missing."""
    cases = row.work(ground, store)
    while True:
        began = time.monotonic()
        try:
            case, problem = next(cases), ""
        except StopIteration:
            return
        except Exception as error:  # the other rows are measured all the same
            case, problem = Case("the rest", {}), f"{type(error).__name__}: {error}"
        yield Sample(row.name, store, case, round(time.monotonic() - began, 1), problem)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
