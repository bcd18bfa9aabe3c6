"""Draws small Python workflows: expressions and statements over whole numbers, texts, lists and
dicts, with awaits of a task that gives back what it gets.

Every variable has one type, and what grows is cut, so that most programs run for a while. They may
fail: then CPython and the engine must fail alike.
"""

from __future__ import annotations

import linecache
import re
from random import Random
from typing import Any

import rhythm
from rhythm.authoring.workflow import Workflow
from tests.python.programs._tasks import echo, maybe

INT, TEXT, LIST, DICT, BOOL = "int", "text", "list", "dict", "bool"
VARIABLES = {INT: ["i", "j", "k"], TEXT: ["s", "u"], LIST: ["xs", "ys"], DICT: ["d"]}
DEEPEST = 3
TEMPLATES = {
    INT: (
        "(INT + INT)", "(INT - INT)", "(INT // INT)", "(INT % INT)", "(INT ^ INT)", "(INT & INT)",
        "(INT % 30 * (INT % 30))", "len(LIST)", "len(TEXT)", "sum(LIST)", "max(LIST, default=4)",
        "abs(INT)", "(-INT)", "LIST[INT % 3]", "DICT.get(TEXT, INT)", "TEXT.count(TEXT)",
        "int((BOOL) == True)", "min(INT, INT)", "LIST.count(INT)", "round(INT / 4)",
    ),
    TEXT: (
        "(TEXT + TEXT)[:12]", "TEXT.upper()", "str(INT)", 'f"{i}:{s!r}:{j:03}"', "TEXT[INT % 4:]",
        "TEXT[::-1]", "(TEXT * (INT % 3))[:12]", "str(LIST)[:12]", "TEXT.replace('a', TEXT)",
        "'-'.join([str(x) for x in PLAIN])[:12]", "format(INT, '>4')", "TEXT.strip()", "str(DICT)[:12]",
    ),
    LIST: (
        "[INT, INT]", "sorted(LIST)", "LIST[INT % 3:]", "LIST[::-1]", "(LIST + LIST)[:6]",
        "[*LIST, INT][:6]", "list(DICT.values())", "list(range(INT % 4))",
    ),
    DICT: (
        "{'a': INT, 'k': INT}", "{**DICT, 'a': INT}", "(DICT | DICT)", "{str(x): x for x in PLAIN}",
        "{TEXT[:2]: INT}",
    ),
    BOOL: (
        "(INT < INT)", "(INT == INT)", "(INT != INT)", "(INT < INT < INT)", "(INT <= INT != INT)",
        "(TEXT > TEXT)", "(not BOOL)", "(INT in LIST)", "(TEXT not in TEXT)", "(TEXT in DICT)",
        "bool(LIST)", "(LIST >= LIST)", "(BOOL and BOOL)", "(BOOL or BOOL)", "(LIST == LIST)",
        "any(x > 2 for x in PLAIN)", "all(x for x in PLAIN)", "any([x == INT for x in PLAIN])",
    ),
}  # fmt: skip
WALRUS = ("(j := j + 1)", "(k := INT % 99)")
STATEMENTS = 14


