"""The canonical look of a `.flow` file: `format_source`, used by `rhythm fmt`.

It changes only spacing, indentation and line breaks. Tokens and comments are copied from the source
in their order (only the `{` of a block may move before a comment). The author's line breaks stay,
except where a rule below says otherwise. It works on tokens, because a tree has no comments; the
parser's `Roles` say what a token alone does not. It has three steps: split the text into pieces,
decide how many line breaks come before each piece, print. It knows nothing of what programs mean.
Files with syntax errors are not touched, and the width of lines is left to the author.
"""

from __future__ import annotations

import re
from itertools import pairwise

from rhythm.errors import FlowError
from rhythm.lang.flow.grammar.parser import Parser
from rhythm.lang.flow.lexer import Lexer
from rhythm.lang.flow.problems import Problems, TooManyProblems
from rhythm.lang.flow.tokens import ASSIGNMENTS, BINARY, Comment, Token
from rhythm.lang.source import Source, in_order, render_all
from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.record import Record

INDENT = "  "

# A token's mark is its word or its kind, or one of these where that is not specific enough: `sign`,
# `ternary`, `block{`, `block}`, `call(`, `index[`, `type?` and `rest` in a type, and `$}` for the
# end of `${`. The rules are sets of marks.
OPENERS = frozenset({"(", "[", "{", "call(", "index[", "block{", "${"})
CLOSERS = frozenset({")", "]", "}", "block}", "$}"})
TIGHT_AFTER = frozenset(
    {"(", "[", "call(", "index[", "${", "sign", "...", ".", "?.", "@", "template", "part"}
)
TIGHT_BEFORE = frozenset(
    {")", "]", "$}", ",", ".", "?.", ":", "call(", "index[", "${", "part", "endtemplate", "type?"}
)
INDEXED = frozenset(
    {"name", "number", "text", "endtemplate", "true", "false", "null", ")", "]", "}", "block}"}
)

# No line break after or before these, unless there is a comment.
GLUED_AFTER = frozenset(
    "sign ... . ?. @ ${ let const if else for while try catch finally await async function".split()
)
GLUED_BEFORE = frozenset({"block{", "$}", "call("})
AFTER_BLOCK = frozenset({"else", "catch", "finally"})

# Inside brackets, a line continues the item above it if it begins with one of CONTINUES or follows
# one of CONTINUED.
CONTINUES = BINARY | ASSIGNMENTS | {".", "?.", ":", "ternary", "of", "|"}
CONTINUED = frozenset({":", "=", "ternary"})

_NEWLINE = re.compile(r"[\r\n]")
_BLANK_LINE = re.compile(r"(?:\r\n|\r(?!\n)|\n)[ \t\ufeff]*[\r\n]")


def format_source(text: str, name: str = "workflow", limits: Limits = DEFAULT_LIMITS) -> str:
    """Returns the file in the canonical format. Raises `FlowError` if it cannot be parsed."""
    tokens, comments, marked = _read(text, name, limits)
    pieces = _pieces(text, tokens, comments, marked)
    _Breaks(text, tokens, marked, pieces).decide()
    return _Printer(marked, pieces).run()


class _Marked(Record):
    """What the parser knows about the tokens: their marks, and which ones begin a statement."""

    marks: list[str]
    starts: set[int]


class _Piece:
    """A token or comment on its way to the output."""

    __slots__ = ("breaks", "comment", "gap", "index", "split", "text")

    def __init__(self, text: str, index: int, comment: bool, gap: int, split: bool) -> None:
        self.text = text
        self.index = index  # the number of the token; for a comment, of the token after it
        self.comment = comment
        self.gap = gap  # the author's line breaks before it: 0 none, 1 one, 2 a blank line
        self.split = split  # there was a `;` between it and the piece before
        self.breaks = gap  # line breaks before it in the output

    @property
    def to_end_of_line(self) -> bool:
        return self.comment and self.text.startswith("//")


