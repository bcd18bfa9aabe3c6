"""The tokens of `.flow`: reserved words, punctuation and comments."""

from __future__ import annotations

from rhythm.record import Record

RESERVED = frozenset(
    (
        "let const if else for in of while break continue return throw try catch finally "
        "await async function true false null"
    ).split()
)

# Longest first: the lexer takes the first that fits. Some (`===`, `**`, `++`, …) are listed only so
# that they can be refused with a good message.
PUNCTUATION = (
    "===", "!==", "**=", "...", "<<=", ">>=", "&&=", "||=", "??=",
    "=>", "->", ":=", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "+=", "-=", "*=", "/=", "%=",
    "++", "--", "**", "<<", ">>", "::",
    "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "?", "=", "<", ">", "+", "-", "*", "/", "%",
    "!", "@", "&", "|", "^", "~", "#",
)  # fmt: skip

BINARY = frozenset(
    {
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
        "??",
        "in",
        "===",
        "!==",
    }
)
ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%="})


class Token:
    """A word, number, text or sign of the source.

    `kind` is name, keyword, number, text, template, part, endtemplate, punctuation, strange (a
    character that the language does not know) or end. `value` is the word, number or text.
    """

    __slots__ = ("end", "kind", "line_start", "start", "value")

    def __init__(self, kind: str, value: object, start: int, end: int, line_start: bool) -> None:
        self.kind = kind
        self.value = value
        self.start = start
        self.end = end
        self.line_start = line_start  # whether it is the first token of its line

    def means(self, value: str) -> bool:
        """Whether it is this sign or keyword, not a name or text that looks like it."""
        return self.value == value and self.kind in ("punctuation", "keyword")

    def __repr__(self) -> str:
        return f"{self.kind}({self.value!r})"


class Comment(Record):
    """A comment with its text as written.

    `own_line`: there is only space before it on its line.
    """

    start: int
    end: int
    text: str
    own_line: bool
