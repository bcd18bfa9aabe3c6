"""The grammar of values: operators by precedence, what may follow a value, and what begins one.

It accepts a little more than the language has (an `await` anywhere, an operation anywhere), so that
the rules can say what to write instead.
"""

from __future__ import annotations

from abc import abstractmethod

from rhythm.ir.operations import ALIASES
from rhythm.lang.flow import nodes
from rhythm.lang.flow.grammar.cursor import Recover, shown
from rhythm.lang.flow.grammar.refusals import FOREIGN_FIRST, RefusingCursor
from rhythm.lang.flow.nodes import Block, Broken, Node
from rhythm.lang.flow.other_languages import FOREIGN_PREFIXES, METHODS
from rhythm.lang.flow.tokens import Token
from rhythm.limits import INT_MAX

PRECEDENCE = {
    "??": 1, "||": 2, "&&": 3, "==": 4, "!=": 4, "===": 4, "!==": 4,
    "<": 5, "<=": 5, ">": 5, ">=": 5, "in": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}  # fmt: skip
COMPARISONS = frozenset({4, 5})
CONSTANTS = {"true": True, "false": False, "null": None}


class ExpressionParser(RefusingCursor):
    """Parses expressions."""

    def _expression(self) -> Node:
        self._deeper()
        value = self._binary()
        if self._at("?"):
            self.roles.ternary.add(self.i)
            self._next()
            yes = self._expression()
            if self._at(":"):
                self.roles.ternary.add(self.i)
            self._expect(":", "and the other value of `? :`")
            no = self._expression()
            value = nodes.Conditional(value.start, no.end, value, yes, no)
        self.depth -= 1
        return value

    def _deeper(self) -> None:
        self.depth += 1
        # Twice the limit, because an `await`, a `? :` and a bracket all count here.
        if self.depth > 2 * self.limits.nesting:
            self._fail(
                "F006",
                f"nested more than {self.limits.nesting} deep",
                self._token,
                help="name the inner parts with `let`",
            )

    def _binary(self) -> Node:
        """Parses operators by precedence, with explicit stacks: long chains cost no recursion."""
        operands, operators = [self._unary()], list[Token]()
        while precedence := self._at_operator():
            token = self._next()
            while operators and PRECEDENCE[str(operators[-1].value)] >= precedence:
                self._reduce(operands, operators)
            operators.append(token)
            operands.append(self._unary())
        while operators:
            self._reduce(operands, operators)
        return operands[0]

    def _at_operator(self) -> int:
        if self._token.value in FOREIGN_FIRST:
            self._replace_operator(self._token)
        token = self._token
        if token.kind == "punctuation" or (token.kind == "keyword" and token.value == "in"):
            return PRECEDENCE.get(str(token.value), 0)
        return 0

    def _reduce(self, operands: list[Node], operators: list[Token]) -> None:
        token, right, left = operators.pop(), operands.pop(), operands.pop()
        op, precedence = str(token.value), PRECEDENCE[str(token.value)]
        if precedence <= 3:
            return operands.append(nodes.Logic(left.start, right.end, op, left, right))
        if (
            precedence in COMPARISONS
            and isinstance(left, nodes.Binary)
            and id(left) not in self.wrapped
            and PRECEDENCE[left.op] == precedence
        ):
            self._report_token(
                "F034",
                "comparisons do not chain",
                token,
                help="write a < b && b < c, or put the first one in parentheses",
            )
        operands.append(nodes.Binary(left.start, right.end, op, left, right, token.start))

    def _unary(self) -> Node:
        signs: list[Token] = []
        while self._at_sign():
            if self._token.value in ("++", "--", "~"):
                self._foreign_operator()
            if self._token.value == "+":
                self._report_token(
                    "F007",
                    "there is no `+` sign",
                    self._token,
                    help="leave it out; float(text) makes a number of a text",
                )
            self.roles.signs.add(self.i)
            signs.append(self._next())
            if len(signs) > self.limits.nesting:
                self._fail("F006", "too many signs", self._token, help="one is enough")
        if self._at("await"):
            value = self._await()
        else:
            value = self._negative_literal(signs) or self._postfix(self._primary())
        for sign in reversed(signs):
            if sign.value != "+":
                value = nodes.Unary(sign.start, value.end, str(sign.value), value)
        return value

    def _at_sign(self) -> bool:
        token, following = self._token, self._peek(1)
        starts_value = following.kind == "name" or following.value in ("(", "true", "false", "null")
        if (
            token.value == "not"
            and token.kind == "name"
            and starts_value
            and not following.line_start
        ):
            self._report_token("F007", "`not` is written `!`", token, help="write !(condition)")
            token.kind, token.value = "punctuation", "!"
        return token.kind == "punctuation" and token.value in ("-", "!", "+", "++", "--", "~")

    def _negative_literal(self, signs: list[Token]) -> Node | None:
        token = self._token
        if token.kind != "number":
            return None
        if signs and signs[-1].value == "-" and not self._peek(1).means("."):
            start = signs.pop().start
            self._next()
            return self._postfix(nodes.Literal(start, token.end, -token.value))  # type: ignore[operator]  # a number's value
        if isinstance(token.value, int) and token.value > INT_MAX:
            self._report_token(
                "F004", "an integer over 64 bits", token, help="keep numbers of this size as text"
            )
        return None

    def _await(self) -> Node:
        token = self._next()
        self._deeper()
        value = self._unary()
        self.depth -= 1
        return nodes.Await(token.start, value.end, value)

    def _postfix(self, value: Node) -> Node:
        while True:
            token = self._token
            if token.kind != "punctuation":
                return value
            if token.value in (".", "?."):
                value = self._member(value)
            elif token.value == "[" and not token.line_start:
                value = self._index(value)
            elif token.value == "(" and not token.line_start:
                value = self._method_call(value)
            elif token.value == "=>":
                self._lambda(value.start)
            elif token.value in ("++", "--") and not token.line_start:
                op = "+=" if token.value == "++" else "-="
                self._report_token(
                    "F007",
                    f"there is no `{token.value}`",
                    token,
                    help=f"write {self._text(value)} {op} 1",
                )
                self._next()
                return Broken(value.start, token.end)
            else:
                return value

    def _index(self, target: Node) -> Node:
        opening, start = self._next(), self.i
        index = None if self._at_colon() else self._expression()
        if index is None or self._at_colon():
            self._refuse_slice(target, opening, self.closer.get(start - 1, self.i))
            return Broken(target.start, self._last.end)
        self._expect("]", "to close the index")
        return nodes.Index(target.start, self._last.end, target, index)

    def _at_colon(self) -> bool:
        return self._at(":") or self._at("::")

    def _member(self, target: Node) -> Node:
        mark = self._next()
        optional = mark.value == "?."
        if optional and self._take("["):
            index = self._expression()
            self._expect("]", "to close the index")
            return nodes.Index(target.start, self._last.end, target, index, True)
        name = self._token
        if name.kind not in ("name", "keyword"):
            self._fail(
                "F001",
                f"expected a property's name after `{mark.value}`",
                name,
                help='a key that is not a word is written in brackets: x["key"]',
            )
        self._next()
        return nodes.Member(target.start, name.end, target, str(name.value), name.start, optional)

    def _method_call(self, target: Node) -> Node:
        if isinstance(target, nodes.Member) and isinstance(target.target, nodes.Name):
            dotted = f"{target.target.name}.{target.name}"
            if dotted in ALIASES and not target.optional:
                args = self._arguments()
                return nodes.Call(target.start, self._last.end, ALIASES[dotted], args, target.end)
            if target.target.name == "py" and not target.optional:
                args = self._arguments()
                return nodes.Call(target.start, self._last.end, dotted, args, target.end)
        if (
            isinstance(target, nodes.Member)
            and target.name in ("map", "filter")
            and self._refuse_transformation(target)
        ):
            return Broken(target.start, self._last.end)
        args_start = self._token
        self._arguments()
        if isinstance(target, nodes.Member):
            instead = METHODS.get(target.name)
            self.problems.report(
                "F011",
                f"values have no methods: `.{target.name}()`",
                target.name_start,
                target.end,
                help=f"write {instead}"
                if instead
                else (
                    "the builtins are functions: len(x), upper(text); anything else belongs "
                    "in a task"
                ),
            )
        elif not isinstance(target, Broken):
            self._report_token(
                "F001",
                "only a function's name can be called",
                args_start,
                help="a list is indexed with [ ]",
            )
        return Broken(target.start, self._last.end)

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(", "to open the arguments")
        return tuple(self._sequence(")", self._argument))

    def _argument(self) -> Node:
        token = self._token
        if self._take("..."):
            self._report_token("F001", "arguments cannot be spread", token, help="pass a list")
        value = self._expression()
        if self._at("="):
            self._fail(
                "F001",
                "arguments have no names",
                self._token,
                help='pass an object: task("name", { key: value })',
            )
        return value

    def _primary(self) -> Node:
        token = self._token
        if token.kind == "number" or token.kind == "text":
            self._next()
            return nodes.Literal(token.start, token.end, token.value)
        if token.kind == "template":
            return self._template()
        if token.kind == "name":
            return self._word()
        if token.kind == "keyword":
            return self._keyword()
        if token.means("("):
            return self._parenthesised()
        if token.means("["):
            return self._list()
        if token.means("{"):
            return self._object()
        self._no_expression(token)

    def _word(self) -> Node:
        token = self._next()
        following = self._token
        if following.means("=>") or (
            token.value == "lambda" and following.kind == "name" and not following.line_start
        ):
            self._lambda(token.start)
        if following.means("(") and not following.line_start:
            args = self._arguments()
            name = ALIASES.get(str(token.value), str(token.value))
            return nodes.Call(token.start, self._last.end, name, args, token.end)
        if token.value == "branch" and following.means("{"):
            body = self._block()
            return nodes.BranchBlock(token.start, body.end, body)
        if (
            token.value in FOREIGN_PREFIXES
            and following.kind in ("name", "text", "number")
            and not following.line_start
        ):
            self._fail(
                "F010",
                f"there is no `{token.value}` here",
                token,
                help=FOREIGN_PREFIXES[str(token.value)],
            )
        return nodes.Name(token.start, token.end, str(token.value))

    def _keyword(self) -> Node:
        token = self._token
        if token.value in CONSTANTS:
            self._next()
            return nodes.Literal(token.start, token.end, CONSTANTS[str(token.value)])
        if token.value in ("function", "async"):
            self._lambda(token.start)
        self._fail(
            "F001",
            f"expected a value, not `{token.value}`",
            token,
            help=f"`{token.value}` is a word of the language; it cannot be a variable",
        )

    def _parenthesised(self) -> Node:
        opening = self._token
        closing = self.closer.get(self.i)
        if closing is not None and self.tokens[closing + 1].means("=>"):
            self._lambda(opening.start)
        self._next()
        value = self._expression()
        self._expect(")", "to close the parenthesis")
        self.wrapped[id(value)] = value
        return value

    def _list(self) -> Node:
        opening = self._next()
        if not self._at("]"):
            first = self._item()
            if self._at("for"):
                if isinstance(first, nodes.Spread):
                    self.problems.about(
                        "F001",
                        "the element of a comprehension cannot be spread",
                        first,
                        help="write flatten([xs for xs in lists])",
                    )
                return self._comprehension(opening, first)
            if not self._take(",") and not self._at("]"):
                self._missing_comma("]")
            items = [first, *self._sequence("]", self._item)]
        else:
            self._next()
            items = []
        return nodes.ListLiteral(opening.start, self._last.end, tuple(items))

    def _item(self) -> Node:
        start = self._token
        if self._take("..."):
            value = self._expression()
            return nodes.Spread(start.start, value.end, value)
        return self._expression()

    def _comprehension(self, opening: Token, element: Node) -> Node:
        self._next()
        names = tuple(self._loop_names())
        if not (self._take("in") or self._take("of")):
            self._fail(
                "F001",
                f"expected `in`, not {shown(self._token)}",
                self._token,
                help="write [… for x in xs if condition]",
            )
        source = self._expression()
        condition = self._expression() if self._take("if") else None
        if self._at("for") or self._at("if"):
            self._fail(
                "F001",
                "a comprehension has one `for` and at most one `if`",
                self._token,
                help="use a `for` loop, or flatten([…])",
            )
        self._expect("]", "to close the comprehension")
        return nodes.Comprehension(opening.start, self._last.end, element, names, source, condition)

    def _loop_names(self) -> list[nodes.Name]:
        if self._at("[") or self._at("{"):
            return self._bracketed_names()
        names = [self._name("a variable's name")]
        if self._take(","):
            names.append(self._name("a second variable's name"))
        return names

    def _bracketed_names(self) -> list[nodes.Name]:
        """Refuses a pattern as loop variable, and returns its names.

        The names are declared all the same, so that their uses are not reported.
        """
        opening, closing = self._token, self.closer.get(self.i, self.i)
        self._report_token(
            "F033",
            "a loop has one variable, or two with a comma",
            opening,
            help="write for (k, v in object) { … }",
        )
        names = [
            nodes.Name(t.start, t.end, str(t.value))
            for t in self.tokens[self.i : closing]
            if t.kind == "name"
        ]
        if not names:
            raise Recover
        self.i = closing + 1
        return names

    def _object(self) -> Node:
        opening = self._next()
        entries = self._sequence("}", self._entry)
        return nodes.ObjectLiteral(opening.start, self._last.end, tuple(entries))

    def _entry(self) -> Node:
        start = self._token
        if self._take("..."):
            value = self._expression()
            return nodes.Spread(start.start, value.end, value)
        if self._at("["):
            self._fail(
                "F001",
                "a key is written as a word or text",
                start,
                help="set a computed key afterwards: x[key] = value",
            )
        following = self._peek(1)
        if not following.means(":") and start.kind == "name":
            return self._shorthand()
        key = self._expect_key()
        if self._at("("):
            self._lambda(start.start)
        self._expect(":", "after the key")
        value = self._expression()
        return nodes.Entry(start.start, value.end, key, value)

    def _shorthand(self) -> Node:
        start = self._token
        if self._peek(1).means("("):
            closing = self.closer.get(self.i + 1)
            if closing is not None and self.tokens[closing + 1].means("{"):
                self._lambda(start.start)
            self._fail(
                "F001", "a value needs a key", start, help=f"write {{ key: {start.value}(…) }}"
            )
        value = self._postfix(nodes.Name(start.start, self._next().end, str(start.value)))
        if isinstance(value, nodes.Name | nodes.Member):
            return nodes.Entry(value.start, value.end, value.name, value, True)
        if isinstance(value, Broken):
            return value
        self.problems.about("F001", "a value needs a key", value, help="write { key: value }")
        return Broken(value.start, value.end)

    def _template(self) -> Node:
        start = self._next()
        parts: list[Node] = []
        while self._token.kind != "endtemplate" and not self._at_end():
            token = self._next()
            if token.kind == "part":
                parts.append(nodes.Literal(token.start, token.end, token.value))
            else:
                parts.append(self._expression())
                self._expect("}", "to close `${`")
        if not self._at_end():
            self._next()
        return nodes.Template(start.start, self._last.end, tuple(parts))

    @abstractmethod
    def _block(self) -> Block:
        """Parses the statements of a `branch`."""