def _read(text: str, name: str, limits: Limits) -> tuple[list[Token], list[Comment], _Marked]:
    problems = Problems(limits.diagnostics)
    lexer = Lexer(text, problems, limits)
    try:
        parser = Parser(text, lexer.run(), problems, limits, name)
        parser.parse_file()
    except TooManyProblems:
        pass
    except RecursionError:
        problems.report(
            "F006", "nested too deep to be read", 0, 0, help="name the inner parts with `let`"
        )
    if problems.errors:
        diagnostics = in_order(problems.found)
        raise FlowError(diagnostics, render_all(Source(name, text), diagnostics))
    return lexer.tokens, lexer.comments, _marked(parser)


def _marked(parser: Parser) -> _Marked:
    roles = parser.roles
    marks = [
        str(token.value) if token.kind in ("punctuation", "keyword") else token.kind
        for token in parser.tokens
    ]
    for i in roles.signs:
        marks[i] = "sign"
    for i in roles.ternary:
        marks[i] = "ternary"
    for i in roles.optional:
        marks[i] = "type?"
    for i in roles.rests:
        marks[i] = "rest"
    for i in roles.blocks:
        marks[i] = "block" + marks[i]
    for opening, closing in parser.closer.items():
        if marks[opening] == "${":
            marks[closing] = "$}"
    _mark_by_neighbour(marks, parser)
    return _Marked(marks, roles.starts | _annotation_lines(marks))


def _mark_by_neighbour(marks: list[str], parser: Parser) -> None:
    for i in range(1, len(marks)):
        if marks[i] == ":" and parser.tokens[i - 1].kind == "keyword":
            marks[i - 1] = "name"  # a reserved word as a key: `{ in: 1 }`
        elif i in parser.roles.starts:
            continue
        elif marks[i] == "(" and marks[i - 1] == "name":
            marks[i] = "call("
        elif marks[i] == "[" and marks[i - 1] in INDEXED:
            marks[i] = "index["


def _annotation_lines(marks: list[str]) -> set[int]:
    """Returns the `@` tokens after the end of a workflow: they begin a line, as statements do."""
    kept = [i for i, mark in enumerate(marks) if mark != ";"]
    return {i for before, i in pairwise(kept) if marks[i] == "@" and marks[before] == "block}"}


def _pieces(
    text: str, tokens: list[Token], comments: list[Comment], marked: _Marked
) -> list[_Piece]:
    """Returns everything that is printed, in the order of printing.

    There is no `;`, and the `{` of a block comes right after the head of its statement.
    """
    kept = [
        (token.start, token.end, i) for i, token in enumerate(tokens[:-1]) if marked.marks[i] != ";"
    ]
    pieces: list[_Piece] = []
    at = 0
    for start, end, index in sorted(
        [*kept, *((comment.start, comment.end, -1) for comment in comments)]
    ):
        piece = _Piece(
            text[start:end], index, index < 0, _gap(text[at:start]), ";" in text[at:start]
        )
        pieces.insert(_place(piece, pieces, marked), piece)
        at = end
    _number_comments(pieces, len(tokens) - 1)
    _keep_needed_semicolons(marked, pieces)
    return pieces


def _gap(between: str) -> int:
    if _BLANK_LINE.search(between):
        return 2
    return 1 if _NEWLINE.search(between) else 0


def _place(piece: _Piece, pieces: list[_Piece], marked: _Marked) -> int:
    """Returns where to insert the piece: at the end, unless it is the `{` of a block.

    That goes before comments that would keep it off the line of its head.
    """
    at = len(pieces)
    if piece.comment or marked.marks[piece.index] != "block{":
        return at
    while at and pieces[at - 1].comment:
        at -= 1
    if not any(moved.gap for moved in (*pieces[at:], piece)):
        return len(pieces)
    piece.gap = 0
    return at


def _number_comments(pieces: list[_Piece], end: int) -> None:
    following = end
    for piece in reversed(pieces):
        if piece.comment:
            piece.index = following
        following = piece.index


