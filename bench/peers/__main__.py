"""Runs the jobs named, or all of them: each job by all the engines in turn, so that what else the
machine does hits all alike."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from bench.peers.engines import Engine, chosen
from bench.peers.installing import COMPILED, NotInstalled, python_of
from bench.peers.jobs import BY_NAME, COMMIT, JOBS, Job
from bench.peers.results import Cell, Results, begun
from bench.peers.running import Outcome, run
from bench.peers.tables import compiled_table, job_table, ratio_table
from bench.runs import load, say_where
from bench.servers import Server, empty, server

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).with_name("scripts")
CACHE = ROOT / ".cache" / "peers"
ALL, SOME = CACHE / "results.json", CACHE / "some.json"
NAMES = [job.name for job in JOBS]
ROUNDS, LIMIT_S = 3, 240.0
VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR")  # of our environment, for the scripts


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        engines = chosen([name for name in options.only.split(",") if name])
        jobs = [_job(name) for name in options.jobs] or list(JOBS)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    everything = not options.only and not options.jobs
    path = Path(options.results) if options.results else ALL if everything else SOME
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    pythons = _installed(engines)
    with server() as postgres:
        results = begun(engines, postgres, options.rounds, options.scale)
        _say_where(results)
        for cell in _cells([COMMIT, *jobs], pythons, postgres, options):
            results.cells.append(cell)
            results.about["load"]["end"] = load()
            results.save(path)
            _say(cell)
    _summary(results, path)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench.peers", description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(NAMES)}; else all")
    parser.add_argument("--only", default="", metavar="A,B", help="engines or families, as rhythm")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each job; the best counts")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for a round")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes: 0.05 to try it")
    parser.add_argument(
        "--results", default="", metavar="FILE",
        help=f"else {ALL.relative_to(ROOT)}; {SOME.name} beside it if not all was run",
    )  # fmt: skip
    return parser


def _job(name: str) -> Job:
    if name not in NAMES:
        raise ValueError(f"there is no job {name}; there are {', '.join(NAMES)}")
    return BY_NAME[name]


def _installed(engines: Sequence[Engine]) -> dict[Engine, str | NotInstalled]:
    """The Python for each engine, or why there is none."""
    pythons = dict[Engine, str | NotInstalled]()
    for engine in engines:
        try:
            pythons[engine] = python_of(engine, CACHE)
        except NotInstalled as problem:
            pythons[engine] = problem
    return pythons


def _cells(
    jobs: Sequence[Job],
    pythons: dict[Engine, str | NotInstalled],
    postgres: Server,
    options: argparse.Namespace,
) -> Iterator[Cell]:
    """A round of a job by everybody, then the next round, then the next job."""
    lacking = set[tuple[str, str]]()  # what has failed is not tried again
    for job, number, engine in product(jobs, range(1, options.rounds + 1), pythons):
        if (job.name, engine.name) in lacking or engine.kind not in job.kinds:
            continue
        python = pythons[engine]
        if isinstance(python, NotInstalled):
            outcome = Outcome({}, problem=str(python))
        else:
            with empty(engine.store, postgres) as where:
                command = [python, str(SCRIPTS / engine.script), job.name, where, *engine.arguments]
                outcome = run(command, _environment(engine, options.scale), options.limit)
        if outcome.problem:
            lacking.add((job.name, engine.name))
        yield Cell(job.name, engine.name, number, outcome)


def _environment(engine: Engine, scale: float) -> dict[str, str]:
    """Ours see this source, or what was compiled of it; peers see nothing of it."""
    kept = {name: value for name, value in os.environ.items() if name in VARIABLES}
    rhythm = CACHE / COMPILED if engine.compiled else ROOT / "src"
    ours = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(rhythm)))}
    return {**kept, **({} if engine.environment else ours), "BENCH_SCALE": str(scale)}


def _say_where(results: Results) -> None:
    say_where(results.about)
    for name, pins in results.about["versions"].items():
        print(f"  {name}: {', '.join(pins)}")
    print(flush=True)


def _say(cell: Cell) -> None:
    figures = [
        f"{figure.title} {figure.show(cell.outcome.figures[figure.key])}"
        for figure in BY_NAME[cell.job].figures
        if figure.key in cell.outcome.figures
    ]
    told = [*figures, cell.outcome.problem and f"FAILED: {cell.outcome.problem}"]
    head = f"{cell.job} {cell.round} {cell.engine:<26} {cell.outcome.took_s:>6.1f} s"
    print(f"{head}  {', '.join(filter(None, told))}", flush=True)


def _summary(results: Results, path: Path) -> None:
    for job in results.jobs():
        print(f"\n{job.heading}\n\n{job_table(results, job)}")
    print(f"\nHow many times better Rhythm is\n\n{ratio_table(results)}")
    if compiled := compiled_table(results):
        print(f"\nWhat compiled modules add\n\n{compiled}")
    print(f"\nload {results.about['load']['end']} at the end; {path}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
