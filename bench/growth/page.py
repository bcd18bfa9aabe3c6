"""Writes the results of a run into docs/benchmarks.md, with a picture and all figures beside it:
`python -m bench.growth.page [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from bench import chart, pages
from bench.chart import Bar, Panel
from bench.figures import Figure
from bench.growth.__main__ import RESULTS
from bench.growth.results import Results, Sample
from bench.growth.rows import ALL
from bench.growth.tables import table_of
from bench.pages import PAGE, PICTURES, ROOT

PICTURE = PICTURES / "growth.svg"
FIGURES = ROOT / "docs" / "growth.json"
BEGIN = pages.begin("bench/growth/page.py")
MAX_BAR_TITLE = 20  # characters: there is no more room


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
    minutes = sum(sample.took_s for sample in results.samples) / 60
    yield f"{pages.where(results.about)}\nIt took {minutes:.0f} minutes."
    yield "![What grows with what is in the database, and with the workers](pictures/growth.svg)"
    yield "[All figures](growth.json) are beside this page."
    for row in ALL:
        if results.of(row.name):
            yield f"### {row.name.capitalize()}: {row.title}"
            if row.note:
                yield row.note
            yield table_of(results, row)


def drawn(results: Results) -> str:
    """The picture as SVG: the baselines in another colour than what is compared with them."""
    title = "What grows with what is in the database, and with the workers"
    return chart.drawn(title, _panels(results))


def _panels(results: Results) -> Iterator[Panel]:
    for row in ALL:
        for store, samples in groupby(results.of(row.name), key=lambda sample: sample.store):
            there = [sample for sample in samples if not sample.problem]
            for figure in row.figures:
                if figure.drawn and there:
                    bars = [_bar(figure, sample) for sample in there]
                    yield Panel(f"{row.name}: {figure.title}, {store}", bars)


def _bar(figure: Figure, sample: Sample) -> Bar:
    value, title = sample.case.figures[figure.key], sample.case.title
    if len(title) > MAX_BAR_TITLE:
        title = f"{title[: MAX_BAR_TITLE - 1].rstrip()}…"
    kind = "workflows" if sample.case.baseline else "ours"
    return Bar(title, kind, value, figure.show(value))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else RESULTS)
