"""Pictures of bars, on light pages and on dark ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from xml.sax.saxutils import escape

from rhythm.record import Record

COLUMN, NAMES, BARS, ROW, HEAD, GAP = 440, 145, 190, 20, 34, 22  # in pixels
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


class Bar(Record):
    """A value with its name. `kind` is one of those that STYLE has a colour for."""

    title: str
    kind: str
    value: float
    shown: str


class Panel(Record):
    """The bars of one figure, from top to bottom."""

    title: str
    bars: Sequence[Bar]

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.bars) + GAP


def drawn(title: str, panels: Iterable[Panel]) -> str:
    """The picture as SVG."""
    placed = list(_placed(panels))
    height = max((y + panel.height for panel, _, y in placed), default=GAP)
    parts = [part for panel, x, y in placed for part in _bars(panel, x, y)]
    size = f'width="{COLUMNS * COLUMN}" height="{height}"'
    view = f'viewBox="0 0 {COLUMNS * COLUMN} {height}" role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view}>'
    named = f"<title>{escape(title)}</title>"
    return "\n".join([head, named, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _placed(panels: Iterable[Panel]) -> Iterator[tuple[Panel, int, int]]:
    """Each panel with its corner: in the column that is the shortest so far."""
    heights = [0] * COLUMNS
    for panel in panels:
        column = heights.index(min(heights))
        yield panel, column * COLUMN, heights[column]
        heights[column] += panel.height


def _bars(panel: Panel, x: int, y: int) -> Iterator[str]:
    yield f'<text class="title" x="{x + 4}" y="{y + 20}">{escape(panel.title)}</text>'
    most = max(bar.value for bar in panel.bars)
    for number, bar in enumerate(panel.bars):
        top, middle = y + HEAD + ROW * number, y + HEAD + ROW * number + 12
        length = max(1, round(BARS * bar.value / most))
        yield f'<text x="{x + NAMES}" y="{middle}" text-anchor="end">{escape(bar.title)}</text>'
        at = f'x="{x + NAMES + 8}" y="{top + 1}" width="{length}" height="{ROW - 6}"'
        yield f'<rect class="{bar.kind}" rx="2" {at}/>'
        yield f'<text x="{x + NAMES + 14 + length}" y="{middle}">{escape(bar.shown)}</text>'
