"""The tokens under the parser's hand: where it stands, what comes next, which brackets belong
together, and where to go on.

Besides the tree, reading leaves `Roles`: which tokens are block braces, signs, parts of `?:`, and
where statements begin. The formatter needs nothing else.
"""

from __future__ import annotations

from typing import NoReturn

from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.problems import Problems
from rhythm.lang.flow.tokens import Token
from rhythm.limits import Limits
from rhythm.record import Record

OPENING = frozenset({"(", "[", "{", "${"})
PARTNERS = {")": "(", "]": "[", "}": "{"}


class Roles(Record):
    """What the formatter must know of a token that the token does not say: sets of token
    numbers."""

    blocks: set[int]
    signs: set[int]
    ternary: set[int]
    starts: set[int]


class Recover(Exception):
    """A problem was reported; go on with the next statement."""


class Cursor:
    def __init__(
        self, text: str, tokens: list[Token], problems: Problems, limits: Limits, name: str
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.problems = problems
        self.limits = limits
        self.name = name
        self.i = 0
        self.depth = 0
        self.roles = Roles(set(), set(), set(), set())
        # nodes that stand in parentheses, by identity; held, so that no other gets the same
        self.wrapped: dict[int, Node] = {}
        # the number of the closing token for each opening one that has one
        self.closer = _match_brackets(tokens)
        self.balanced = 2 * len(self.closer) == sum(
            _opens(token) or closes(token) for token in tokens
        )

    @property
    def _token(self) -> Token:
        return self.tokens[self.i]

    @property
    def _last(self) -> Token:
        return self.tokens[max(self.i - 1, 0)]

    def _peek(self, ahead: int) -> Token:
        return self.tokens[min(self.i + ahead, len(self.tokens) - 1)]

    def _next(self) -> Token:
        token = self.tokens[self.i]
        if token.kind != "end":
            self.i += 1
        return token

    def _at(self, value: str) -> bool:
        # as `means`; asked several times for every token, so without a further call
        token = self.tokens[self.i]
        return token.value == value and token.kind in ("punctuation", "keyword")

    def _at_end(self) -> bool:
        return self.tokens[self.i].kind == "end"

    def _take(self, value: str) -> bool:
        if self._at(value):
            self.i += 1
            return True
        return False

    def _opening(self) -> Token:
        """The innermost bracket that is open before the current token."""
        depth = 0
        for token in reversed(self.tokens[1 : self.i]):
            if _opens(token) and depth == 0:
                return token
            depth += closes(token) - _opens(token)
        return self.tokens[0]

    def _at_statement_end(self) -> bool:
        return self._token.line_start or self._at(";") or self._at("}") or self._at_end()

    def _skip_statement(self) -> None:
        """To the start of the next statement: a new line, `;` or the end of the block, whatever
        brackets are between."""
        while not self._at_statement_end():
            if self._token.value in ("(", "[", "{") and self.i in self.closer:
                self.i = self.closer[self.i]
            self._next()

    def _leave_brackets(self, start: int) -> None:
        """To the end of the outermost bracket that is open since `start`, if brackets can be
        trusted: all of the file's have a partner."""
        if self.balanced:
            self.i = max(
                [self.i, *(self.closer[i] + 1 for i in range(start, self.i) if i in self.closer)]
            )

    def _text(self, node: Node) -> str:
        """The node as it is written, if that is one line; else a stand-in."""
        text = self.text[node.start : node.end]
        return text if "\n" not in text else "x"

    def _report_token(
        self,
        code: str,
        message: str,
        token: Token,
        label: str = "",
        help: str | tuple[str, ...] = (),
    ) -> None:
        if self._last.start in self.problems.unended:  # which is what is wrong
            return
        self.problems.report(
            code, message, token.start, max(token.end, token.start + 1), label, help
        )

    def _fail(
        self,
        code: str,
        message: str,
        token: Token,
        label: str = "",
        help: str | tuple[str, ...] = (),
    ) -> NoReturn:
        self._report_token(code, message, token, label, help)
        raise Recover


def shown(token: Token) -> str:
    """The token as a message names it."""
    if token.kind == "end":
        return "the end of the file"
    if token.kind in ("text", "part"):
        return "a text"
    if token.kind in ("template", "endtemplate"):
        return "a template"
    return f"`{str(token.value)[:40]}`"


def _match_brackets(tokens: list[Token]) -> dict[int, int]:
    closer: dict[int, int] = {}
    open_: list[int] = []
    for i, token in enumerate(tokens):
        if _opens(token):
            open_.append(i)
        elif (
            closes(token)
            and open_
            and tokens[open_[-1]].value in (PARTNERS[str(token.value)], "${")
        ):
            closer[open_.pop()] = i
    return closer


def _opens(token: Token) -> bool:
    return token.kind == "punctuation" and token.value in OPENING


def closes(token: Token) -> bool:
    return token.kind == "punctuation" and token.value in PARTNERS
