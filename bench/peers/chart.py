"""The picture of a run: bars for the figures that are drawn, the best first. Of ours it has what
everybody gets: nothing that is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from bench import chart
from bench.chart import Bar, Panel
from bench.figures import Figure
from bench.peers.jobs import Job
from bench.peers.results import Results


def drawn(results: Results) -> str:
    """The picture as SVG."""
    return chart.drawn("Rhythm and its peers in the same jobs", _panels(results))


def _panels(results: Results) -> Iterator[Panel]:
    for job in results.jobs():
        for figure in job.figures:
            if figure.drawn and (bars := _ranked(results, job, figure)):
                better = "more is better" if figure.more_is_better else "less is better"
                yield Panel(f"{job.name.upper()} {figure.title} ({better})", bars)


def _ranked(results: Results, job: Job, figure: Figure) -> list[Bar]:
    bars = [
        Bar(engine.title, engine.kind, value, figure.show(value))
        for engine in results.engines(job)
        if engine.kind != "limit"
        and not engine.compiled
        and (value := results.best(job, engine, figure)) is not None
    ]
    return sorted(bars, key=lambda bar: bar.value, reverse=figure.more_is_better)
