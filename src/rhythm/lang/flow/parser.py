"""Tokens to syntax tree, by recursive descent with recovery.

It accepts a little more than the language has (an `await` anywhere, an operation anywhere, several spellings from other
languages) so that the checker, or the parser itself, can say what to write instead. After a problem it skips to the next
statement; a `Broken` node keeps later passes quiet about what was already reported.

Besides the tree it leaves `Roles`: which tokens are block braces, signs, parts of `?:`, and where statements begin. The
formatter needs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import NoReturn, TypeVar

from rhythm.ir.operations import ALIASES, CALLABLE
from rhythm.lang.flow import nodes
from rhythm.lang.flow.elsewhere import (
    FOREIGN_COMPREHENSIONS,
    FOREIGN_OPERATORS,
    FOREIGN_PREFIXES,
    FOREIGN_SPELLINGS,
    FOREIGN_STATEMENTS,
    FUNCTIONS_FROM_ELSEWHERE,
    METHODS,
    PARAMETERS,
)
from rhythm.lang.flow.nodes import Block, Broken, Node
from rhythm.lang.flow.problems import Problems
from rhythm.lang.flow.tokens import ASSIGNMENTS, RESERVED, Token
from rhythm.lang.source import nearest
from rhythm.limits import INT_MAX, Limits
from rhythm.record import Record

PRECEDENCE = {
    "??": 1, "||": 2, "&&": 3, "==": 4, "!=": 4, "===": 4, "!==": 4,
    "<": 5, "<=": 5, ">": 5, ">=": 5, "in": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}  # fmt: skip
COMPARISONS = frozenset({4, 5})
BRACKETS = frozenset({"(", "[", "{", "${", ")", "]", "}"})
EXPRESSION_HEIGHT = 150  # so that passes and interpreter may recurse over an expression within Python's own limit

FOREIGN_FIRST = frozenset(word.split()[0] for word in FOREIGN_SPELLINGS)
FOLLOWERS = {"else": "if", "catch": "try", "finally": "try"}
STATEMENT_WORDS = ("let", "const", "if", "for", "while", "break", "continue", "return", "throw", "try", "await", "workflow", *FOLLOWERS)

T = TypeVar("T")


class Roles(Record):
    """What the formatter must know of a token that the token does not say: sets of token numbers."""

    blocks: set[int]
    signs: set[int]
    ternary: set[int]
    starts: set[int]


class _Recover(Exception):
    """A problem was reported; go on with the next statement."""


class Parser:
    def __init__(self, text: str, tokens: list[Token], problems: Problems, limits: Limits, name: str) -> None:
        self.text = text
        self.tokens = tokens
        self.problems = problems
        self.limits = limits
        self.name = name
        self.i = 0
        self.depth = 0
        self.roles = Roles(set(), set(), set(), set())
        self.wrapped: set[int] = set()  # ids of nodes that stand in parentheses
        self.lost = False  # a header could not be read, and so its body may look like a script
        self.closer = _match_brackets(tokens)
        self.balanced = 2 * len(self.closer) == sum(token.kind == "punctuation" and token.value in BRACKETS for token in tokens)

    # the file

    def parse_file(self) -> nodes.File:
        workflows: list[nodes.Workflow] = []
        script: list[Node] = []
        annotations: tuple[nodes.Annotation, ...] = ()
        script_annotations: tuple[nodes.Annotation, ...] = ()
        while not self._at_end():
            annotations += self._annotations()
            if self._at_header():
                workflows.append(self._workflow(annotations))
                annotations = ()
            elif not self._take(";") and not self._at_end():  # a stray `;` must not part annotations from what they belong to
                if not script:
                    script_annotations, annotations = annotations, ()
                script += self._statement_or_skip()
        end = self._token.end
        if script and workflows and not self.lost:
            self._refuse_mixture(script[0], workflows)
        elif annotations and (workflows or script):
            where = "above the `workflow` line" if workflows else "to the top of the file"
            self._report("F030", "annotations stand before what they belong to", annotations[0], help=f"move it {where}")
        elif not workflows:
            body = Block(script[0].start if script else 0, end, tuple(script))
            workflows = [nodes.Workflow(0, end, self.name, True, ("ctx", "inputs"), script_annotations + annotations, body)]
        self._refuse_same_names(workflows)
        return nodes.File(0, end, tuple(workflows))

    def _refuse_mixture(self, statement: Node, workflows: list[nodes.Workflow]) -> None:
        self._report(
            "F030",
            "a file holds either workflows with a header or one script, not both",
            statement,
            "this stands outside",
            "move it into a workflow: workflow name(inputs) { … }",
            related=((workflows[0].start, workflows[0].start + 8, "this is a header"),),
        )

    def _refuse_same_names(self, workflows: list[nodes.Workflow]) -> None:
        seen: dict[str, nodes.Workflow] = {}
        for workflow in workflows:
            if first := seen.get(workflow.name):
                related = ((first.start, first.start + 8, "the first one"),)
                self.problems.report(
                    "F030",
                    f"two workflows of this file are called `{workflow.name}`",
                    workflow.start,
                    workflow.start + 8,
                    help="give this one another name",
                    related=related,
                )
            seen.setdefault(workflow.name, workflow)

    def _annotations(self) -> tuple[nodes.Annotation, ...]:
        found = []
        while self._at("@"):
            start = self._next().start
            try:
                name = self._expect_name("an annotation's name")
                args = self._arguments() if self._at("(") and not self._token.line_start else ()
                found.append(nodes.Annotation(start, self._last.end, str(name.value), args))
            except _Recover:
                self._skip_statement()
        return tuple(found)

    def _at_header(self) -> bool:
        """At `async function`, or at a `workflow` that nothing but a header can follow, even if that is not quite right."""
        i = self.i + self._at("async")
        if i > self.i and self.tokens[i].value == "function":
            return True
        if self.tokens[i].kind != "name" or self.tokens[i].value != "workflow":
            return False
        i += 1
        if self.tokens[i].kind in ("name", "text") and not self.tokens[i].line_start:
            return True
        if _is(self.tokens[i], "(") and i in self.closer:
            i = self.closer[i] + 1
            return self.tokens[i].value in ("{", ":", "->")
        return _is(self.tokens[i], "{")

    def _workflow(self, annotations: tuple[nodes.Annotation, ...]) -> nodes.Workflow:
        self.roles.starts.add(self.i)
        first = self._next()
        name = self.name
        params: tuple[str, ...] = ()
        if first.value == "async" and self._token.value == "workflow":
            self._report_token("F030", "a workflow needs no `async`", first, help="leave it out: workflow name(inputs) { … }")
            first = self._next()
        try:
            name = self._workflow_name(first)
            params = self._parameters() if self._at("(") else ()
            if first.value == "async" and not params:
                params = ("ctx", "inputs")  # the newest seeds' `main` takes none and sees both
            if not self._at("{"):
                self._fail("F001", "a workflow needs a block", self._token, help=f"write workflow {name}(inputs) {{ … }}")
            body = self._block()
        except _Recover:
            self.lost = True
            self._skip_statement()
            body = Block(first.end, first.end, ())
        return nodes.Workflow(first.start, self._last.end, name, False, params, annotations, body)

    def _workflow_name(self, first: Token) -> str:
        if first.value == "async":
            function = self._next()
            if self._token.kind == "name":
                if self._token.value != "main":
                    self._function(function)
                self._next()
            return self.name
        if self._token.kind == "text":
            help = f"write workflow {self._token.value}(inputs) {{ … }}"
            self._report_token("F030", "a workflow's name is a word, without quotes", self._token, help=help)
        return str(self._next().value) if self._token.kind in ("name", "text") else self.name

    def _parameters(self) -> tuple[str, ...]:
        opening = self._next()
        found: list[str] = []
        while not self._at(")") and not self._at_end():
            found.append(str(self._expect_name("a parameter").value))
            self._skip_type(opening, ":", (",", ")"))
            if not self._take(","):
                break
        self._expect(")", "to close the parameters")
        end = self._last.end
        self._skip_type(opening, "->", ("{",))
        if tuple(found) in ((), ("inputs",), ("ctx", "inputs")):
            return tuple(found)
        meant = [PARAMETERS.get(name) or nearest(name, ("ctx", "inputs")) or name for name in found]
        own = [name for name in meant if name not in ("ctx", "inputs")]
        apart = ("write (inputs), and take it apart inside:", f"let {{ {', '.join(own)} }} = inputs")
        help = apart if own else "write (ctx, inputs)" if "ctx" in meant else "write (inputs)"
        self.problems.report("F030", "a workflow takes no parameters, `inputs`, or `ctx, inputs`", opening.start, end, help=help)
        return ("ctx", "inputs", *(name for name in found if name not in ("ctx", "inputs")))

    def _skip_type(self, opening: Token, mark: str, ends: tuple[str, ...]) -> None:
        """Refuses the type of a parameter or of the result; all of a header's in one place, and so in one message."""
        if not self._at(mark):
            return
        self.problems.report("F030", "a header has no types", opening.start, self._token.end, help="write workflow name(inputs) { … }")
        while not self._token.line_start and not self._at_end() and not any(self._at(end) for end in ends):
            self._next()

    # statements

    def _block(self, why: str = "to open the block") -> Block:
        opening = self._expect("{", why)
        self.roles.blocks.add(self.i - 1)
        statements: list[Node] = []
        while not self._at("}") and not self._at_end():
            statements += self._statement_or_skip()
        if self._at_end():
            self.problems.report("F002", "this block never ends", opening.start, opening.end, "opened here", "close it with `}`")
            return Block(opening.start, self._token.end, tuple(statements))
        self.roles.blocks.add(self.i)
        return Block(opening.start, self._next().end, tuple(statements))

    def _statement_or_skip(self) -> list[Node]:
        """The next statement, or none if it could not be read."""
        start, depth = self.i, self.depth
        if self._take(";"):
            return []
        self.roles.starts.add(self.i)
        try:
            statement = self._statement()
            self._end_of_statement()
            return [statement]
        except _Recover:
            self.depth = depth
            if self.i == start:
                self._next()
            self._leave_brackets(start)
            self._skip_statement()
            return [self._remains(start)]

    def _remains(self, start: int) -> Node:
        """What is left of a statement that could not be read: one that declares a name still does, so that its uses stay quiet."""
        first, end = self.tokens[start], self._last.end
        declares = first.kind == "keyword" and first.value in ("let", "const")
        name = self.tokens[start + 1] if declares else first
        broken = Broken(first.start, end)
        if name.kind != "name" or not _is(self.tokens[start + 1 + declares], "="):
            return broken
        target = nodes.Name(name.start, name.end, str(name.value))
        return nodes.Let(first.start, end, False, target, broken) if declares else nodes.Assign(first.start, end, target, "=", broken)

    def _leave_brackets(self, start: int) -> None:
        """To the end of the outermost bracket that is open since `start`, if brackets can be trusted: all of the file's have a partner."""
        if self.balanced:
            self.i = max([self.i, *(self.closer[i] + 1 for i in range(start, self.i) if i in self.closer)])

    def _skip_statement(self) -> None:
        """To the start of the next statement: a new line, `;` or the end of the block, whatever brackets are between."""
        while not self._at_end() and not self._token.line_start and not self._at(";") and not self._at("}"):
            if self._token.value in ("(", "[", "{") and self.i in self.closer:
                self.i = self.closer[self.i]
            self._next()

    def _end_of_statement(self) -> None:
        token = self._token
        if self._take(";") or token.line_start or self._at("}") or self._at_end():
            return
        self._refuse_foreign()
        if self._at(")") or self._at("]"):
            self._fail("F001", f"{_shown(token)} closes nothing", token, help="delete it, or open what it closes")
        if _is(self._last, "}") and token.kind == "name":
            self._refuse_misspelt(token, FOLLOWERS)
        if self._last.kind == "name":
            self._refuse_misspelt(self._last, RESERVED)
        self._fail(
            "F001",
            f"{_shown(token)} does not fit here",
            token,
            "the statement was complete before this",
            "begin a new line, or write `;` between two statements",
        )

    def _statement(self) -> Node:
        token = self._token
        if token.kind == "keyword" and (parse := self._STATEMENTS.get(str(token.value))):
            return parse(self)
        if token.value in FOREIGN_STATEMENTS and token.kind == "name" and self._foreign_statement(token):
            return self._statement()
        if self._at("async") and (self._peek(1).value in FOREIGN_STATEMENTS or _is(self._peek(1), "for")):
            return self._without_async()
        if token.kind == "keyword" and (first := FOLLOWERS.get(str(token.value))):
            self._fail("F001", f"`{token.value}` without `{first}`", token, help=f"it follows the closing brace of `{first}`")
        if self._at("{"):
            self._fail(
                "F001",
                "a statement cannot begin with `{`",
                token,
                help="blocks follow if, for, while, try and branch; an object needs a name: let x = { … }",
            )
        if self._at_header():
            self._fail(
                "F030",
                "a workflow cannot be defined inside another",
                token,
                help='move it to the top of the file and start it with workflow("name")',
            )
        if self._at("@"):
            self._fail("F030", "annotations stand before the workflow, not inside it", token, help="move it above the `workflow` line")
        if token.kind == "name" and self._at_keyword_place(token):
            self._refuse_misspelt(token, STATEMENT_WORDS)
        value = self._expression()
        if self._token.kind == "punctuation" and self._token.value in ASSIGNMENTS:
            return self._assignment(value)
        return nodes.ExpressionStatement(token.start, value.end, value)

    def _without_async(self) -> Node:
        token = self._next()
        if self._at("for"):
            self._report_token("F010", "there is no `async` loop here", token, help="leave `async` out")
        return self._statement()

    def _at_keyword_place(self, token: Token) -> bool:
        """At `retrun x`, `fro (x in xs) {`, `tyr {`: only a word of the language stands before a value, a head or a block."""
        following, i = self._peek(1), self.i + 1
        if following.line_start or token.value in CALLABLE or token.value in FOREIGN_PREFIXES or following.value in FOREIGN_FIRST:
            return False
        if _is(following, "("):
            i = self.closer.get(i, i) + 1
        value = following.kind in ("name", "number", "text") or following.value in ("true", "false", "null", "await")
        block = _is(self.tokens[i], "{") and not self.tokens[i].line_start and token.value != "branch"
        return value or block

    def _refuse_misspelt(self, token: Token, words: Iterable[str]) -> None:
        turned = next((word for word in words if sorted(word) == sorted(str(token.value))), None)
        if near := turned or nearest(str(token.value), words, 0.7):
            self._fail("F001", f"`{token.value}` is not a word of the language", token, help=f"did you mean `{near}`?")

    def _assignment(self, target: Node) -> Node:
        op = self._next()
        if isinstance(target, nodes.ListLiteral) and op.value == "=":
            target = nodes.ListPattern(target.start, target.end, tuple(self._pattern_name(item) for item in target.items))
        elif not isinstance(target, nodes.Name | nodes.Member | nodes.Index | Broken) or id(target) in self.wrapped:
            self._report(
                "F033",
                "only a variable, a property or an element can be assigned to",
                target,
                "this is a value",
                "to compare, write `==`" if op.value == "=" else "give the value a name first: let x = …",
            )
            target = Broken(target.start, target.end)
        value = self._expression()
        if self._at("="):
            self._fail("F001", "an assignment has no value of its own", self._token, help="write two statements")
        return nodes.Assign(target.start, value.end, target, str(op.value), value)

    def _pattern_name(self, item: Node) -> nodes.Name:
        if isinstance(item, nodes.Name):
            return item
        self._report(
            "F033", "a list is taken apart into plain names", item, help="write [a, b] = …, and take inner values apart on the next line"
        )
        return nodes.Name(item.start, item.end, "_")

    def _let(self) -> Node:
        keyword = self._next()
        target = self._let_target()
        if self._at(":"):
            self._fail("F001", "a variable has no type", self._token, help=f"write {keyword.value} name = value")
        value = self._expression() if self._take("=") else None
        if value is None and (keyword.value == "const" or not isinstance(target, nodes.Name)):
            self._fail("F001", "this declaration needs a value", self._last, help=f"write {keyword.value} … = value")
        if self._at(","):
            self._fail("F001", "one declaration a statement", self._token, help=f"begin a new line with `{keyword.value}`")
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
        """Refuses a pattern inside another; its names are declared all the same, so that their uses stay quiet."""
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
                "F033", "the rest of a list cannot be taken in a pattern", self._token, help="use slice(list, start) on the next line"
            )
        if self._at("[") or self._at("{"):
            return self._inner_pattern("…")
        return (self._pattern_name(self._expression()),)

    def _field(self) -> tuple[nodes.Field, ...]:
        start = self._token
        if self._at("..."):
            self._fail(
                "F033", "the rest of an object cannot be taken in a pattern", start, help="use omit(object, [keys]) on the next line"
            )
        key = self._expect_key()
        at_key = nodes.Name(start.start, start.end, key)
        named = self._take(":")
        if named and (self._at("[") or self._at("{")):
            return tuple(nodes.Field(name.start, name.end, name.name, name, None) for name in self._inner_pattern(key))
        name = self._name("a variable's name") if named else at_key
        if start.kind != "name" and name is at_key:
            self._fail("F033", f"`{key}` cannot be a variable's name", start, help=f"give it one: {{ {self._source_key(key)}: name }}")
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
        """Steps over `else`; `elif` is refused and taken for `else if`."""
        token = self._token
        if token.kind == "name" and token.value in ("elif", "elseif"):
            self._report_token("F010", f"there is no `{token.value}` here", token, help=FOREIGN_STATEMENTS[token.value][1])
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
                "F001", f"the condition of `{keyword}` stands in parentheses", self._token, help=f"write {keyword} (condition) {{ … }}"
            )
            return self._or_block(self._expression)

        def parenthesised() -> Node:
            self._next()
            value = self._expression()
            if self._at("="):
                self._fail("F001", "a condition cannot assign", self._token, help="to compare, write `==`")
            self._expect(")", f"to close the condition of `{keyword}`")
            return value

        return self._or_block(parenthesised)

    def _or_block(self, parse: Callable[[], Node]) -> Node:
        """What `parse` gives; after a problem, go on at the `{` of the same line so that the block is still read as one."""
        opening = self.i
        try:
            return parse()
        except _Recover:
            if self.balanced and opening in self.closer:
                self.i = max(self.i, self.closer[opening] + 1)
            start = self._token
            while not self._at_end() and not self._at("{") and not (self._token.line_start and self._token is not start):
                self._next()
            if not self._at("{"):
                raise
            return Broken(start.start, self._last.end)

    def _body(self, after: str) -> Block:
        if self._at("{"):
            return self._block()
        token = self._token
        if self._at(":") or self._at_end() or self._at("}"):
            self._fail("F001", f"expected a block after `{after}`", token, help=f"write {after} {{ … }}")
        self._report_token("F001", f"the body of `{after}` needs braces", token, help=f"write {after} {{ … }}")
        statement = self._statement()
        return Block(token.start, statement.end, (statement,))

    def _for(self) -> Node:
        start = self._next()
        if not self._at("("):
            self._fail("F001", "the head of `for` stands in parentheses", self._token, help="write for (x in xs) { … }")
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
                self._fail("F010", "there is no counting `for`", self._token, help=f"write for ({found[0].name} in range(n)) {{ … }}")
            if not (self._take("in") or self._take("of")):
                self._fail("F001", f"expected `in`, not {_shown(self._token)}", self._token, help="write for (x in xs) { … }")
            value = self._expression()
            self._expect(")", "to close the head of `for`")
            return value

        source = self._or_block(head)
        return tuple(found) or (nodes.Name(source.start, source.end, "_"),), source

    def _loop_names(self) -> list[nodes.Name]:
        if self._at("[") or self._at("{"):
            return self._bracketed_names()
        names = [self._name("a variable's name")]
        if self._take(","):
            names.append(self._name("a second variable's name"))
        return names

    def _bracketed_names(self) -> list[nodes.Name]:
        """Refuses the pattern, and declares its names all the same so that their uses stay quiet."""
        opening, closing = self._token, self.closer.get(self.i, self.i)
        self._report_token("F033", "a loop has one variable, or two with a comma", opening, help="write for (k, v in object) { … }")
        names = [nodes.Name(t.start, t.end, str(t.value)) for t in self.tokens[self.i : closing] if t.kind == "name"]
        if not names:
            raise _Recover
        self.i = closing + 1
        return names

    def _jump(self) -> Node:
        token = self._next()
        if self._token.kind == "name" and not self._token.line_start:
            self._fail("F010", "loops have no labels", self._token, help="leave the inner loop, then test a variable in the outer one")
        return (nodes.Break if token.value == "break" else nodes.Continue)(token.start, token.end)

    def _return(self) -> Node:
        token = self._next()
        if self._token.line_start or self._at(";") or self._at("}") or self._at_end():
            return nodes.Return(token.start, token.end, None)
        value = self._expression()
        return nodes.Return(token.start, value.end, value)

    def _throw(self) -> Node:
        token = self._next()
        if self._token.line_start or self._at(";") or self._at("}") or self._at_end():
            self._fail(
                "F001", "`throw` needs a value on the same line", token, help='write throw "message", or throw { code, message, data }'
            )
        if (help := self._instead_of_class(0)) and (self._token.value == "new" or _is(self._peek(1), "(")):
            self._fail("F010", "errors are plain values", self._token, help=help)
        value = self._expression()
        return nodes.Throw(token.start, value.end, value)

    def _instead_of_class(self, ahead: int) -> str:
        """How to throw what is written as `Error("x")` or `new Error("x")`; empty if the token there begins neither."""
        token = self._peek(ahead + (self._peek(ahead).value == "new"))
        name = str(token.value)
        if token.kind != "name" or not name[0].isupper():
            return ""
        return f'write throw "message", or throw {{ code: "{"Declined" if name == "Error" else name}", message: "…" }}'

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
            self._report_token("F001", "`try` without `catch` or `finally`", start, help="add catch (e) { … }")
        return nodes.Try(start.start, self._last.end, body, error, handler, cleanup)

    def _except(self) -> tuple[nodes.Name | None, Block]:
        """Refuses `except …`, and reads it as the `catch` it is."""
        token, name = self._next(), None
        self._report_token("F010", "there is no `except` here", token, help=FOREIGN_STATEMENTS["except"][1])
        while not self._at("{") and not self._token.line_start and not self._at_end():
            last = self._next()
            name = last if last.kind == "name" else name
        if not self._at("{"):
            raise _Recover
        return nodes.Name(name.start, name.end, str(name.value)) if name else None, self._block()

    def _function_statement(self) -> NoReturn:
        self._function(self._next())

    def _function(self, token: Token) -> NoReturn:
        name = self._token.value if self._token.kind == "name" else "helper"
        help = (
            "write the steps where they are used, or give them a workflow of their own:",
            f'workflow {name}(inputs) {{ … }}, started by: await workflow("{name}", {{ … }})',
            f'plain computation belongs in a Python task: await task("{name}", {{ … }})',
        )
        self._fail("F009", "workflows have no functions: there is no call stack to save", token, help=help)

    def _foreign_statement(self, token: Token) -> bool:
        """Refuses a statement of another language; true if the token now is the word that should have been written."""
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
            raise _Recover
        token.kind, token.value = "keyword", replacement
        return True

    _STATEMENTS: dict[str, Callable[[Parser], Node]] = {
        "let": _let, "const": _let, "if": _if, "for": _for, "while": _while, "break": _jump, "continue": _jump,
        "return": _return, "throw": _throw, "try": _try, "function": _function_statement,
    }  # fmt: skip

    # expressions

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
        if self.depth > 2 * self.limits.nesting:  # twice: an `await`, a `? :` and a bracket all count here
            self._fail("F006", f"nested more than {self.limits.nesting} deep", self._token, help="name the inner parts with `let`")

    def _binary(self) -> Node:
        """Operator precedence with explicit stacks, so that depth costs no recursion."""
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

    def _replace_operator(self, token: Token) -> None:
        """Refuses `===`, `and`, `is not` and their like, and leaves the parser at the operator that is meant."""
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
            self._report_token("F034", "comparisons do not chain", token, help="write a < b && b < c, or put the first one in parentheses")
        operands.append(nodes.Binary(left.start, right.end, op, left, right, token.start))

    def _unary(self) -> Node:
        signs: list[Token] = []
        while self._at_sign():
            if self._token.value in ("++", "--", "~"):
                self._foreign_operator()
            if self._token.value == "+":
                self._report_token("F007", "there is no `+` sign", self._token, help="leave it out; float(text) makes a number of a text")
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
        if token.value == "not" and token.kind == "name" and starts_value and not following.line_start:
            self._report_token("F007", "`not` is written `!`", token, help="write !(condition)")
            token.kind, token.value = "punctuation", "!"
        return token.kind == "punctuation" and token.value in ("-", "!", "+", "++", "--", "~")

    def _negative_literal(self, signs: list[Token]) -> Node | None:
        token = self._token
        if token.kind != "number":
            return None
        if signs and signs[-1].value == "-" and not _is(self._peek(1), "."):
            start = signs.pop().start
            self._next()
            return self._postfix(nodes.Literal(start, token.end, -token.value))  # type: ignore[operator]  # a number's value
        if isinstance(token.value, int) and token.value > INT_MAX:
            self._report_token("F004", "an integer over 64 bits", token, help="keep numbers of this size as text")
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
                self._report_token("F007", f"there is no `{token.value}`", token, help=f"write {self._text(value)} {op} 1")
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

    def _refuse_slice(self, target: Node, opening: Token, closing: int) -> None:
        xs, inside = self._text(target), self.text[opening.end : self.tokens[closing].start].split(":")
        bounds = ", ".join(part.strip() or "0" for part in inside if part.strip() or part is inside[0])
        help = f"write slice({xs}, {bounds})" if len(inside) == 2 else f"write slice({xs}, start, end), or reverse({xs})"
        self._report_token("F007", "a part of a list or text is taken with `slice`", self._token, help=help)
        self.i = max(self.i, closing)
        self._expect("]", "to close the index")

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
        if isinstance(target, nodes.Member) and target.name in ("map", "filter") and self._refuse_transformation(target):
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
                help=f"write {instead}" if instead else "the builtins are functions: len(x), upper(text); anything else belongs in a task",
            )
        elif not isinstance(target, Broken):
            self._report_token("F001", "only a function's name can be called", args_start, help="a list is indexed with [ ]")
        return Broken(target.start, self._last.end)

    def _refuse_transformation(self, target: nodes.Member) -> bool:
        """`xs.map(x => f)` and `xs.filter(x => c)` are reported with the comprehension that says the same."""
        opening, closing = self.i, self.closer.get(self.i, self.i)
        arrow = next((i for i in range(opening, min(opening + 5, closing)) if _is(self.tokens[i], "=>")), closing)
        name = next((token for token in self.tokens[opening:arrow] if token.kind == "name"), None)
        if name is None or arrow + 1 >= closing or _is(self.tokens[arrow + 1], "{"):
            return False
        x, xs, body = name.value, self._text(target.target), self.text[self.tokens[arrow + 1].start : self.tokens[closing - 1].end]
        rewritten = f"[{body} for {x} in {xs}]" if target.name == "map" else f"[{x} for {x} in {xs} if {body}]"
        self.problems.report(
            "F008", "workflows have no function values: a function cannot be saved in a snapshot", name.start, self.tokens[arrow].end,
            help=f"write a comprehension: {rewritten}",
        )  # fmt: skip
        self.i = closing + 1
        return True

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(", "to open the arguments")
        return tuple(self._sequence(")", self._argument))

    def _argument(self) -> Node:
        token = self._token
        if self._take("..."):
            self._report_token("F001", "arguments cannot be spread", token, help="pass a list")
        value = self._expression()
        if self._at("="):
            self._fail("F001", "arguments have no names", self._token, help='pass an object: task("name", { key: value })')
        return value

    def _sequence(self, closing: str, parse: Callable[[], T]) -> list[T]:
        """Items with commas between them, to the closing bracket. A comma may follow the last."""
        items: list[T] = []
        while not self._at(closing):
            if self._at_end():
                opening = self.tokens[self._opening()]
                self._fail("F002", f"this {_shown(opening)} is never closed", opening, "opened here", f"close it with `{closing}`")
            items.append(parse())
            if not self._take(",") and not self._at(closing):
                self._missing_comma(closing)
        self._next()
        return items

    def _missing_comma(self, closing: str) -> NoReturn:
        token = self._token
        self._refuse_foreign(closing)
        if token.kind == "end" or _is(token, "}") or _is(token, ")") or _is(token, "]"):
            opening = self.tokens[self._opening()]
            self._fail("F002", f"this {_shown(opening)} is never closed", opening, "opened here", f"close it with `{closing}`")
        self._fail("F001", f"expected `,` or `{closing}`, not {_shown(token)}", token, help="separate the items with commas")

    def _opening(self) -> int:
        """The number of the innermost bracket that is open before the current token."""
        depth, i = 0, self.i - 1
        while i > 0:
            if self.tokens[i].kind == "punctuation" and self.tokens[i].value in (")", "]", "}"):
                depth += 1
            elif self.tokens[i].kind == "punctuation" and self.tokens[i].value in ("(", "[", "{", "${"):
                if depth == 0:
                    break
                depth -= 1
            i -= 1
        return i

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
        if _is(token, "("):
            return self._parenthesised()
        if _is(token, "["):
            return self._list()
        if _is(token, "{"):
            return self._object()
        self._no_expression(token)

    def _no_expression(self, token: Token) -> NoReturn:
        if _is(token, "/"):
            self._fail(
                "F007", "there are no regular expressions", token, help="use contains, starts_with, split or replace, or match in a task"
            )
        if _is(token, "=>"):
            self._lambda(token.start)
        if token.kind == "punctuation" and token.value in FOREIGN_OPERATORS:
            self._foreign_operator()
        if _is(token, "@"):
            self._fail("F030", "annotations stand before the workflow, not inside it", token, help="move it above the `workflow` line")
        if (_is(token, "}") or _is(token, ")") or _is(token, "]")) and self.i not in self.closer.values():
            self._fail("F001", f"{_shown(token)} closes nothing", token, help="delete it, or write what is missing before it")
        self._fail("F001", f"expected a value, not {_shown(token)}", token, help="a value is missing before it, or it is too much")

    def _word(self) -> Node:
        token = self._next()
        following = self._token
        if _is(following, "=>"):
            self._lambda(token.start)
        if token.value == "lambda" and following.kind == "name" and not following.line_start:
            self._lambda(token.start)
        if _is(following, "(") and not following.line_start:
            args = self._arguments()
            name = ALIASES.get(str(token.value), str(token.value))
            return nodes.Call(token.start, self._last.end, name, args, token.end)
        if token.value == "branch" and _is(following, "{"):
            body = self._block()
            return nodes.BranchBlock(token.start, body.end, body)
        if token.value in FOREIGN_PREFIXES and following.kind in ("name", "text", "number") and not following.line_start:
            self._fail("F010", f"there is no `{token.value}` here", token, help=FOREIGN_PREFIXES[str(token.value)])
        return nodes.Name(token.start, token.end, str(token.value))

    def _keyword(self) -> Node:
        token = self._token
        constants = {"true": True, "false": False, "null": None}
        if token.value in constants:
            self._next()
            return nodes.Literal(token.start, token.end, constants[str(token.value)])
        if token.value in ("function", "async"):
            self._lambda(token.start)
        self._fail(
            "F001",
            f"expected a value, not `{token.value}`",
            token,
            help=f"`{token.value}` is a word of the language; it cannot be a variable",
        )

    def _lambda(self, start: int) -> NoReturn:
        token = self._token
        self.problems.report(
            "F008",
            "workflows have no function values: a function cannot be saved in a snapshot",
            start,
            max(token.end, start + 1),
            help=(
                f"compute the value first and pass it as data: {self._as_data()}",
                "a list is transformed with a comprehension: [… for x in xs if condition]",
            ),
        )
        raise _Recover

    def _as_data(self) -> str:
        """`key: () => value` at the current token as `key: value`, if the value is a name or a path; else the pattern of it."""
        before, i = self.tokens[max(self.i - 2, 0) : self.i], self.i + 3
        while self.tokens[i : i + 1] and (self.tokens[i].kind == "name" or _is(self.tokens[i], ".")) and not self.tokens[i].line_start:
            i += 1
        body = "".join(str(token.value) for token in self.tokens[self.i + 3 : i])
        if self.closer.get(self.i) == self.i + 1 and body and len(before) == 2 and _is(before[1], ":"):
            return f"{before[0].value}: {body}"
        return "{ value: x }"

    def _parenthesised(self) -> Node:
        opening = self._token
        closing = self.closer.get(self.i)
        if closing is not None and _is(self.tokens[closing + 1], "=>"):
            self._lambda(opening.start)
        self._next()
        value = self._expression()
        self._expect(")", "to close the parenthesis")
        self.wrapped.add(id(value))
        return value

    def _list(self) -> Node:
        opening = self._next()
        if not self._at("]"):
            first = self._item()
            if self._at("for"):
                if isinstance(first, nodes.Spread):
                    self._report(
                        "F001", "the element of a comprehension cannot be spread", first, help="write flatten([xs for xs in lists])"
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
            self._fail("F001", f"expected `in`, not {_shown(self._token)}", self._token, help="write [… for x in xs if condition]")
        source = self._expression()
        condition = self._expression() if self._take("if") else None
        if self._at("for") or self._at("if"):
            self._fail("F001", "a comprehension has one `for` and at most one `if`", self._token, help="use a `for` loop, or flatten([…])")
        self._expect("]", "to close the comprehension")
        return nodes.Comprehension(opening.start, self._last.end, element, names, source, condition)

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
            self._fail("F001", "a key is written as a word or text", start, help="set a computed key afterwards: x[key] = value")
        following = self._peek(1)
        if not _is(following, ":") and start.kind == "name":
            return self._shorthand()
        key = self._expect_key()
        if self._at("("):
            self._lambda(start.start)
        self._expect(":", "after the key")
        value = self._expression()
        return nodes.Entry(start.start, value.end, key, value)

    def _shorthand(self) -> Node:
        start = self._token
        if _is(self._peek(1), "("):
            closing = self.closer.get(self.i + 1)
            if closing is not None and _is(self.tokens[closing + 1], "{"):
                self._lambda(start.start)
            self._fail("F001", "a value needs a key", start, help=f"write {{ key: {start.value}(…) }}")
        value = self._postfix(nodes.Name(start.start, self._next().end, str(start.value)))
        if isinstance(value, nodes.Name | nodes.Member):
            return nodes.Entry(value.start, value.end, value.name, value, True)
        if isinstance(value, Broken):
            return value
        self._report("F001", "a value needs a key", value, help="write { key: value }")
        return Broken(value.start, value.end)

    def _expect_key(self) -> str:
        token = self._token
        if token.kind in ("name", "keyword", "text"):
            return str(self._next().value)
        if token.kind == "number":
            self._fail("F001", "a key is a word or text", token, help=f'write "{token.value}"')
        self._fail("F001", f"expected a key, not {_shown(token)}", token, help="write { key: value }")

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

    # tokens

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
        return _is(self.tokens[self.i], value)

    def _at_end(self) -> bool:
        return self.tokens[self.i].kind == "end"

    def _take(self, value: str) -> bool:
        if self._at(value):
            self.i += 1
            return True
        return False

    def _expect(self, value: str, why: str) -> Token:
        if self._at(value):
            return self._next()
        token = self._token
        self._refuse_foreign(value)
        if value in ")]}" and (self._at_end() or self._at("}")):
            opening = self.tokens[self._opening()]
            self._fail("F002", f"this {_shown(opening)} is never closed", opening, "opened here", f"close it with `{value}`")
        self._fail("F001", f"expected `{value}` {why}, not {_shown(token)}", token, help=f"write `{value}` before it, or take it out")

    def _expect_name(self, what: str) -> Token:
        if self._token.kind == "name":
            return self._next()
        reserved = f"`{self._token.value}` is a word of the language; choose another name"
        help = reserved if self._token.kind == "keyword" else "a name has letters, digits and _, and begins with a letter"
        self._fail("F001", f"expected {what}, not {_shown(self._token)}", self._token, help=help)

    def _name(self, what: str) -> nodes.Name:
        token = self._expect_name(what)
        return nodes.Name(token.start, token.end, str(token.value))

    def _text(self, node: Node) -> str:
        """The node as it is written, if that is one line; else a stand-in."""
        text = self.text[node.start : node.end]
        return text if "\n" not in text else "x"

    # problems

    def _refuse_foreign(self, closing: str = "") -> None:
        """Refuses the current token, at which nothing fits, if it is of another language."""
        token, last = self._token, self._last
        if token.kind == "punctuation" and token.value in FOREIGN_OPERATORS:
            self._foreign_operator()
        if self._at("if") and not token.line_start and not self._at_if_statement():
            self._fail("F007", "one of two values is chosen with `? :`", token, help="write condition ? a : b")
        if self._at("for") and closing in FOREIGN_COMPREHENSIONS:
            message, help = FOREIGN_COMPREHENSIONS[closing]
            self._fail("F001", message, token, help=help)
        if last.kind == "name" and token.kind in ("name", "text", "number") and not token.line_start:
            call = f"{last.value}({self.text[token.start : token.end]})" if last.value in CALLABLE else None
            if instead := call or FUNCTIONS_FROM_ELSEWHERE.get(str(last.value)):
                self._fail("F001", "a call has parentheses", token, help=f"write {instead}")

    def _at_if_statement(self) -> bool:
        return _is(self.tokens[self.closer.get(self.i + 1, self.i) + 1], "{")

    def _foreign_operator(self) -> NoReturn:
        token = self._token
        self._fail("F007", f"there is no `{token.value}` here", token, help=FOREIGN_OPERATORS[str(token.value)])

    def _report(self, code: str, message: str, node: Node, label: str = "", help: str | tuple[str, ...] = (),
                related: tuple[tuple[int, int, str], ...] = ()) -> None:  # fmt: skip
        self.problems.report(code, message, node.start, node.end, label, help, related)

    def _report_token(self, code: str, message: str, token: Token, label: str = "", help: str | tuple[str, ...] = ()) -> None:
        self.problems.report(code, message, token.start, max(token.end, token.start + 1), label, help)

    def _fail(self, code: str, message: str, token: Token, label: str = "", help: str | tuple[str, ...] = ()) -> NoReturn:
        self._report_token(code, message, token, label, help)
        raise _Recover


def _is(token: Token, value: str) -> bool:
    return token.value == value and token.kind in ("punctuation", "keyword")


def _shown(token: Token) -> str:
    """The token as a message names it."""
    if token.kind == "end":
        return "the end of the file"
    if token.kind in ("text", "part"):
        return "a text"
    if token.kind in ("template", "endtemplate"):
        return "a template"
    return f"`{str(token.value)[:40]}`"


def _match_brackets(tokens: list[Token]) -> dict[int, int]:
    """The number of the closing token for each opening one that has one."""
    closer: dict[int, int] = {}
    open_: list[int] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    for i, token in enumerate(tokens):
        if token.kind != "punctuation":
            continue
        if token.value in ("(", "[", "{", "${"):
            open_.append(i)
        elif token.value in (")", "]", "}") and open_ and tokens[open_[-1]].value in (pairs[str(token.value)], "${"):
            closer[open_.pop()] = i
    return closer


def too_high(root: Node, limit: int = EXPRESSION_HEIGHT) -> Node | None:
    """A node over which recursion would go too deep. Counts without recursing."""
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, height = stack.pop()
        if height > limit:
            return node
        below = 0 if isinstance(node, Block) else height + 1
        for field in node.__dict__.values():
            if isinstance(field, Node):
                stack.append((field, below))
            elif isinstance(field, tuple):
                stack += [(item, below) for item in _flat(field) if isinstance(item, Node)]
    return None


def _flat(items: tuple[object, ...]) -> list[object]:
    return [inner for item in items for inner in (item if isinstance(item, tuple) else (item,))]
