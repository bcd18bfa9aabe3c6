"""Writes the results of a run into docs/benchmarks.md, with a picture and all figures beside it:
`python -m bench.peers.page [FILE]`.

The prose of the page is written by hand; what stands between the two marks comes from here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.peers.chart import drawn
from bench.peers.engines import ENGINES
from bench.peers.results import Results
from bench.peers.tables import job_table, ratio_table, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "pictures" / "benchmarks.svg"
FIGURES = ROOT / "docs" / "benchmarks.json"
RESULTS = ROOT / ".cache" / "peers" / "results.json"
BEGIN = "<!-- written by bench/peers/page.py -->\n"
END = "<!-- until here -->\n"
QUIET_LOAD = 0.5


def main(path: Path) -> None:
    results = Results.load(path)
    results.save(FIGURES)
    PICTURE.write_text(drawn(results), encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def written(page: str, results: Results) -> str:
    """The page with these results in place of those it has."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{section(results)}\n{END}{after}"


def section(results: Results) -> str:
    return "\n\n".join(_parts(results)) + "\n"


def _parts(results: Results) -> Iterator[str]:
    yield _where(results)
    yield "![Rhythm and its peers in the same jobs](pictures/benchmarks.svg)"
    yield "Grey bars are queues of tasks, which store no results and have no workflows."
    yield "### How many times better"
    yield ratio_table(results)
    for job in results.jobs():
        yield f"### {job.heading}"
        yield job_table(results, job)
    yield "### Versions, and what is not comparable"
    yield _versions(results)


def _where(results: Results) -> str:
    about = results.about
    machine, settings = about["machine"], about["settings"]
    shown = ", ".join(f"`{name}={value}`" for name, value in settings.items())
    load = f"load {about['load']['begin']} at the beginning, {about['load']['end']} at the end"
    return (
        f"{about['began'][:10]}, Rhythm at `{about['commit']}`: {machine['cores']} cores, "
        f"{machine['system']}, Python {machine['python']}; {load}; "
        f"{_rounds(about['rounds'])}{_scaled(about['scale'])}.\n"
        f"PostgreSQL {machine['postgresql']} on the same cores: {shown}."
        f"{_busy(about['load']['begin'])}"
    )


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"the best of {count} rounds"


def _busy(load: float) -> str:
    """A warning, if others used the machine before anything was measured."""
    if load <= QUIET_LOAD:
        return ""
    return (
        "\n\n**Others used the machine at the same time: these figures are to be measured anew.**"
    )


def _scaled(scale: float) -> str:
    return "" if scale == 1 else f"; **all sizes times {scale:g}: this was a trial**"


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
