"""The parser's position in the tokens: the next token, matching brackets, and error recovery.

Besides the tree, parsing leaves `Roles`: which tokens are block braces, signs or parts of `?:`, and
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
    """What the formatter must know of tokens and the tokens do not say: sets of token numbers."""

    blocks: set[int]
    signs: set[int]
    ternary: set[int]
    starts: set[int]
    optional: set[int]  # the `?` after a type, or after a key of one
    rests: set[int]  # the `...` of a type


class Recover(Exception):
    """A problem was reported; the parser goes on with the next statement."""


class Cursor:
    """A position in the tokens, with the questions and moves that all layers of the parser need."""

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
        self.roles = Roles(set(), set(), set(), set(), set(), set())
        # Nodes in parentheses, by identity. They are kept here so that no other node gets the same
        # identity.
        self.wrapped: dict[int, Node] = {}
        # By the number of an opening token, the number of its closing one, if it has one.
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
        # The same as `means`, without another call: this is asked several times for every token.
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
        """Returns the innermost bracket that is open before the current token."""
        depth = 0
        for token in reversed(self.tokens[1 : self.i]):
            if _opens(token) and depth == 0:
                return token
            depth += closes(token) - _opens(token)
        return self.tokens[0]

    def _at_statement_end(self) -> bool:
        return self._token.line_start or self._at(";") or self._at("}") or self._at_end()

    def _skip_statement(self) -> None:
        """Skips to the next statement: to a new line, `;` or the end of the block.

        Brackets in between are skipped as a whole.
        """
        while not self._at_statement_end():
            if self._token.value in ("(", "[", "{") and self.i in self.closer:
                self.i = self.closer[self.i]
            self._next()

    def _leave_brackets(self, start: int) -> None:
        """Skips to the end of the outermost bracket that was opened since `start`.

        It does nothing unless brackets can be trusted: all brackets of the file have a partner.
        """
        if self.balanced:
            self.i = max(
                [self.i, *(self.closer[i] + 1 for i in range(start, self.i) if i in self.closer)]
            )

    def _text(self, node: Node) -> str:
        """Returns the node as it is written, if that is one line; else `x`."""
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
        """Reports a problem at a token, unless what precedes it never ended."""
        # the unended text or comment is the real problem
        if self._last.start in self.problems.unended:
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
        """Reports a problem at a token and raises `Recover`."""
        self._report_token(code, message, token, label, help)
        raise Recover


def shown(token: Token) -> str:
    """Returns the token as messages name it."""
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
    """Whether the token is a closing bracket."""
    return token.kind == "punctuation" and token.value in PARTNERS
