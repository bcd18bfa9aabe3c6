"""The parameters of a header: `inputs` and `ctx`, or each input with its type."""

from __future__ import annotations

from typing import Any

from rhythm.lang.flow.constants import constant_of
from rhythm.lang.flow.grammar.cursor import shown
from rhythm.lang.flow.grammar.statements import StatementParser
from rhythm.lang.flow.nodes import Parameter
from rhythm.lang.flow.other_languages import PARAMETERS
from rhythm.lang.flow.tokens import Token
from rhythm.lang.flow.types import NULL, TYPES, TYPES_FROM_ELSEWHERE, with_null
from rhythm.record import Record
from rhythm.suggest import nearest

Schema = dict[str, Any]
GIVEN = ("ctx", "inputs")
UNTYPED = ((), ("inputs",), ("ctx", "inputs"))
CONSTANTS = {"true": True, "false": False, "null": None}


class Header(Record):
    """What the parameters of a header say: the names that they bring, and the declared inputs."""

    names: tuple[str, ...] = ()
    inputs: tuple[Parameter, ...] | None = None  # None: the header declares none


class _Type(Record):
    schema: Schema
    optional: bool = False  # it ends in `?`: null if it is missing


class HeaderParser(StatementParser):
    """Parses the parameters of a workflow."""

    type_parts = 0  # of the types in the header that is being read

    def _parameters(self) -> Header:
        opening = self._next()
        self.type_parts = 0
        plain: list[Token] = []
        typed: list[Parameter] = []
        while not self._at(")") and not self._at_end():
            name = self._expect_name("a parameter")
            if self._at(":"):
                typed.append(self._parameter(name))
            else:
                self._refuse_default(name)
                plain.append(name)
            if not self._take(","):
                break
        self._expect(")", "to close the parameters")
        end = self._last.end
        self._refuse_result()
        if typed:
            return self._declared(plain, typed)
        return self._undeclared([str(name.value) for name in plain], opening, end)

    def _undeclared(self, found: list[str], opening: Token, end: int) -> Header:
        if tuple(found) in UNTYPED:
            return Header(tuple(found))
        meant = [PARAMETERS.get(name) or nearest(name, GIVEN) or name for name in found]
        own = [name for name in meant if name not in GIVEN]
        help: tuple[str, ...] = ("write (ctx, inputs)" if "ctx" in meant else "write (inputs)",)
        if own:
            help = (
                f"give each input a type: ({', '.join(f'{name}: any' for name in own)});",
                f"or write (inputs), and take it apart inside: let {{ {', '.join(own)} }} = inputs",
            )
        self.problems.report(
            "F030",
            "a workflow takes `inputs`, or `ctx, inputs`, or inputs with types",
            opening.start,
            end,
            help=help,
        )
        return Header(("ctx", "inputs", *(name for name in found if name not in GIVEN)))

    def _declared(self, plain: list[Token], typed: list[Parameter]) -> Header:
        for token in plain:
            if token.value == "ctx":
                continue
            self._report_token(
                "F030",
                f"`{token.value}` has no type, and other inputs have one"
                if token.value != "inputs"
                else "`inputs` is all inputs together: a header has that, or inputs with types",
                token,
                help=f"write {token.value}: any"
                if token.value != "inputs"
                else "take it out: each input has a name of its own",
            )
        seen: dict[str, Parameter] = {}
        for each in typed:
            if each.name in GIVEN:
                self._refuse_given(each)
            elif first := seen.get(each.name):
                self.problems.report(
                    "F021",
                    f"`{each.name}` is declared already",
                    each.start,
                    each.end,
                    help="choose another name",
                    related=((first.start, first.end, "declared here"),),
                )
            seen.setdefault(each.name, each)
        names = ("ctx",) if any(token.value == "ctx" for token in plain) else ()
        return Header(names, tuple(seen.values()))

    def _refuse_given(self, parameter: Parameter) -> None:
        help = (
            "name each input: workflow name(id: text, amount: number) { … }"
            if parameter.name == "inputs"
            else "write ctx, without a type"
        )
        self.problems.about(
            "F030", f"`{parameter.name}` has no type: it is given", parameter, help=help
        )

    def _refuse_default(self, name: Token) -> None:
        if self._at("="):
            self._fail(
                "F030",
                f"`{name.value}` has a default and no type",
                name,
                help=f"write {name.value}: any = …",
            )

    def _refuse_result(self) -> None:
        """Refuses the type of the result, which no header has."""
        if not self._at("->"):
            return
        self.problems.report(
            "F030",
            "a header does not say what the workflow returns",
            self._token.start,
            self._token.end,
            help="take it out: workflow name(id: text) { … }",
        )
        while not self._token.line_start and not self._at_end() and not self._at("{"):
            self._next()

    def _parameter(self, name: Token) -> Parameter:
        self._next()
        schema, required = self._typed_value()
        return Parameter(name.start, name.end, str(name.value), schema, required)

    def _typed_value(self) -> tuple[Schema, bool]:
        """Returns the schema of a type and the default after it, and whether a value is needed."""
        start = self._token.start
        found = self._type()
        schema = found.schema
        if self.type_parts > self.limits.type_parts:
            self.type_parts = -self.limits.tokens  # this is said once
            self.problems.report(
                "F006",
                f"the types of a header have more than {self.limits.type_parts:,} parts",
                start,
                self._last.end,
                help="write `object` or `any` for what is inside",
            )
            schema = {}
        if self._take("="):
            return self._with_default(schema), False
        return ({**schema, "default": None}, False) if found.optional else (schema, True)

    def _with_default(self, schema: Schema) -> Schema:
        from rhythm.ir.input_schema import WrongValue, fitted  # few headers need it

        value = self._expression()
        try:
            written = constant_of(value, "a default is a constant")
            kept = fitted(schema, written)
            # 10 for a float stays as it is written
            return {**schema, "default": written if kept == written else kept}
        except WrongValue as wrong:
            where = f"`{wrong.path}` of it " if wrong.path else "it "
            message = f"the default does not fit its type: {where}{wrong.problem}"
        except ValueError as problem:
            message = str(problem)
        self.problems.about("F036", message, value, help="write another, or another type")
        return {**schema, "default": None}

    # Types.

    def _type(self) -> _Type:
        self._deeper()
        parts, optional = [self._alternative()], self._optional()
        while self._take("|"):
            parts.append(self._alternative())
            optional = self._optional() or optional
        self.depth -= 1
        schema = _union(parts)
        return _Type(with_null(schema) if optional else schema, optional)

    def _optional(self) -> bool:
        if not self._at("?"):
            return False
        self.roles.optional.add(self.i)
        self._next()
        return True

    def _alternative(self) -> Schema:
        self.type_parts += 1
        token = self._token
        if token.kind == "name":
            return self._type_word()
        if token.kind in ("text", "number") or token.value in CONSTANTS:
            self._next()
            value = CONSTANTS.get(str(token.value)) if token.kind == "keyword" else token.value
            return dict(NULL) if value is None else {"enum": [value]}
        if self._at("-") and self._peek(1).kind == "number":
            self.roles.signs.add(self.i)
            self._next()
            return {"enum": [-self._next().value]}  # type: ignore[operator]  # a number's value
        if self._at("["):
            return self._list_type()
        if self._at("{"):
            return self._object_type()
        self._fail(
            "F035",
            f"expected a type, not {shown(token)}",
            token,
            help='a type is a word (text, number), [text], { key: text } or "one" | "other"',
        )

    def _type_word(self) -> Schema:
        token = self._next()
        word = str(token.value)
        if self._at("[") or self._at("<"):
            self._report_token(
                "F035",
                f"`{word}` takes nothing in brackets",
                token,
                help="a list is written [text], an object { key: text }, any keys { ...: text }",
            )
            self._skip_brackets()
            return {}
        if word in TYPES:
            return dict(TYPES[word])
        near = TYPES_FROM_ELSEWHERE.get(word.lower()) or nearest(word, TYPES)
        help = f"did you mean `{near}`?" if near else f"known are {', '.join(TYPES)}"
        self._report_token("F035", f"there is no type `{word}`", token, help=help)
        return {}

    def _skip_brackets(self) -> None:
        """Skips what follows a type of another language: `list[str]`, `Array<string>`."""
        if self._at("[") and self.i in self.closer:
            self.i = self.closer[self.i] + 1
            return
        depth = 0
        while not self._at_end() and not self._token.line_start:
            depth += self._at("<") - self._at(">") - 2 * self._at(">>")
            self._next()
            if depth <= 0:
                return

    def _list_type(self) -> Schema:
        opening = self._next()
        items = self._sequence("]", lambda: self._type().schema)
        if not items:
            self._report_token(
                "F035", "a list of nothing", opening, help="write [text], or list for any list"
            )
            return {"type": "array"}
        if len(items) > 1:
            return {"type": "array", "prefixItems": items}
        return {"type": "array", **({"items": items[0]} if items[0] else {})}

    def _object_type(self) -> Schema:
        self._next()
        properties: Schema = {}
        required: list[str] = []
        others: list[Schema] = []
        self._sequence("}", lambda: self._member_type(properties, required, others))
        if others and not properties:
            return {"type": "object", **({"additionalProperties": others[0]} if others[0] else {})}
        rest = {"additionalProperties": others[0] if others else False}
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            **({} if others and not others[0] else rest),
        }

    def _member_type(self, properties: Schema, required: list[str], others: list[Schema]) -> None:
        start = self._token
        if self._at("..."):
            self.roles.rests.add(self.i)
            self._next()
            others.append(self._type().schema if self._take(":") else {})
            return
        key = self._expect_key()
        may_miss = self._optional()
        self._expect(":", "after the key")
        schema, needed = self._typed_value()
        if key in properties:
            self._report_token("F027", f"the key `{key}` is written twice", start, help="keep one")
        properties[key] = schema
        if needed and not may_miss:
            required.append(key)


def _union(parts: list[Schema]) -> Schema:
    """Returns the schema of alternatives; values that stand side by side are one choice."""
    merged: list[Schema] = []
    for part in (inner for outer in parts for inner in outer.get("anyOf", [outer])):
        if "enum" in part and merged and "enum" in merged[-1]:
            merged[-1] = {"enum": [*merged[-1]["enum"], *part["enum"]]}
        else:
            merged.append(part)
    if {} in merged:
        return {}
    return merged[0] if len(merged) == 1 else {"anyOf": merged}
