"""Source text, places in it, and diagnostics about them.

A diagnostic is a value: severity, stable code, message, place, an optional label under the caret,
and help. Rendering is here too, so that the messages of every front end look the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from rhythm.printable import indented, one_line, visible
from rhythm.record import Record

TAB = "    "
LINE_CHARACTERS = 200  # longer lines are shown only around the place


class Source:
    """A named text. Offsets count characters; lines and columns count from 1."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.lines = (0, *(i + 1 for i, char in enumerate(text) if char == "\n"))

    def position(self, at: int) -> tuple[int, int]:
        """Returns the line and column of an offset."""
        line = bisect_right(self.lines, at)
        return line, at - self.lines[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Returns the offset of a line and column; of a line that is not there, of the last one."""
        return self.lines[min(line, len(self.lines)) - 1] + column - 1

    def lines_of(self, start: int, end: int) -> tuple[int, tuple[int, ...]]:
        """Returns the number of a part's first line, and the offsets of all lines it covers."""
        first = bisect_right(self.lines, start)
        return first, self.lines[first - 1 : bisect_right(self.lines, end)]

    def line(self, number: int) -> str:
        """Returns the text of a line, without its line break."""
        end = self.lines[number] if number < len(self.lines) else len(self.text)
        return self.text[self.lines[number - 1] : end].rstrip("\r\n")


class Diagnostic(Record):
    """One problem.

    `severity` is error, warning or note; only errors prevent a registration.
    """

    code: str
    severity: str
    message: str
    start: int
    end: int
    label: str = ""
    help: tuple[str, ...] = ()
    # Other places that matter, each with start, end and label.
    related: tuple[tuple[int, int, str], ...] = ()


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Returns the diagnostics in the order of the file, each once."""
    return sorted(dict.fromkeys(diagnostics), key=lambda d: (d.start, d.end, d.code))


def render(source: Source, diagnostic: Diagnostic) -> str:
    """Returns the diagnostic as text for people: headline, place, the line with a caret, help."""
    places = [
        (diagnostic.start, diagnostic.end, diagnostic.label, "^"),
        *((*r, "-") for r in diagnostic.related),
    ]
    places.sort(key=lambda place: place[0])
    width = max(len(str(source.position(place[0])[0])) for place in places)
    line, column = source.position(diagnostic.start)
    out = [
        f"{diagnostic.severity}[{diagnostic.code}]: {indented(diagnostic.message)}",
        f"{' ' * width} ┌─ {one_line(source.name)}:{line}:{column}",
    ]
    shown = None
    for start, end, label, mark in places:
        number, column = source.position(start)
        text, at = _window(source.line(number), column - 1)
        if (number, text) != shown:
            out.append(f"{number:>{width}} │ {_visible(text)}".rstrip())
            shown = number, text
        before, under = text[:at], text[at : at + max(end - start, 1)]
        carets = mark * max(_columns(_visible(under)), 1)
        out.append(
            f"{' ' * width} │ {' ' * _columns(_visible(before))}{carets} {one_line(label)}".rstrip()
        )
    for number, text in enumerate(diagnostic.help):
        out.append(
            f"{' ' * width} {'= help: ' if number == 0 else '        '}{visible(text)}".rstrip()
        )
    return "\n".join(out)


def render_all(source: Source, diagnostics: Iterable[Diagnostic]) -> str:
    """Returns the text of all diagnostics, with a blank line between them."""
    return "\n\n".join(render(source, diagnostic) for diagnostic in diagnostics)


def as_json(source: Source, diagnostic: Diagnostic) -> dict[str, Any]:
    """Returns the diagnostic for editors: line and column from 1, the end exclusive."""

    def place(start: int, end: int) -> dict[str, int]:
        line, column = source.position(start)
        end_line, end_column = source.position(end)
        return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}

    return {
        "file": source.name,
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **place(diagnostic.start, diagnostic.end),
        "label": diagnostic.label,
        "help": "\n".join(diagnostic.help),
        "related": [
            {**place(start, end), "label": label} for start, end, label in diagnostic.related
        ],
    }


def _window(line: str, at: int) -> tuple[str, int]:
    """Returns the line (of a very long line the part around `at`), and where `at` is in it."""
    if len(line) <= LINE_CHARACTERS:
        return line, at
    begin = max(min(at - LINE_CHARACTERS // 2, len(line) - LINE_CHARACTERS), 0)
    before, after = "…" if begin else "", "…" if begin + LINE_CHARACTERS < len(line) else ""
    return f"{before}{line[begin : begin + LINE_CHARACTERS]}{after}", at - begin + len(before)


def _visible(text: str) -> str:
    """Returns the text with tabs as spaces, and without what a terminal would obey or hide.

    Such characters are replaced by a stand-in for their code point.
    """
    return visible(text.replace("\t", TAB))


def _columns(text: str) -> int:
    """Returns how many terminal columns the text fills."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
