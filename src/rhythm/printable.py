"""Text that others have written, for terminals, files and logs: what a terminal would obey, or not
show, is replaced by what can be seen.

That is everything that is not printable: control characters (ESC, C1, DEL), marks that turn the
direction of writing, and the like.
"""

from __future__ import annotations

STAND_IN = "\N{REPLACEMENT CHARACTER}"


def visible(text: str, keep: str = "") -> str:
    """The text with a stand-in for each character that is not printable; `keep`: those of them that
    may stay."""
    if _without(text, keep).isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else STAND_IN for c in text)


def one_line(text: str) -> str:
    """The text on one line: tabs and ends of lines are spaces."""
    return (
        text if text.isprintable() else visible("".join(" " if c in "\t\r\n" else c for c in text))
    )


def indented(text: str, margin: str = "  ") -> str:
    """The text with a margin before each line but the first: what somebody wrote is not taken for a
    line of ours."""
    first, *more = text.split("\n")
    return "\n".join((visible(first), *(f"{margin}{visible(line)}" for line in more)))


def escaped(text: str) -> str:
    r"""The text with Python's escapes for what is not printable: `\x1b`, `\u202e`."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    )


def escaped_json(text: str) -> str:
    r"""JSON text of the same value, with JSON's escapes for what is not printable: `\u001b`. Ends
    of lines between values stay."""
    if _without(text, "\n").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in text)


def _without(text: str, some: str) -> str:
    for c in some:
        text = text.replace(c, "")
    return text


def _json_escape(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
