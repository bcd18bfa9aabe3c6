"""What the parser expects, and what it says when it finds something else.

The messages are mainly for people who come from another language: the tables are in
`other_languages`, and the help shows what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

from rhythm.ir.operations import CALLABLE
from rhythm.lang.flow import nodes
from rhythm.lang.flow.grammar.cursor import Cursor, Recover, closes, shown
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.other_languages import (
    FOREIGN_COMPREHENSIONS,
    FOREIGN_OPERATORS,
    FOREIGN_PREFIXES,
    FOREIGN_SPELLINGS,
    FOREIGN_STATEMENTS,
    FUNCTIONS_FROM_ELSEWHERE,
)
from rhythm.lang.flow.tokens import Token
from rhythm.suggest import nearest

FOREIGN_FIRST = frozenset(word.split()[0] for word in FOREIGN_SPELLINGS)
NO_FUNCTION_VALUES = "workflows have no function values: a function cannot be saved in a snapshot"

T = TypeVar("T")


class RefusingCursor(Cursor):
    """A cursor that demands tokens, and reports what it finds in their place."""

    def _expect(self, value: str, why: str) -> Token:
        if self._at(value):
            return self._next()
        token = self._token
        self._refuse_foreign(value)
        if value in ")]}" and (self._at_end() or self._at("}")):
            self._never_closed(value)
        self._fail(
            "F001",
            f"expected `{value}` {why}, not {shown(token)}",
            token,
            help=f"write `{value}` before it, or take it out",
        )

    def _expect_name(self, what: str) -> Token:
        if self._token.kind == "name":
            return self._next()
        reserved = f"`{self._token.value}` is a word of the language; choose another name"
        help = (
            reserved
            if self._token.kind == "keyword"
            else "a name has letters, digits and _, and begins with a letter"
        )
        self._fail("F001", f"expected {what}, not {shown(self._token)}", self._token, help=help)

    def _name(self, what: str) -> nodes.Name:
        token = self._expect_name(what)
        return nodes.Name(token.start, token.end, str(token.value))

    def _expect_key(self) -> str:
        token = self._token
        if token.kind in ("name", "keyword", "text"):
            return str(self._next().value)
        if token.kind == "number":
            self._fail("F001", "a key is a word or text", token, help=f'write "{token.value}"')
        self._fail(
            "F001", f"expected a key, not {shown(token)}", token, help="write { key: value }"
        )

    def _sequence(self, closing: str, parse: Callable[[], T]) -> list[T]:
        """Returns the items up to the closing bracket, with commas between them.

        A comma may follow the last item.
        """
        items: list[T] = []
        while not self._at(closing):
            if self._at_end():
                self._never_closed(closing)
            items.append(parse())
            if not self._take(",") and not self._at(closing):
                self._missing_comma(closing)
        self._next()
        return items

    def _missing_comma(self, closing: str) -> NoReturn:
        token = self._token
        self._refuse_foreign(closing)
        if token.kind == "end" or closes(token):
            self._never_closed(closing)
        self._fail(
            "F001",
            f"expected `,` or `{closing}`, not {shown(token)}",
            token,
            help="separate the items with commas",
        )

    def _never_closed(self, closing: str) -> NoReturn:
        opening = self._opening()
        self._fail(
            "F002",
            f"this {shown(opening)} is never closed",
            opening,
            "opened here",
            f"close it with `{closing}`",
        )

    def _no_expression(self, token: Token) -> NoReturn:
        if token.means("/"):
            self._fail(
                "F007",
                "there are no regular expressions",
                token,
                help="use contains, starts_with, split or replace, or match in a task",
            )
        if token.means("=>"):
            self._lambda(token.start)
        if token.kind == "punctuation" and token.value in FOREIGN_OPERATORS:
            self._foreign_operator()
        if token.means("@"):
            self._fail(
                "F030",
                "annotations stand before the workflow, not inside it",
                token,
                help="move it above the `workflow` line",
            )
        if closes(token) and self.i not in self.closer.values():
            self._fail(
                "F001",
                f"{shown(token)} closes nothing",
                token,
                help="delete it, or write what is missing before it",
            )
        self._fail(
            "F001",
            f"expected a value, not {shown(token)}",
            token,
            help="a value is missing before it, or it is too much",
        )

    def _refuse_foreign(self, closing: str = "") -> None:
        """Refuses the current token, which does not fit, if it belongs to another language."""
        token, last = self._token, self._last
        if token.kind == "punctuation" and token.value in FOREIGN_OPERATORS:
            self._foreign_operator()
        if self._at("if") and not token.line_start and not self._at_if_statement():
            self._fail(
                "F007",
                "one of two values is chosen with `? :`",
                token,
                help="write condition ? a : b",
            )
        if self._at("for") and closing in FOREIGN_COMPREHENSIONS:
            message, help = FOREIGN_COMPREHENSIONS[closing]
            self._fail("F001", message, token, help=help)
        if (
            last.kind == "name"
            and token.kind in ("name", "text", "number")
            and not token.line_start
        ):
            call = (
                f"{last.value}({self.text[token.start : token.end]})"
                if last.value in CALLABLE
                else None
            )
            if instead := call or FUNCTIONS_FROM_ELSEWHERE.get(str(last.value)):
                self._fail("F001", "a call has parentheses", token, help=f"write {instead}")

    def _at_if_statement(self) -> bool:
        return self.tokens[self.closer.get(self.i + 1, self.i) + 1].means("{")

    def _foreign_operator(self) -> NoReturn:
        token = self._token
        self._fail(
            "F007",
            f"there is no `{token.value}` here",
            token,
            help=FOREIGN_OPERATORS[str(token.value)],
        )

    def _replace_operator(self, token: Token) -> None:
        """Refuses `===`, `and`, `is not` and the like, and replaces them by our operator."""
        if token.kind == "name" and token.line_start:
            return
        two = f"{token.value} {self._peek(1).value}"
        word = two if two in FOREIGN_SPELLINGS else str(token.value)
        if word not in FOREIGN_SPELLINGS or token.kind not in ("name", "punctuation"):
            return
        ours, written, help = FOREIGN_SPELLINGS[word]
        self._report_token("F007", f"`{word}` is written `{written}`", token, help=help)
        if word is two:
            self._next()
        self._token.kind, self._token.value = "punctuation", ours

    def _refuse_slice(self, target: Node, opening: Token, closing: int) -> None:
        xs = self._text(target)
        inside = self.text[opening.end : self.tokens[closing].start].split(":")
        bounds = ", ".join(
            part.strip() or "0" for part in inside if part.strip() or part is inside[0]
        )
        help = (
            f"write slice({xs}, {bounds})"
            if len(inside) == 2
            else f"write slice({xs}, start, end), or reverse({xs})"
        )
        self._report_token(
            "F007", "a part of a list or text is taken with `slice`", self._token, help=help
        )
        self.i = max(self.i, closing)
        self._expect("]", "to close the index")

    def _refuse_transformation(self, target: nodes.Member) -> bool:
        """Reports `xs.map(x => f)` or `xs.filter(x => c)`, and shows the equivalent comprehension.

        False if the call does not have that form: then nothing is reported.
        """
        opening, closing = self.i, self.closer.get(self.i, self.i)
        arrow = next(
            (i for i in range(opening, min(opening + 5, closing)) if self.tokens[i].means("=>")),
            closing,
        )
        name = next((token for token in self.tokens[opening:arrow] if token.kind == "name"), None)
        if name is None or arrow + 1 >= closing or self.tokens[arrow + 1].means("{"):
            return False
        x = name.value
        xs = self._text(target.target)
        body = self.text[self.tokens[arrow + 1].start : self.tokens[closing - 1].end]
        rewritten = (
            f"[{body} for {x} in {xs}]"
            if target.name == "map"
            else f"[{x} for {x} in {xs} if {body}]"
        )
        help = f"write a comprehension: {rewritten}"
        self.problems.report(
            "F008", NO_FUNCTION_VALUES, name.start, self.tokens[arrow].end, help=help
        )
        self.i = closing + 1
        return True

    def _lambda(self, start: int) -> NoReturn:
        token = self._token
        help = (
            f"compute the value first and pass it as data: {self._as_data()}",
            "a list is transformed with a comprehension: [… for x in xs if condition]",
        )
        self.problems.report(
            "F008", NO_FUNCTION_VALUES, start, max(token.end, start + 1), help=help
        )
        raise Recover

    def _as_data(self) -> str:
        """Returns `key: () => value` at the current token as `key: value`.

        That works if the value is a name or a path; otherwise it returns an example.
        """
        before, i = self.tokens[max(self.i - 2, 0) : self.i], self.i + 3
        while (
            self.tokens[i : i + 1]
            and (self.tokens[i].kind == "name" or self.tokens[i].means("."))
            and not self.tokens[i].line_start
        ):
            i += 1
        body = "".join(str(token.value) for token in self.tokens[self.i + 3 : i])
        if (
            self.closer.get(self.i) == self.i + 1
            and body
            and len(before) == 2
            and before[1].means(":")
        ):
            return f"{before[0].value}: {body}"
        return "{ value: x }"

    def _function(self, token: Token) -> NoReturn:
        name = self._token.value if self._token.kind == "name" else "helper"
        help = (
            "write the steps where they are used, or give them a workflow of their own:",
            f'workflow {name}(inputs) {{ … }}, started by: await workflow("{name}", {{ … }})',
            f'plain computation belongs in a Python task: await task("{name}", {{ … }})',
        )
        self._fail(
            "F009", "workflows have no functions: there is no call stack to save", token, help=help
        )

    def _foreign_statement(self, token: Token) -> bool:
        """Refuses a statement of another language.

        True if the token was replaced by the word that should have been written; False if it may be
        a plain name.
        """
        following = self._peek(1)
        alone = following.line_start or following.kind == "end" or following.value in ("}", ";")
        if alone and token.value not in ("pass", "raise"):
            return False
        if not alone and following.kind == "punctuation" and following.value not in ("{", "("):
            return False
        replacement, help = FOREIGN_STATEMENTS[str(token.value)]
        thrown = self._instead_of_class(1) if replacement == "throw" else ""
        self._report_token("F010", f"there is no `{token.value}` here", token, help=thrown or help)
        if replacement is None or thrown:
            raise Recover
        token.kind, token.value = "keyword", replacement
        return True

    def _instead_of_class(self, ahead: int) -> str:
        """Says how to throw what is written as `Error("x")` or `new Error("x")`.

        The text is empty if the token `ahead` of the current one begins neither.
        """
        token = self._peek(ahead + (self._peek(ahead).value == "new"))
        name = str(token.value)
        if token.kind != "name" or not name[0].isupper():
            return ""
        return (
            f'write throw "message", or throw {{ code: '
            f'"{"Declined" if name == "Error" else name}", message: "…" }}'
        )

    def _at_keyword_place(self, token: Token) -> bool:
        """Whether here is a place for a keyword, as in `retrun x`, `fro (x in xs) {`, `tyr {`.

        Only a keyword can stand before a value, a head or a block.
        """
        following, i = self._peek(1), self.i + 1
        if (
            following.line_start
            or token.value in CALLABLE
            or token.value in FOREIGN_PREFIXES
            or following.value in FOREIGN_FIRST
        ):
            return False
        if following.means("("):
            i = self.closer.get(i, i) + 1
        value = following.kind in ("name", "number", "text") or following.value in (
            "true",
            "false",
            "null",
            "await",
        )
        block = (
            self.tokens[i].means("{") and not self.tokens[i].line_start and token.value != "branch"
        )
        return value or block

    def _refuse_misspelt(self, token: Token, words: Iterable[str]) -> None:
        turned = next((word for word in words if sorted(word) == sorted(str(token.value))), None)
        if near := turned or nearest(str(token.value), words, 0.7):
            self._fail(
                "F001",
                f"`{token.value}` is not a word of the language",
                token,
                help=f"did you mean `{near}`?",
            )