class Drawn:
    """The text of one workflow, drawn from a source of chance."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.left = random, list[str](), STATEMENTS
        self.bound: dict[str, list[str]] = {}  # variables of comprehensions and loops, by type
        self.loops = 0  # how many loops are open
        self.names = 0
        self.may_await = self.may_set = True  # in an expression: `await`, `:=`

    def text(self) -> str:
        """The function as it is written into a file."""
        self.lines = ["async def drawn(i: Any, s: Any, xs: Any) -> Any:"]
        self._write(1, "j = k = 1", 'u = "u"', "ys = [3, 0, 2]", 'd = {"a": 1, "b": 2}', "log = []")
        self._write(1, "rows = [[1, 2], [5]]", "groups = {}")
        while self.left > 0:
            self._statement(1)
        self._write(1, "return [i, j, k, s, u, xs, ys, d, log, rows, groups]")
        return "\n".join(self.lines) + "\n"

    def _write(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def _one(self, *options: Any) -> Any:
        return self.random.choice(options)

    def _filled(self, *templates: str, depth: int = 0) -> str:
        """One of the templates, with expressions in place of INT, TEXT, LIST, DICT and BOOL.

        PLAIN is a list, too, in which Python has no `:=`: a comprehension walks it.
        """
        template = self._one(*templates)
        return re.sub(
            "INT|TEXT|LIST|DICT|BOOL|PLAIN", lambda found: self._part(found[0], depth), template
        )

    def _part(self, word: str, depth: int) -> str:
        if word != "PLAIN":
            return self.expr(word.lower(), depth)
        self.may_set, could = False, self.may_set
        made = self.expr(LIST, depth)
        self.may_set = could
        return made

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    # Statements.

    def _statement(self, depth: int) -> None:
        self.left -= 1
        simple = [
            self._assign, self._augment, self._note, self._change, self._nest, self._swap,
        ]  # fmt: skip
        nested = [self._if, self._for, self._while, self._try, self._match]
        made = self._one(*simple, *simple, *(nested if depth < 4 else ()))
        made(depth)

    def _block(self, depth: int) -> None:
        for _ in range(self._one(1, 1, 2)):
            self._statement(depth)
        if self.loops and self._chance(0.15):
            self._write(depth, f"if {self.expr(BOOL)}:", f"    {self._one('break', 'continue')}")

    def _assign(self, depth: int) -> None:
        type = self._one(INT, INT, TEXT, LIST, DICT)
        name = self._one(*VARIABLES[type])
        self._write(depth, f"{name} = {self.fresh(type)}")

    def fresh(self, type: str) -> str:
        """An expression of the type that nothing else holds."""
        value = self.expr(type)
        return {LIST: f"list({value})[:6]", DICT: f"dict({value})", TEXT: f"({value})[:12]"}.get(
            type, f"({value}) % 1000"
        )

    def _augment(self, depth: int) -> None:
        if self._chance(0.6):
            name, op = self._one("i", "j", "k"), self._one("+", "-", "*", "//", "%", "|", "&")
            self._write(depth, f"{name} {op}= {self.expr(INT)}", f"{name} %= 1000")
        else:
            self._write(depth, f"s += {self.expr(TEXT)}", "s = s[-12:]")

    def _note(self, depth: int) -> None:
        self._write(
            depth, self._filled("log.append(INT)", "log.append(TEXT)", "log.append(bool(BOOL))")
        )

    def _change(self, depth: int) -> None:
        made = self._filled(
            "xs.append(INT)", "xs[INT % 3] = INT", "ys.insert(0, INT)", "j = ys.pop()", "ys.sort()",
            "d[TEXT[:2]] = INT", "d['a'] += INT % 10", "k = d.pop(TEXT[:1], INT)", "xs.reverse()",
            "del ys[INT % 2]", "d.update(DICT)", "xs.sort(key=lambda x: -x)", "ys += LIST[:2]",
            "xs.append(await echo(INT))", "d[await echo(TEXT[:1])] = await echo(INT)", "ys *= INT % 3",
            "d |= DICT", "ys.extend(LIST[:2])", "k = d.setdefault(TEXT[:1], INT)",
        )  # fmt: skip
        self._write(depth, made)

    def _nest(self, depth: int) -> None:
        """Lists in lists and dicts, mostly copies; some are shared, and then refused or not seen."""
        copies = (
            "rows.append([*LIST, INT][:4])", "rows.insert(0, list(xs))", "rows[-1] = LIST[:3]",
            "rows[INT % 2].append(INT)", "rows[0][INT % 2] += INT", "ys = xs.copy()", "ys = xs[:]",
            "groups.setdefault(TEXT[:1], []).append(INT)", "groups[TEXT[:1]] = list(LIST)[:3]",
            "xs, ys = list(ys), list(xs)", "rows = [row[:3] for row in rows if row] or [[1], [2]]",
        )  # fmt: skip
        shared = (
            "xs, ys = ys, xs", "xs = ys", "rows = rows[::-1]", "rows.append(LIST)",
            "xs = (rows or [[1]])[0]", "ys = max(rows, default=[])", "groups = {'a': xs, 'b': ys}",
        )  # fmt: skip
        self._write(depth, self._filled(*(shared if self._chance(0.1) else copies)))

    def _swap(self, depth: int) -> None:
        made = self._filled(
            "i, j = j, i", "(i, j), k = (INT % 9, INT % 9), INT % 9", "j, k = INT % 50, INT % 50", "i, *_rest = LIST", "[j, k] = LIST[:2]",
            "i = j = INT % 9", "i, xs[j % 2] = INT % 7, INT",
        )  # fmt: skip
        self._write(depth, made)

    def _if(self, depth: int) -> None:
        self._write(depth, f"if {self.expr(BOOL)}:")
        self._block(depth + 1)
        if self._chance(0.3):
            self._write(depth, f"elif {self.expr(BOOL)}:")
            self._block(depth + 1)
        if self._chance(0.5):
            self._write(depth, "else:")
            self._block(depth + 1)

    def _loop(self, depth: int, head: str, names: dict[str, list[str]], *first: str) -> None:
        self._write(depth, head)
        self._write(depth + 1, *first)
        before, self.bound = self.bound, {**self.bound, **names}
        self.loops += 1
        self._block(depth + 1)
        self.loops -= 1
        self.bound = before
        if self._chance(0.3):
            self._write(depth, "else:")
            outer, self.loops = self.loops, 0
            self._block(depth + 1)
            self.loops = outer

    def _for(self, depth: int) -> None:
        n = self._name()
        kind = self._one("range", "list", "enumerate", "items", "text", "zip", "rows")
        number, text = {INT: [n]}, {TEXT: [n]}
        match kind:
            case "range":
                self._loop(depth, f"for {n} in range({self.expr(INT)} % 4):", number)
            case "list":
                self._loop(depth, f"for {n} in {self.expr(LIST)}[:3]:", number)
            case "enumerate":
                self._loop(depth, f"for {n}, _ in enumerate({self.expr(LIST)}[:3]):", number)
            case "items":
                self._loop(depth, f"for {n}, _ in {self.expr(DICT)}.items():", text)
            case "zip":
                self._loop(
                    depth, f"for {n}, _ in zip({self.expr(LIST)}[:3], {self.expr(TEXT)}):", number
                )
            case "rows":
                first = self._filled(f"{n} = len(row)", "log.append(sum(row))", "k = max(row) % 9")
                self._loop(depth, "for row in [each[:2] for each in rows]:", {}, first)
            case _:
                self._loop(depth, f"for {n} in {self.expr(TEXT)}[:3]:", text)

    def _while(self, depth: int) -> None:
        n = self._name()
        self._write(depth, f"{n} = 0")
        condition = self._one(self.expr(BOOL), "True")
        self._loop(depth, f"while {n} < 3 and {condition}:", {}, f"{n} += 1")

    def _try(self, depth: int) -> None:
        self._write(depth, "try:")
        self._block(depth + 1)
        if self._chance(0.6):
            risky = self._filled(
                "j = 10 // (INT % 3)", "log.append(LIST[INT % 5])", "k = d[TEXT[:1]]",
                "raise ValueError(TEXT)", "i = await maybe(i, bad=i)",
            )  # fmt: skip
            self._write(depth + 1, risky)
        kinds = (
            "ZeroDivisionError",
            "LookupError",
            "ValueError",
            "Exception",
            "(KeyError, TypeError)",
        )
        handled = self._chance(0.85)
        if handled:
            self._write(depth, f"except {self._one(*kinds)} as e:")
            self._write(depth + 1, "log.append(str(e))", *self._one([], [], ["raise"]))
            if self._chance(0.4):
                self._write(depth, "else:")
                self._block(depth + 1)
        if not handled or self._chance(0.3):
            self._write(depth, "finally:")
            loops, self.loops = self.loops, 0
            self._block(depth + 1)
            self.loops = loops

    def _match(self, depth: int) -> None:
        self._write(
            depth, self._filled("match INT:", "match LIST:", "match DICT:", "match (INT, INT):")
        )
        patterns = [
            "0", "1 | 2", "[]", "[_]", "[k, *_] if BOOL", "[_, k, *_]", "int() if BOOL",
            "{'a': k}", "None", "{'a': _, **_more}", "[1 | 2, *_]", "[int(k), _]", "(k, _) if BOOL",
            "{'a': 1 | 2}", "-3 | True",
        ]  # fmt: skip
        for pattern in self.random.sample(patterns, 3):
            self._write(depth + 1, self._filled(f"case {pattern}:"))
            self._block(depth + 2)
        if self._chance(0.5):
            self._write(depth + 1, "case _:")
            self._block(depth + 2)

    def _name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    # Expressions.

    def expr(self, type: str, depth: int = 0) -> str:
        """An expression of the type, in brackets where it needs them."""
        if depth >= DEEPEST or self._chance(0.25):
            return self._leaf(type)
        if self.may_await and self._chance(0.2):
            return f"(await echo({self.expr(type, depth + 1)}))"
        if self._chance(0.12):
            sides = self.expr(type, depth + 1), self.expr(type, depth + 1)
            return f"({sides[0]} if {self.expr(BOOL, depth + 1)} else {sides[1]})"
        if self._chance(0.12):
            op = self._one("and", "or")
            return f"({self.expr(type, depth + 1)} {op} {self.expr(type, depth + 1)})"
        if type == LIST and self._chance(0.25):
            return self._comprehension(depth + 1)
        walrus = WALRUS if type == INT and self.may_set else ()
        return self._filled(*TEMPLATES[type], *walrus, depth=depth + 1)

    def _leaf(self, type: str) -> str:
        constants = {
            INT: ["0", "1", "2", "7", "-3", "True"], TEXT: ["''", "'a'", "'b c'", "'déjà'", "'12'"],
            LIST: ["[]", "[1, 2]", "[0, 5, 3]"], DICT: ["{}", "{'a': 1}", "{'b': 0, 'c': 4}"],
            BOOL: ["True", "False", "i", "xs", "s", "(not d)", "(j is None)"],
        }  # fmt: skip
        names = [*VARIABLES.get(type, []), *self.bound.get(type, [])]
        return str(self._one(*constants[type], *names, *names))

    def _comprehension(self, depth: int) -> str:
        """`[… for x in … if …]`, in which `x` may be used."""
        name, before = self._name(), self.bound
        source = self._part("PLAIN", depth)
        self.bound = {**before, INT: [*before.get(INT, []), name]}
        element, test = self.expr(INT, depth), self.expr(BOOL, depth)
        self.bound = before
        return f"[({element}) for {name} in {source}{self._one('', f' if {test}')}]"


def workflow_of(text: str) -> Workflow[..., Any]:
    """The workflow of a text, which tools find as if it were a file."""
    name = f"<drawn {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"Any": Any, "echo": echo, "maybe": maybe, "rhythm": rhythm}
    exec(compile(text, name, "exec"), space)
    return Workflow(space["drawn"], "drawn", {})
