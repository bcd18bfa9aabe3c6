"""The picture of a run: bars for the figures that are drawn, on light pages and on dark ones."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from bench.peers.engines import Engine
from bench.peers.jobs import Figure, Job
from bench.peers.results import Results
from rhythm.record import Record

COLUMN, NAMES, BARS, ROW, HEAD, GAP = 430, 135, 190, 20, 34, 22  # in pixels
COLUMNS = 2
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 13px; }
.ours { fill: #d9480f; } .workflows { fill: #5c7cba; } .tasks { fill: #98a2ad; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .ours { fill: #ff7b3d; } .workflows { fill: #7c9ce0; } .tasks { fill: #78828d; }
}
"""


class Panel(Record):
    """The bars of one figure, the best first."""

    job: Job
    figure: Figure
    bars: list[tuple[Engine, float]]

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.bars) + GAP

    @property
    def title(self) -> str:
        better = "more is better" if self.figure.more_is_better else "less is better"
        return f"{self.job.name.upper()} {self.figure.title} ({better})"


def drawn(results: Results) -> str:
    """The picture as SVG."""
    placed = list(_placed(_panels(results)))
    height = max((y + panel.height for panel, _, y in placed), default=GAP)
    parts = [part for panel, x, y in placed for part in _bars(panel, x, y)]
    size = f'width="{COLUMNS * COLUMN}" height="{height}"'
    view = f'viewBox="0 0 {COLUMNS * COLUMN} {height}" role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view}>'
    title = "<title>Rhythm and its peers in the same jobs</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _panels(results: Results) -> Iterator[Panel]:
    for job in results.jobs():
        for figure in job.figures:
            if figure.drawn and (bars := _ranked(results, job, figure)):
                yield Panel(job, figure, bars)


def _ranked(results: Results, job: Job, figure: Figure) -> list[tuple[Engine, float]]:
    bars = [
        (engine, value)
        for engine in results.engines(job)
        if engine.kind != "limit" and (value := results.best(job, engine, figure)) is not None
    ]
    return sorted(bars, key=lambda bar: bar[1], reverse=figure.more_is_better)


def _placed(panels: Iterator[Panel]) -> Iterator[tuple[Panel, int, int]]:
    """Each panel with its corner: in the column that is the shortest so far."""
    heights = [0] * COLUMNS
    for panel in panels:
        column = heights.index(min(heights))
        yield panel, column * COLUMN, heights[column]
        heights[column] += panel.height


def _bars(panel: Panel, x: int, y: int) -> Iterator[str]:
    yield f'<text class="title" x="{x + 4}" y="{y + 20}">{escape(panel.title)}</text>'
    most = max(value for _, value in panel.bars)
    for number, (engine, value) in enumerate(panel.bars):
        top, middle = y + HEAD + ROW * number, y + HEAD + ROW * number + 12
        length = max(1, round(BARS * value / most))
        yield f'<text x="{x + NAMES}" y="{middle}" text-anchor="end">{escape(engine.title)}</text>'
        at = f'x="{x + NAMES + 8}" y="{top + 1}" width="{length}" height="{ROW - 6}"'
        yield f'<rect class="{engine.kind}" rx="2" {at}/>'
        shown = escape(panel.figure.show(value))
        yield f'<text x="{x + NAMES + 14 + length}" y="{middle}">{shown}</text>'
