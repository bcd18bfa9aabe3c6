"""Makes text that others wrote safe for terminals, files and logs: characters that a terminal would
obey, or not show, are replaced by visible ones.

These are all characters that are not printable: control characters (ESC, C1, DEL), marks that
change the direction of writing, and the like.
"""

from __future__ import annotations

STAND_IN = "\N{REPLACEMENT CHARACTER}"


def visible(text: str, keep: str = "") -> str:
    """Returns the text with a replacement character for each character that is not printable.

    The characters in `keep` may stay.
    """
    if _without(text, keep).isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else STAND_IN for c in text)


def one_line(text: str) -> str:
    """Returns the text on one line: tabs and line breaks become spaces."""
    return (
        text if text.isprintable() else visible("".join(" " if c in "\t\r\n" else c for c in text))
    )


def indented(text: str, margin: str = "  ") -> str:
    """Returns the text with a margin before each line but the first.

    So a reader cannot mistake a line that somebody else wrote for one of ours.
    """
    first, *more = text.split("\n")
    return "\n".join((visible(first), *(f"{margin}{visible(line)}" for line in more)))


def escaped(text: str) -> str:
    r"""Returns the text with Python's escapes for what is not printable: `\x1b`, `\u202e`."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    )


def escaped_json(text: str) -> str:
    r"""Returns JSON text of the same value, with JSON's escapes for unprintable characters.

    They look like `\u001b`. Line breaks between values stay.
    """
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
