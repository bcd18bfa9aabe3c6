"""The grammar of statements, blocks and patterns.

A statement that cannot be read is skipped. A `Broken` node stands for it in the tree, so that later
passes do not report it again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import NoReturn

from rhythm.lang.flow import nodes
from rhythm.lang.flow.grammar.cursor import Recover, shown
from rhythm.lang.flow.grammar.expressions import ExpressionParser
from rhythm.lang.flow.nodes import Block, Broken, Node
from rhythm.lang.flow.other_languages import FOREIGN_STATEMENTS
from rhythm.lang.flow.tokens import ASSIGNMENTS, RESERVED, Token

FOLLOWERS = {"else": "if", "catch": "try", "finally": "try"}
STATEMENT_WORDS = (
    "let",
    "const",
    "if",
    "for",
    "while",
    "break",
    "continue",
    "return",
    "throw",
    "try",
    "await",
    "workflow",
    *FOLLOWERS,
)


class StatementParser(ExpressionParser):
    """Parses statements, blocks and patterns."""

    def _block(self) -> Block:
        opening = self._expect("{", "to open the block")
        self.roles.blocks.add(self.i - 1)
        statements: list[Node] = []
        while not self._at("}") and not self._at_end():
            statements += self._statement_or_skip()
        if self._at_end():
            if not self._is_swallowed(opening):
                message, help = "this block never ends", "close it with `}`"
                self.problems.report(
                    "F002", message, opening.start, opening.end, "opened here", help
                )
            return Block(opening.start, self._token.end, tuple(statements))
        self.roles.blocks.add(self.i)
        return Block(opening.start, self._next().end, tuple(statements))

    def _is_swallowed(self, opening: Token) -> bool:
        """Whether the end of a block is inside something that itself never ends."""
        last = max(self.problems.unended, default=-1)
        return last > opening.start and "}" in self.text[last:]

    def _statement_or_skip(self) -> list[Node]:
        """Returns the next statement, or what remains of it if it cannot be read.

        The list is empty for a lone `;`.
        """
        start, depth = self.i, self.depth
        if self._take(";"):
            return []
        self.roles.starts.add(self.i)
        try:
            statement = self._statement()
            self._end_of_statement()
            return [statement]
        except Recover:
            self.depth = depth
            if self.i == start:
                self._next()
            self._leave_brackets(start)
            self._skip_statement()
            return [self._remains(start)]

    def _remains(self, start: int) -> Node:
        """Returns a node in place of a statement that could not be read.

        If the statement begins as a declaration, the node declares the same name, so that later
        uses of the name are not reported.
        """
        first, end = self.tokens[start], self._last.end
        declares = first.kind == "keyword" and first.value in ("let", "const")
        name = self.tokens[start + 1] if declares else first
        broken = Broken(first.start, end)
        if name.kind != "name" or not self.tokens[start + 1 + declares].means("="):
            return broken
        target = nodes.Name(name.start, name.end, str(name.value))
        return (
            nodes.Let(first.start, end, False, target, broken)
            if declares
            else nodes.Assign(first.start, end, target, "=", broken)
        )

    def _end_of_statement(self) -> None:
        token = self._token
        if self._take(";") or token.line_start or self._at("}") or self._at_end():
            return
        self._refuse_foreign()
        if self._at(")") or self._at("]"):
            self._fail(
                "F001",
                f"{shown(token)} closes nothing",
                token,
                help="delete it, or open what it closes",
            )
        if self._last.means("}") and token.kind == "name":
            self._refuse_misspelt(token, FOLLOWERS)
        if self._last.kind == "name":
            self._refuse_misspelt(self._last, RESERVED)
        self._fail(
            "F001",
            f"{shown(token)} does not fit here",
            token,
            "the statement was complete before this",
            "begin a new line, or write `;` between two statements",
        )

    def _statement(self) -> Node:
        token = self._token
        if token.kind == "keyword" and (parse := self._STATEMENTS.get(str(token.value))):
            return parse(self)
        if (
            token.value in FOREIGN_STATEMENTS
            and token.kind == "name"
            and self._foreign_statement(token)
        ):
            return self._statement()
        if self._at("async") and (
            self._peek(1).value in FOREIGN_STATEMENTS or self._peek(1).means("for")
        ):
            return self._without_async()
        if token.kind == "keyword" and (first := FOLLOWERS.get(str(token.value))):
            self._fail(
                "F001",
                f"`{token.value}` without `{first}`",
                token,
                help=f"it follows the closing brace of `{first}`",
            )
        if self._at("{"):
            self._fail(
                "F001",
                "a statement cannot begin with `{`",
                token,
                help=(
                    "blocks follow if, for, while, try and branch; an object needs a name: "
                    "let x = { … }"
                ),
            )
        if self._at_header():
            self._fail(
                "F030",
                "a workflow cannot be defined inside another",
                token,
                help='move it to the top of the file and start it with workflow("name")',
            )
        if self._at("@"):
            self._fail(
                "F030",
                "annotations stand before the workflow, not inside it",
                token,
                help="move it above the `workflow` line",
            )
        if token.kind == "name" and self._at_keyword_place(token):
            self._refuse_misspelt(token, STATEMENT_WORDS)
        value = self._expression()
        if self._token.kind == "punctuation" and self._token.value in ASSIGNMENTS:
            return self._assignment(value)
        return nodes.ExpressionStatement(token.start, value.end, value)

    def _without_async(self) -> Node:
        token = self._next()
        if self._at("for"):
            self._report_token(
                "F010", "there is no `async` loop here", token, help="leave `async` out"
            )
        return self._statement()

    def _at_header(self) -> bool:
        """Whether here is a workflow's header, or something that can only be meant as one.

        That is `async function`, or `workflow` followed by what only a header has, even if it is
        not quite right.
        """
        i = self.i + self._at("async")
        if i > self.i and self.tokens[i].value == "function":
            return True
        if self.tokens[i].kind != "name" or self.tokens[i].value != "workflow":
            return False
        i += 1
        if self.tokens[i].kind in ("name", "text") and not self.tokens[i].line_start:
            return True
        if self.tokens[i].means("(") and i in self.closer:
            i = self.closer[i] + 1
            return self.tokens[i].value in ("{", ":", "->")
        return self.tokens[i].means("{")

    def _assignment(self, target: Node) -> Node:
        op = self._next()
        if isinstance(target, nodes.ListLiteral) and op.value == "=":
            target = nodes.ListPattern(
                target.start, target.end, tuple(self._pattern_name(item) for item in target.items)
            )
        elif (
            not isinstance(target, nodes.Name | nodes.Member | nodes.Index | Broken)
            or id(target) in self.wrapped
        ):
            self.problems.about(
                "F033",
                "only a variable, a property or an element can be assigned to",
                target,
                "this is a value",
                "to compare, write `==`"
                if op.value == "="
                else "give the value a name first: let x = …",
            )
            target = Broken(target.start, target.end)
        value = self._expression()
        if self._at("="):
            self._fail(
                "F001",
                "an assignment has no value of its own",
                self._token,
                help="write two statements",
            )
        return nodes.Assign(target.start, value.end, target, str(op.value), value)

    def _pattern_name(self, item: Node) -> nodes.Name:
        if isinstance(item, nodes.Name):
            return item
        self.problems.about(
            "F033",
            "a list is taken apart into plain names",
            item,
            help="write [a, b] = …, and take inner values apart on the next line",
        )
        return nodes.Name(item.start, item.end, "_")

    def _let(self) -> Node:
        keyword = self._next()
        target = self._let_target()
        if self._at(":"):
            self._fail(
                "F001",
                "a variable has no type",
                self._token,
                help=f"write {keyword.value} name = value",
            )
        value = self._expression() if self._take("=") else None
        if value is None and (keyword.value == "const" or not isinstance(target, nodes.Name)):
            self._fail(
                "F001",
                "this declaration needs a value",
                self._last,
                help=f"write {keyword.value} … = value",
            )
        if self._at(","):
            self._fail(
                "F001",
                "one declaration a statement",
                self._token,
                help=f"begin a new line with `{keyword.value}`",
            )
        return nodes.Let(keyword.start, self._last.end, keyword.value == "const", target, value)

    def _let_target(self) -> Node:
        opening = self._token
        if self._take("["):
            names = self._sequence("]", self._element)
            return nodes.ListPattern(opening.start, self._last.end, tuple(chain(*names)))
        if self._take("{"):
            fields = self._sequence("}", self._field)
            return nodes.ObjectPattern(opening.start, self._last.end, tuple(chain(*fields)))
        return self._name("a variable's name")

    def _inner_pattern(self, name: str) -> tuple[nodes.Name, ...]:
        """Refuses a pattern inside another, and returns its names.

        The names are declared all the same, so that their uses are not reported.
        """
        start = self._token
        inner = self._let_target()
        help = f"take inner values apart on the next line: let {self._text(inner)} = {name}"
        self._report_token("F033", "patterns are flat", start, help=help)
        if isinstance(inner, nodes.ObjectPattern):
            return tuple(field.name for field in inner.fields)
        return inner.names if isinstance(inner, nodes.ListPattern) else ()

    def _element(self) -> tuple[nodes.Name, ...]:
        if self._at("..."):
            self._fail(
                "F033",
                "the rest of a list cannot be taken in a pattern",
                self._token,
                help="use slice(list, start) on the next line",
            )
        if self._at("[") or self._at("{"):
            return self._inner_pattern("…")
        return (self._pattern_name(self._expression()),)

    def _field(self) -> tuple[nodes.Field, ...]:
        start = self._token
        if self._at("..."):
            self._fail(
                "F033",
                "the rest of an object cannot be taken in a pattern",
                start,
                help="use omit(object, [keys]) on the next line",
            )
        key = self._expect_key()
        at_key = nodes.Name(start.start, start.end, key)
        named = self._take(":")
        if named and (self._at("[") or self._at("{")):
            return tuple(
                nodes.Field(name.start, name.end, name.name, name, None)
                for name in self._inner_pattern(key)
            )
        name = self._name("a variable's name") if named else at_key
        if start.kind != "name" and name is at_key:
            self._fail(
                "F033",
                f"`{key}` cannot be a variable's name",
                start,
                help=f"give it one: {{ {self._source_key(key)}: name }}",
            )
        default = self._expression() if self._take("=") else None
        return (nodes.Field(start.start, self._last.end, key, name, default),)

    @staticmethod
    def _source_key(key: str) -> str:
        return key if key.isidentifier() and key.isascii() else f'"{key}"'

    def _if(self) -> Node:
        start = self._token
        arms, otherwise = [self._arm()], None
        while self._else():
            if self._at("if"):
                arms.append(self._arm())
            else:
                otherwise = self._body("else")
                break
        return nodes.If(start.start, self._last.end, tuple(arms), otherwise)

    def _else(self) -> bool:
        """Skips `else`; refuses `elif` and reads it as `else if`. False if neither is here."""
        token = self._token
        if token.kind == "name" and token.value in ("elif", "elseif"):
            self._report_token(
                "F010",
                f"there is no `{token.value}` here",
                token,
                help=FOREIGN_STATEMENTS[token.value][1],
            )
            token.kind, token.value = "keyword", "if"
            return True
        return self._take("else")

    def _arm(self) -> tuple[Node, Block]:
        keyword = str(self._next().value)
        condition = self._condition(keyword)
        return condition, self._body(f"{keyword} (…)")

    def _while(self) -> Node:
        start = self._next()
        condition = self._condition("while")
        body = self._body("while (…)")
        return nodes.While(start.start, body.end, condition, body)

    def _condition(self, keyword: str) -> Node:
        if not self._at("("):
            self._report_token(
                "F001",
                f"the condition of `{keyword}` stands in parentheses",
                self._token,
                help=f"write {keyword} (condition) {{ … }}",
            )
            return self._or_block(self._expression)

        def parenthesised() -> Node:
            self._next()
            value = self._expression()
            if self._at("="):
                self._fail(
                    "F001", "a condition cannot assign", self._token, help="to compare, write `==`"
                )
            self._expect(")", f"to close the condition of `{keyword}`")
            return value

        return self._or_block(parenthesised)

    def _or_block(self, parse: Callable[[], Node]) -> Node:
        """Returns what `parse` returns; after a problem, skips to the `{` on the same line.

        The block is then still read as one.
        """
        opening = self.i
        try:
            return parse()
        except Recover:
            if self.balanced and opening in self.closer:
                self.i = max(self.i, self.closer[opening] + 1)
            start = self._token
            while (
                not self._at_end()
                and not self._at("{")
                and not (self._token.line_start and self._token is not start)
            ):
                self._next()
            if not self._at("{"):
                raise
            return Broken(start.start, self._last.end)

    def _body(self, after: str) -> Block:
        if self._at("{"):
            return self._block()
        token = self._token
        if self._at(":") or self._at_end() or self._at("}"):
            self._fail(
                "F001", f"expected a block after `{after}`", token, help=f"write {after} {{ … }}"
            )
        self._report_token(
            "F001", f"the body of `{after}` needs braces", token, help=f"write {after} {{ … }}"
        )
        statement = self._statement()
        return Block(token.start, statement.end, (statement,))

    def _for(self) -> Node:
        start = self._next()
        if not self._at("("):
            self._fail(
                "F001",
                "the head of `for` stands in parentheses",
                self._token,
                help="write for (x in xs) { … }",
            )
        names, source = self._loop_head()
        body = self._body("for (…)")
        return nodes.For(start.start, body.end, names, source, body)

    def _loop_head(self) -> tuple[tuple[nodes.Name, ...], Node]:
        found: list[nodes.Name] = []

        def head() -> Node:
            self._next()
            if self._at("let") or self._at("const"):
                self._next()
            found.extend(self._loop_names())
            if self._at("=") or self._at(";"):
                self._fail(
                    "F010",
                    "there is no counting `for`",
                    self._token,
                    help=f"write for ({found[0].name} in range(n)) {{ … }}",
                )
            if not (self._take("in") or self._take("of")):
                self._fail(
                    "F001",
                    f"expected `in`, not {shown(self._token)}",
                    self._token,
                    help="write for (x in xs) { … }",
                )
            value = self._expression()
            self._expect(")", "to close the head of `for`")
            return value

        source = self._or_block(head)
        return tuple(found) or (nodes.Name(source.start, source.end, "_"),), source

    def _jump(self) -> Node:
        token = self._next()
        if self._token.kind == "name" and not self._token.line_start:
            self._fail(
                "F010",
                "loops have no labels",
                self._token,
                help="leave the inner loop, then test a variable in the outer one",
            )
        return (nodes.Break if token.value == "break" else nodes.Continue)(token.start, token.end)

    def _return(self) -> Node:
        token = self._next()
        if self._at_statement_end():
            return nodes.Return(token.start, token.end, None)
        value = self._expression()
        return nodes.Return(token.start, value.end, value)

    def _throw(self) -> Node:
        token = self._next()
        if self._at_statement_end():
            self._fail(
                "F001",
                "`throw` needs a value on the same line",
                token,
                help='write throw "message", or throw { code, message, data }',
            )
        if (help := self._instead_of_class(0)) and (
            self._token.value == "new" or self._peek(1).means("(")
        ):
            self._fail("F010", "errors are plain values", self._token, help=help)
        value = self._expression()
        return nodes.Throw(token.start, value.end, value)

    def _try(self) -> Node:
        start = self._next()
        body = self._body("try")
        error = handler = cleanup = None
        if self._token.kind == "name" and self._token.value == "except":
            error, handler = self._except()
        if self._take("catch"):
            if self._take("("):
                error = self._name("a name for the error")
                self._expect(")", "to close `catch (…`")
            handler = self._body("catch (e)")
        if self._take("finally"):
            cleanup = self._body("finally")
        if handler is None and cleanup is None:
            self._report_token(
                "F001", "`try` without `catch` or `finally`", start, help="add catch (e) { … }"
            )
        return nodes.Try(start.start, self._last.end, body, error, handler, cleanup)

    def _except(self) -> tuple[nodes.Name | None, Block]:
        """Refuses `except …`, and reads it as the `catch` that it means."""
        token, name = self._next(), None
        self._report_token(
            "F010", "there is no `except` here", token, help=FOREIGN_STATEMENTS["except"][1]
        )
        while not self._at("{") and not self._token.line_start and not self._at_end():
            last = self._next()
            name = last if last.kind == "name" else name
        if not self._at("{"):
            raise Recover
        return nodes.Name(name.start, name.end, str(name.value)) if name else None, self._block()

    def _function_statement(self) -> NoReturn:
        self._function(self._next())

    _STATEMENTS: dict[str, Callable[[StatementParser], Node]] = {
        "let": _let,
        "const": _let,
        "if": _if,
        "for": _for,
        "while": _while,
        "break": _jump,
        "continue": _jump,
        "return": _return,
        "throw": _throw,
        "try": _try,
        "function": _function_statement,
    }
