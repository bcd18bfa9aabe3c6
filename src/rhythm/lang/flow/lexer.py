"""Text to tokens. Characters that belong to no token are reported and skipped.

Newlines are not tokens. Each token knows whether it is the first of its line, and the parser
decides what that means. A template becomes a flat sequence: `template`, then `part` texts and the
tokens of each `${…}` in turn, then `endtemplate`.
"""

from __future__ import annotations

import re
from typing import NoReturn

from rhythm.lang.flow.other_languages import TEXT_PREFIXES
from rhythm.lang.flow.problems import Problems, TooManyProblems
from rhythm.lang.flow.tokens import PUNCTUATION, RESERVED, Comment, Token
from rhythm.limits import INT_MAX, Limits

_SPACE = re.compile(r"[ \t\r\n\ufeff]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"(?:[0-9]+\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TEXT = {quote: re.compile(rf"(?:[^{quote}\\\n\r]|\\[^\n\r])*") for quote in "'\""}
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_PUNCTUATION = re.compile("|".join(re.escape(p) for p in PUNCTUATION))
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "`": "`",
    "$": "$",
}
_PAIRS = {"(": ")", "[": "]", "{": "}"}

# Few texts need these, so they are compiled on demand: compiling them all would slow down every
# start.
_NUMBER_TAIL = r"[A-Za-z0-9_]+|\.(?![A-Za-z_.])[0-9.]*"
_ESCAPE = r"(?s:\\(u[0-9A-Fa-f]{4}|.|$))"
_BIDI = "[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]"
_WORD = r"\w+"
_STRANGE_RUN = r"[^\x00-\x7f]+|[\x00-\x7f]"
_PLACE = r"\{([^{}:!]*)[^{}]*\}"  # a value in f"…"


class Lexer:
    """Splits a text into tokens and comments, and reports what it cannot read."""

    def __init__(self, text: str, problems: Problems, limits: Limits) -> None:
        self.text = text
        self.problems = problems
        self.limits = limits
        self.tokens: list[Token] = []
        self.comments: list[Comment] = []
        self.open: list[tuple[str, int]] = []  # brackets and templates ("`", "${") not yet closed
        self.at = 0
        self.line_start = True

    def run(self) -> list[Token]:
        """Returns all tokens, the last one of kind `end`.

        Raises `TooManyProblems` if the text is nested too deep, or has too many tokens to read on.
        """
        self._check_bidi()
        while (
            self.at < len(self.text)
            and len(self.open) <= self.limits.nesting
            and len(self.tokens) <= self.limits.tokens
        ):
            self._step()
        if len(self.tokens) > self.limits.tokens:
            self._stop(
                f"more than {self.limits.tokens:,} words and signs",
                self.tokens[-1].start,
                "split it into several files",
            )
        if len(self.open) > self.limits.nesting:
            rewrite = (
                "name the inner parts with `let`, or move the inner blocks to a child "
                "workflow or a branch"
            )
            self._stop(f"nested more than {self.limits.nesting} deep", self.open[-1][1], rewrite)
        if self.open and self.open[-1][0] == "`":  # the template was opened by the last character
            self._template_part()
        self._add("end", None, len(self.text), len(self.text))
        return self.tokens

    def _stop(self, message: str, start: int, help: str) -> NoReturn:
        self.problems.report("F006", message, start, start + 1, help=help)
        raise TooManyProblems  # the rest, being unread, would only be reported as missing

    def _step(self) -> None:
        if self.open and self.open[-1][0] == "`":
            return self._template_part()
        char = self.text[self.at]
        if space := _SPACE.match(self.text, self.at):
            self.line_start = self.line_start or "\n" in space[0] or "\r" in space[0]
            self.at = space.end()
        elif self.text.startswith(("//", "/*"), self.at):
            self._comment()
        elif name := _NAME.match(self.text, self.at):
            self._word(name[0], name.end())
        elif char.isdigit() and char.isascii():
            self._number()
        elif char in "'\"":
            self._quoted(char)
        elif char == "`":
            self.open.append(("`", self.at))
            self._add("template", None, self.at, self.at + 1)
        elif punctuation := _PUNCTUATION.match(self.text, self.at):
            self._punctuation(punctuation[0])
        else:
            self._strange()

    def _add(self, kind: str, value: object, start: int, end: int) -> None:
        self.tokens.append(Token(kind, value, start, end, self.line_start))
        self.line_start = False
        self.at = end

    def _comment(self) -> None:
        start, own_line = self.at, self.line_start
        if self.text.startswith("//", start):
            end = self.text.find("\n", start)
            end = len(self.text) if end < 0 else end
        else:
            end = self.text.find("*/", start + 2) + 2
            if end < 2:
                end = len(self.text)
                self.problems.never_ends("comment", start, start + 2, "close it with `*/`")
            if "\n" in self.text[start:end]:
                self.line_start = True
        self.comments.append(Comment(start, end, self.text[start:end].rstrip(), own_line))
        self.at = end

    def _word(self, word: str, end: int) -> None:
        if len(word) > self.limits.identifier_bytes:
            message = (
                f"a name of {len(word)} characters; the limit is {self.limits.identifier_bytes}"
            )
            self.problems.report("F006", message, self.at, end, help="choose a shorter one")
            word = word[: self.limits.identifier_bytes]
        follows_dot = (
            bool(self.tokens)
            and self.tokens[-1].kind == "punctuation"
            and self.tokens[-1].value in (".", "?.")
        )
        if end < len(self.text) and not self.text[end].isascii() and self.text[end].isidentifier():
            # A name that continues in another alphabet is one mistake, not two.
            return self._strange()
        if word.lower() in TEXT_PREFIXES and self.text.startswith(('"', "'"), end):
            return self._prefix(word, end)
        self._add("keyword" if word in RESERVED and not follows_dot else "name", word, self.at, end)

    def _prefix(self, word: str, end: int) -> None:
        """Refuses the letter of `f"…"` or `r"…"`, and goes on with the text."""
        quote, help = self.text[end], TEXT_PREFIXES[word.lower()]
        body = _TEXT[quote].match(self.text, end + 1)
        if body and word in "fF":
            help = "write `" + re.compile(_PLACE).sub(r"${\1}", body[0]) + "`"
        if not self.text.startswith(quote * 3, end):  # a tripled quote is refused as a whole
            self.problems.report(
                "F001", f"there is no `{word}` before a text here", self.at, end, help=help
            )
        self.at = end

    def _number(self) -> None:
        match = _NUMBER.match(self.text, self.at)
        assert match, "a digit starts a number"
        digits, end = match[0], match.end()
        if tail := re.compile(_NUMBER_TAIL).match(self.text, end):
            end = tail.end()
            self.problems.report(
                "F004",
                f"`{self.text[self.at : end][:40]}` is not a number",
                self.at,
                end,
                help='numbers are decimal: 12, 1.5, 2e3; a duration is text: "30s"',
            )
            return self._add("number", 0, self.at, end)
        value: int | float = 0
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            self.problems.report(
                "F004",
                "a number cannot begin with 0",
                self.at,
                end,
                help=f"write {digits.lstrip('0') or '0'}",
            )
        elif digits.isdigit():
            # 2**63 itself is accepted: it is the number in `-9223372036854775808`. Elsewhere the
            # parser refuses it.
            value = int(digits) if len(digits) <= 19 else INT_MAX + 2
            if value > INT_MAX + 1:
                value = 0
                self.problems.report(
                    "F004",
                    "an integer over 64 bits",
                    self.at,
                    end,
                    help="keep numbers of this size as text",
                )
        else:
            value = float(digits)
            if value in (float("inf"), float("-inf")):
                value = 0
                self.problems.report(
                    "F004",
                    "a number too large to hold",
                    self.at,
                    end,
                    help="the largest is about 1.8e308",
                )
        self._add("number", value, self.at, end)

    def _quoted(self, quote: str) -> None:
        if self.text.startswith(quote * 3, self.at):
            return self._tripled(quote * 3)
        match = _TEXT[quote].match(self.text, self.at + 1)
        assert match, "the pattern matches the empty text"
        end = match.end()
        if self.text.startswith(quote, end):
            return self._add("text", self._unescape(match[0], self.at + 1), self.at, end + 1)
        # A backslash at the end of the line is part of this mistake.
        end += self.text.startswith("\\", end)
        help = f"close it with {quote} on the same line; text over several lines stands in "
        self.problems.never_ends("text", self.at, end, f"{help}backticks: `…`")
        self._add("text", match[0], self.at, end)

    def _tripled(self, quotes: str) -> None:
        start, end = self.at, self.text.find(quotes, self.at + 3)
        end = len(self.text) if end < 0 else end
        message = "text over several lines stands in backticks"
        self.problems.report(
            "F001", message, start, start + 3, help="write `…`; a comment is written /* … */"
        )
        self._add("text", self.text[start + 3 : end], start, min(end + 3, len(self.text)))

    def _template_part(self) -> None:
        match = _TEMPLATE.match(self.text, self.at)
        assert match, "the pattern matches the empty text"
        start, end = self.at, match.end()
        if match[0]:
            self._add("part", self._unescape(match[0], start), start, end)
        if self.text.startswith("`", end):
            self.open.pop()
            self._add("endtemplate", None, end, end + 1)
        elif self.text.startswith("${", end):
            self.open.append(("${", end))
            self._add("punctuation", "${", end, end + 2)
        elif places := [i for i, (mark, _) in enumerate(self.open) if mark == "${"]:
            self._close_place(places[-1])
        else:
            _, opened = self.open.pop()
            self.problems.never_ends("template", opened, opened + 1, "close it with a backtick")
            self._add("endtemplate", None, len(self.text), len(self.text))

    def _close_place(self, place: int) -> None:
        """Closes a `${` that has no `}`, and reads on after the backtick that follows it.

        That backtick was meant as the end of the template, not as the start of another one inside.
        """
        opened = self.open[place][1]
        self.problems.report(
            "F002",
            "this `${` is never closed",
            opened,
            opened + 2,
            "opened here",
            "write `}` at the end of its value",
        )
        first = next(
            i
            for i, token in enumerate(self.tokens)
            if token.kind == "template" and token.start > opened
        )
        end = self.tokens[first].start
        inside = [mark for mark, start in self.open[place:] if start < end]
        del self.tokens[first:], self.open[place - 1 :]
        self.problems.forget(end)
        self._check_bidi()
        for mark in reversed(inside):
            self._add("punctuation", _PAIRS.get(mark, "}"), end, end)
        self._add("endtemplate", None, end, end + 1)

    def _punctuation(self, mark: str) -> None:
        if mark in _PAIRS:
            self.open.append((mark, self.at))
        elif mark in ")]}" and self.open:
            opener = self.open[-1][0]
            if mark == _PAIRS.get(opener, "}" if opener == "${" else ""):
                self.open.pop()
        self._add("punctuation", mark, self.at, self.at + len(mark))

    def _unescape(self, raw: str, offset: int) -> str:
        if "\\" not in raw:
            return self._storable(raw, offset)

        def one(match: re.Match[str]) -> str:
            escape = match[1]
            if len(escape) == 5:
                return chr(int(escape[1:], 16))
            if escape not in _ESCAPES:
                at = offset + match.start()
                shown = (
                    f"\\{escape}" if escape.isprintable() else "a backslash at the end of a line"
                )
                self.problems.report(
                    "F005",
                    f"`{shown}` is not an escape",
                    at,
                    at + len(match[0]),
                    help=(
                        "known are \\n \\t \\r \\b \\f \\\" \\' \\` \\$ \\/ \\\\ and \\u with "
                        "four hex digits"
                    ),
                )
            return _ESCAPES.get(escape, "")

        return self._storable(re.compile(_ESCAPE).sub(one, raw), offset)

    def _storable(self, text: str, offset: int) -> str:
        """Returns the text with surrogate pairs joined; refuses what no database can store.

        It is refused here, before any work is lost to it.
        """
        if "\0" in text:
            self.problems.report(
                "F005",
                "text cannot hold the character NUL",
                offset,
                offset + 1,
                help="databases refuse it; leave it out",
            )
            text = text.replace("\0", "")
        if any("\ud800" <= char <= "\udfff" for char in text):
            try:
                return text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                self.problems.report(
                    "F005",
                    "half of a surrogate pair",
                    offset,
                    offset + 1,
                    help="write the character itself",
                )
                text = ""
        return text

    def _check_bidi(self) -> None:
        for match in () if self.text.isascii() else re.compile(_BIDI).finditer(self.text):
            self.problems.report(
                "F003",
                (
                    f"an invisible character that changes the reading direction "
                    f"(U+{ord(match[0]):04X})"
                ),
                match.start(),
                match.end(),
                help=(
                    "it can make a program read differently from what it does; delete it, or "
                    "write it as an escape in a text"
                ),
            )

    def _strange(self) -> None:
        word = re.compile(_WORD).match(self.text, self.at)
        if word and word[0][0].isidentifier():
            plain = _ascii_twin(word[0])
            self.problems.report(
                "F003",
                "names are written with the letters a to z, digits and _",
                self.at,
                word.end(),
                _describe(word[0]),
                f"write `{plain}`" if plain else "text may hold any letter; names may not",
            )
            return self._add("name", plain or "_", self.at, word.end())
        run = re.compile(_STRANGE_RUN).match(self.text, self.at)
        assert run, "every character is in the pattern"
        char, twin = run[0][0], _ascii_twin(run[0][0])
        self.problems.report(
            "F003",
            f"`{char}` does not belong here"
            if char.isprintable()
            else f"a character that cannot be seen (U+{ord(char):04X})",
            self.at,
            run.end(),
            _describe(run[0]),
            "delete it"
            if twin in ("", char)
            else "write an ordinary space"
            if twin == " "
            else f"write {twin}",
        )
        # The parser fails at the same place, and so reports nothing more about the statement.
        if char.isprintable():
            return self._add("strange", run[0], self.at, run.end())
        self.at = run.end()


def _describe(text: str) -> str:
    """Returns the name of the first character that is not ASCII; empty if there is none."""
    import unicodedata

    char = next((char for char in text if not char.isascii()), "")
    return unicodedata.name(char, f"U+{ord(char):04X}").lower() if char else ""


_TWINS = str.maketrans(
    "аеорсхуіјѕАВЕКМНОРСТХУαοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ“”„‘’–—−×÷…；：，（）",
    'aeopcxyijsABEKMHOPCTXYaoABEZHIKMNOPTYX"""\'\'---*/.;:,()',
)


def _ascii_twin(text: str) -> str:
    """Returns the plain text that looks the same; empty if there is none."""
    import unicodedata

    plain = unicodedata.normalize("NFKD", text).translate(_TWINS)
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    return plain if plain.isascii() and plain.isprintable() else ""