def _keep_needed_semicolons(marked: _Marked, pieces: list[_Piece]) -> None:
    """Keeps the `;` of `a; -b`, right after what it ends.

    These are two statements, but `a` on one line and `-b` on the next would be one.
    """
    before: _Piece | None = None
    for piece in pieces:
        if piece.comment:
            continue
        begins_with_sign = piece.index in marked.starts and marked.marks[piece.index] == "sign"
        if (
            begins_with_sign
            and before
            and marked.marks[piece.index - 1] == ";"
            and marked.marks[before.index] != "block{"
        ):
            before.text += ";"
        before = piece


class _Breaks:
    """Decides how many line breaks come before each piece."""

    def __init__(
        self, text: str, tokens: list[Token], marked: _Marked, pieces: list[_Piece]
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.marks = marked.marks
        self.starts = marked.starts
        self.pieces = pieces
        self.one_line = self._one_line_blocks()

    def decide(self) -> None:
        for i, piece in enumerate(self.pieces):
            piece.breaks = self._natural(i)
        for i, piece in enumerate(self.pieces):
            if not piece.comment:
                self._force(i)
        for i in range(len(self.pieces)):
            self._trim_blank_line(i)

    def _mark(self, i: int) -> str:
        """Returns the mark of piece `i`; empty for comments and for what is before the file."""
        return "" if i < 0 or self.pieces[i].comment else self.marks[self.pieces[i].index]

    def _one_line_blocks(self) -> set[int]:
        """Returns the numbers of the braces of blocks that stay on one line.

        Such a block has at most one statement, no comment and no line break.
        """
        found: set[int] = set()
        # Each open `{`, and how many statements are in it; a statement that must break counts as
        # two.
        open_: list[tuple[int, int]] = [(0, 0)]
        for i, piece in enumerate(self.pieces):
            opening, statements = open_[-1]
            if self._mark(i) == "block{":
                open_.append((piece.index, 0))
            elif self._mark(i) == "block}":
                open_.pop()
                if statements <= 1 and self._on_one_line(opening, piece.index):
                    found |= {opening, piece.index}
                else:
                    open_[-1] = (open_[-1][0], 2)
            elif piece.comment or piece.index in self.starts:
                open_[-1] = (opening, statements + (2 if piece.comment else 1))
        return found

    def _on_one_line(self, opening: int, closing: int) -> bool:
        return not _NEWLINE.search(self.text, self.tokens[opening].start, self.tokens[closing].end)

    def _natural(self, i: int) -> int:
        """Returns the author's line breaks, without those inside what belongs on one line."""
        if i == 0:
            return 0
        piece, before = self.pieces[i], self.pieces[i - 1]
        if before.to_end_of_line:
            return max(piece.gap, 1)
        if piece.comment or before.comment or not self._glued(before.index, piece.index):
            return piece.gap
        return 0

    def _glued(self, before: int, index: int) -> bool:
        left, right = self.marks[before], self.marks[index]
        if left in GLUED_AFTER or right in GLUED_BEFORE:
            return True
        return (left in OPENERS and right in CLOSERS) or (left == "block}" and right in AFTER_BLOCK)

    def _force(self, i: int) -> None:
        """Breaks the line before a statement, and before the `}` of a block of several lines."""
        piece, before = self.pieces[i], self._mark(i - 1)
        if piece.index in self.starts:
            if before != "block{" or self.pieces[i - 1].index not in self.one_line:
                self._break_before(self._with_comments(i))
        elif self._mark(i) == "block}" and before != "block{" and piece.index not in self.one_line:
            first = self._with_comments(i)
            self._break_before(i)
            if self._mark(first - 1) == "block{":
                self._break_before(first)

    def _break_before(self, i: int) -> None:
        self.pieces[i].breaks = max(self.pieces[i].breaks, 1) if i else 0

    def _with_comments(self, i: int) -> int:
        """Returns the first of the comments on the line before piece `i`, which belong to it.

        Returns `i` if there are none.
        """
        while (
            i
            and self.pieces[i - 1].comment
            and not self.pieces[i].breaks
            and not self.pieces[i].split
        ):
            i -= 1
        return i

    def _trim_blank_line(self, i: int) -> None:
        piece = self.pieces[i]
        if piece.breaks == 2 and (self._mark(i) in CLOSERS or self._follows_opener(i)):
            piece.breaks = 1

    def _follows_opener(self, i: int) -> bool:
        """Whether the line above ends in an opening bracket, with or without a comment after it."""
        i -= 1
        while i > 0 and self.pieces[i].comment and not self.pieces[i].breaks:
            i -= 1
        return self._mark(i) in OPENERS


class _Frame(Record):
    """An open bracket.

    `outside` is the level of a line that begins with its closer, `inside` that of the lines in it.
    """

    mark: str
    outside: int
    inside: int


class _Printer:
    """Writes the pieces out.

    Levels count from the line that opened the bracket: several brackets opened on one line are one
    level.
    """

    def __init__(self, marked: _Marked, pieces: list[_Piece]) -> None:
        self.marks = marked.marks
        self.starts = marked.starts
        self.pieces = pieces
        self.frames = [_Frame("", 0, 0)]
        self.level = 0  # of the current line
        self.out: list[str] = []

    def run(self) -> str:
        for i, piece in enumerate(self.pieces):
            self.out.append(self._line_start(piece) if piece.breaks else self._space(i))
            self.out.append(_comment_text(piece.text, self.level) if piece.comment else piece.text)
            if not piece.comment:
                self._track(piece.index)
        return "".join([*self.out, "\n"]) if self.pieces else ""

    def _line_start(self, piece: _Piece) -> str:
        self.level = self._level_of(piece)
        return "\n" * piece.breaks + INDENT * self.level

    def _level_of(self, piece: _Piece) -> int:
        frame, index, mark = self.frames[-1], piece.index, self.marks[piece.index]
        if mark in CLOSERS:
            return frame.inside if piece.comment else frame.outside
        if index in self.starts or mark in ("@", "end") or self._goes_on_after_block(index):
            return frame.inside
        if frame.mark in ("", "block{", "${"):
            return frame.inside + 1
        continues = mark in CONTINUES or self.marks[index - 1] in CONTINUED
        return frame.inside + continues

    def _goes_on_after_block(self, index: int) -> bool:
        return self.marks[index] in AFTER_BLOCK and self.marks[index - 1] == "block}"

    def _space(self, i: int) -> str:
        """Returns the space between a piece and the one before it on the same line."""
        if i == 0:
            return ""
        piece, before = self.pieces[i], self.pieces[i - 1]
        if piece.comment and (i + 1 == len(self.pieces) or self.pieces[i + 1].breaks):
            return "  "
        left = "" if before.comment else self.marks[before.index]
        right = "" if piece.comment else self.marks[piece.index]
        if left == right == "sign" and before.text == piece.text == "-":
            return " "  # without a space they would read as `--`
        tight = (
            left in TIGHT_AFTER or right in TIGHT_BEFORE or (left in OPENERS and right in CLOSERS)
        )
        return "" if tight else " "

    def _track(self, index: int) -> None:
        mark = self.marks[index]
        if mark in OPENERS:
            self.frames.append(self._frame(mark, index))
        elif mark in CLOSERS:
            self.frames.pop()

    def _frame(self, mark: str, index: int) -> _Frame:
        if mark == "${":
            return _Frame(mark, self.level, self.level)
        if mark == "block{" and self.marks[index - 1] != "name":
            # The head of a statement may take several lines; its block is indented from the first.
            # `branch {` is an expression.
            outside = self.frames[-1].inside
            return _Frame(mark, outside, outside + 1)
        return _Frame(mark, self.level, self.level + 1)


def _comment_text(text: str, level: int) -> str:
    """Returns the comment without trailing space.

    In a `/*` comment, lines that begin with `*` are aligned under its first star.
    """
    first, *rest = [line.rstrip() for line in text.split("\n")]
    if all(line.lstrip().startswith("*") for line in rest):
        rest = [f"{INDENT * level} {line.lstrip()}" for line in rest]
    return "\n".join([first, *rest])
