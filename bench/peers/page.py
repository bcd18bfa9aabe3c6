"""Writes the results of a run into docs/benchmarks.md, with a picture and all figures beside it:
`python -m bench.peers.page [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench import pages
from bench.figures import table
from bench.pages import PAGE, PICTURES, ROOT
from bench.peers.chart import drawn
from bench.peers.engines import ENGINES
from bench.peers.results import Results
from bench.peers.tables import compiled_table, job_table, ratio_table

PICTURE = PICTURES / "benchmarks.svg"
FIGURES = ROOT / "docs" / "benchmarks.json"
RESULTS = ROOT / ".cache" / "peers" / "results.json"
BEGIN = pages.begin("bench/peers/page.py")


def main(path: Path) -> None:
    results = Results.load(path)
    results.save(FIGURES)
    PICTURE.write_text(drawn(results), encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def written(page: str, results: Results) -> str:
    """The page with these results in place of those it has."""
    return pages.written(page, BEGIN, section(results))


def section(results: Results) -> str:
    return "\n\n".join(_parts(results)) + "\n"


def _parts(results: Results) -> Iterator[str]:
    yield pages.where(results.about)
    yield "![Rhythm and its peers in the same jobs](pictures/benchmarks.svg)"
    yield "Grey bars are queues of tasks, which store no results and have no workflows."
    yield "### How many times better"
    yield ratio_table(results)
    if compiled := compiled_table(results):
        yield "### What compiled modules add"
        yield compiled
    for job in results.jobs():
        yield f"### {job.heading}"
        yield job_table(results, job)
    yield "### Versions, and what is not comparable"
    yield _versions(results)


def _versions(results: Results) -> str:
    versions = results.about["versions"]
    lines = [
        [engine.title, _pins(versions[engine.name]), engine.apart]
        for engine in ENGINES
        if engine.name in versions
    ]
    return table(["", "versions", "what differs"], lines)


def _pins(pins: list[str]) -> str:
    return ", ".join(f"`{pin}`" for pin in pins)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else RESULTS)
