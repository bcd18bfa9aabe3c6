"""Makes well-formed programs together with what they must give.

`program(random)` draws a program and returns its text and how it ends; `programs()` is the same as
a Hypothesis strategy. A program mixes everything whose result does not depend on the order in which
tasks end, so it must give the same however it is run: straight, through JSON, in small turns, with
tasks that end in any order. Sizes are bounded by construction: loops go round a few times, and what
grows is cut.

The structure is made of tuples, `(kind, …)`: `reference` gives its meaning, `_Writer` its text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.support.reference import Block, Expected, Node, expect

INT, TEXT, LIST, OBJECT = "int", "text", "list", "object"
TEXTS = ("", "a", "ab", "x y", "déjà", "😀!", 'say "hi"', "it's", "back`tick ${no}", "a\nb\\c", "ß")
NUMBERS = (0, 1, 1, 2, 3, 5, 7, 10, -1, -4, 100, 2**40, 2**62, -(2**63))
DECIMALS = (0.5, 1.0, 2.25, -0.75, 1e300)
CONSTANT = "k"  # begins the names of constants
STATEMENTS = 22  # in one program, about


def program(random: Random, looks: bool = False) -> tuple[str, Expected]:
    """A program as text, the workflow to run first in its file, and how that ends. `looks`: with
    looks into its mailbox after awaits of every kind; without them, what is drawn is what was
    always drawn, so that old seeds stay what they are."""
    maker = _Maker(random, looks)
    script, workflows = maker.file()
    text = _Writer(random, script, looks).file(workflows)
    return text, expect(workflows, "main")


def programs() -> st.SearchStrategy[tuple[str, Expected]]:
    return st.tuples(st.randoms(use_true_random=False), st.booleans()).map(
        lambda drawn: program(*drawn)
    )


class _Maker:
    """Draws the structure. Every variable has one type, so that most programs run for a while
    before they fail, if they do."""

    def __init__(self, random: Random, looks: bool) -> None:
        self.random = random
        self.looks = looks
        self.script = False
        self.children: list[str] = []

    def file(self) -> tuple[bool, dict[str, Block]]:
        """Whether it is a script, and the workflows by name, `main` first."""
        self.script = self._chance(0.3)
        made: dict[str, Block] = {}
        for name in () if self.script else self._some(["first", "second"]):
            made[name] = self._workflow(5, {"n": INT, "t": TEXT})
            self.children.append(name)
        return self.script, {"main": self._workflow(STATEMENTS, {}), **made}

    def _workflow(self, budget: int, inputs: dict[str, str]) -> Block:
        self.budget = budget
        self.scopes: list[dict[str, str]] = [{"out": "out", "inputs": "inputs"}]
        self.fixed = len(self.scopes)  # scopes below this one cannot be assigned to
        self.loops = self.tries = 0
        self.reports = ["out"]
        self.scopes.append({})
        given = [
            ("let", "let", self._declare(type), ("member", ("name", "inputs"), key, False))
            for key, type in inputs.items()
        ]
        body = [("let", "let", "out", ("list", [])), *given, *self._statements(0)]
        names = [
            name for name, type in self.scopes[-1].items() if type in (INT, TEXT, LIST, OBJECT)
        ]
        return [
            *body,
            (
                "return",
                ("object", [("out", ("name", "out")), *((name, ("name", name)) for name in names)]),
            ),
        ]

    # chance

    def _chance(self, probability: float) -> bool:
        return self.random.randrange(100) >= 100 * (1 - probability)

    def _pick(self, items: Any) -> Any:
        return items[self.random.randrange(len(items))]

    def _some(self, items: list[Any]) -> list[Any]:
        return items[: self.random.randrange(len(items) + 1)]

    def _risky(self) -> bool:
        """Whether to write something that may fail at run time: rarely where nobody catches it."""
        return self._chance(0.25 if self.tries else 0.01)

    # variables

    def _fresh(self, prefix: str) -> str:
        """A name that is free here; blocks beside each other use the same ones."""
        number = 1
        while any(f"{prefix}{number}" in scope for scope in self.scopes):
            number += 1
        return f"{prefix}{number}"

    def _declare(self, type: str, prefix: str = "") -> str:
        name = self._fresh(prefix or {INT: "n", TEXT: "t", LIST: "xs", OBJECT: "o"}.get(type, type))
        self.scopes[-1][name] = type
        return name

    def _known(self, type: str, assignable: bool = False) -> list[str]:
        scopes = self.scopes[self.fixed :] if assignable else self.scopes
        found = [name for scope in scopes for name, its in scope.items() if its == type]
        return [name for name in found if not (assignable and name.startswith(CONSTANT))]

    def _inside(self, make: Callable[[], Any], scope: dict[str, str] | None = None) -> Any:
        self.scopes.append(scope or {})
        made = make()
        self.scopes.pop()
        return made

    # statements

    def _statements(self, depth: int) -> Block:
        made: Block = []
        for _ in range(2 + self.random.randrange(8 if depth == 0 else 3)):
            if self.budget <= 0:
                break
            self.budget -= 1
            made += self._statement(depth)
        return made

    def _statement(self, depth: int) -> Block:
        simple = [
            self._let,
            self._let,
            self._assign,
            self._change,
            self._unpack,
            self._report,
            self._await,
            self._await,
            self._group,
        ]
        nested = [
            self._if,
            self._while,
            self._for,
            self._for,
            self._try,
            self._try,
            self._try,
            self._completed,
            self._branches,
        ]
        makers = (
            simple
            + (nested if depth < 3 else [])
            + ([] if self.script else [self._start])
            + [self._start_several]
        )
        makers += [self._leave] if depth and self._chance(0.5) else []
        makers += [self._mail] * 5 if self.looks else []
        return self._pick(makers)(depth)

    def _block(self, depth: int, scope: dict[str, str] | None = None) -> Block:
        return self._inside(lambda: self._statements(depth + 1), scope)

    def _type(self) -> str:
        return self._pick((INT, INT, TEXT, LIST, OBJECT))

    def _let(self, depth: int) -> Block:
        type, word = self._type(), self._pick(("let", "let", "const", ""))
        value = self._value(type)
        return [("let", word, self._declare(type, CONSTANT if word == "const" else ""), value)]

    def _assign(self, depth: int) -> Block:
        type = self._type()
        names = self._known(type, assignable=True)
        if not names:
            return self._let(depth)
        op = self._pick(("=", "+=", "-=", "*=")) if type == INT else "="
        return [("assign", ("name", self._pick(names)), op, self._value(type))]

    def _change(self, depth: int) -> Block:
        """An assignment to a property or an element."""
        objects, lists = self._known(OBJECT, assignable=True), self._known(LIST, assignable=True)
        if objects and self._chance(0.7):
            target: Node = ("member", ("name", self._pick(objects)), "a", False)
            return [("assign", target, self._pick(("=", "+=")), self._value(INT))]
        if lists and self._risky():
            return [
                (
                    "assign",
                    (
                        "index",
                        ("name", self._pick(lists)),
                        self._pick((("literal", 0), ("literal", -1))),
                    ),
                    "=",
                    self._value(INT),
                )
            ]
        return self._assign(depth)

    def _unpack(self, depth: int) -> Block:
        if self._chance(0.5):
            value: Node = ("list", [self._value(INT), self._value(INT)])
            return [("unpack_list", [self._declare(INT), self._declare(INT)], value)]
        value, default = self._value(OBJECT), self._value(INT)
        fields = [
            ("a", self._declare(INT), None),
            ("b", self._declare(TEXT), None),
            ("zz", self._declare(INT), default),
        ]
        return [("unpack_object", fields, value)]

    def _report(self, depth: int) -> Block:
        """Adds something to the result: `out += [value]`."""
        errors = self._known("error")
        if errors and self._chance(0.7):
            error: Node = ("name", self._pick(errors))
            code: Node = ("member", error, "code", False)
            ours: Node = ("binary", "==", code, ("literal", "Error"))
            return self._out(("choose", ours, ("member", error, "message", False), code))
        if self._chance(0.3):
            return self._out(self._number())
        return self._out(self._condition() if self._chance(0.3) else self._value(self._type()))

    def _out(self, *values: Node) -> Block:
        return [("assign", ("name", self.reports[-1]), "+=", ("list", list(values)))]

    def _if(self, depth: int) -> Block:
        arms = [
            (self._condition(), self._block(depth)) for _ in range(1 + self.random.randrange(2))
        ]
        return [("if", arms, self._block(depth) if self._chance(0.5) else None)]

    def _looped(self, depth: int, scope: dict[str, str] | None = None) -> Block:
        self.loops += 1
        body = self._block(depth, scope)
        self.loops -= 1
        return body

    def _while(self, depth: int) -> Block:
        count = self._declare("i")
        steps: Node = ("assign", ("name", count), "+=", ("literal", 1))
        condition: Node = (
            "binary",
            "<",
            ("name", count),
            ("literal", 1 + self.random.randrange(3)),
        )
        if self._chance(0.3):
            condition = ("logic", "&&", condition, self._condition())
        return [
            ("let", "let", count, ("literal", 0)),
            ("while", condition, [steps, *self._looped(depth)]),
        ]

    def _for(self, depth: int) -> Block:
        form = self.random.randrange(4)
        if form == 0:
            name = self._fresh("n")
            return [
                (
                    "for",
                    [name],
                    ("call", "range", [("literal", self.random.randrange(4))]),
                    self._looped(depth, {name: INT}),
                )
            ]
        if form == 1:
            key, value = self._fresh("t"), self._fresh("any")
            source = self._value(OBJECT)
            return [
                (
                    "for",
                    [key, value],
                    source,
                    self._out(("name", key), ("name", value))
                    + self._looped(depth, {key: TEXT, value: "any"}),
                )
            ]
        names = [self._fresh("n")] if form == 2 else ["position", self._fresh("n")]
        if any("position" in scope for scope in self.scopes):
            names = names[-1:]
        source = self._shorter(self._value(LIST), 3)
        return [("for", names, source, self._looped(depth, dict.fromkeys(names, INT)))]

    def _try(self, depth: int) -> Block:
        self.tries += 1
        body = self._inside(
            lambda: self._statements(depth + 1) + (self._failure() if self._chance(0.6) else [])
        )
        self.tries -= 1
        error = self._fresh("e")
        handler = (
            self._report_inside({error: "error"}) + self._block(depth, {error: "error"})
            if self._chance(0.8)
            else None
        )
        cleanup = self._block(depth) if handler is None or self._chance(0.5) else None
        return [("try", body, error if handler is not None else None, handler, cleanup)]

    def _report_inside(self, scope: dict[str, str]) -> Block:
        return self._inside(lambda: self._report(0), scope)

    def _failure(self) -> Block:
        form = self.random.randrange(4)
        if form == 0:
            return [("throw", self._value(TEXT))]
        if form == 1:
            entries = [
                ("code", ("literal", self._pick(("Error", "Declined", "Late")))),
                ("message", self._value(TEXT)),
            ]
            return [("throw", ("object", entries))]
        if form == 2:
            return [("await", "await", None, self._fail("Declined"))]
        return self._out(("member", self._value(OBJECT), "zz", False))

    def _leave(self, depth: int) -> Block:
        if self.loops and self._chance(0.6):
            return [
                ("if", [(self._condition(), [("jump", self._pick(("break", "continue")))])], None)
            ]
        if self._chance(0.3):
            return [("if", [(self._condition(), [("return", self._value(INT))])], None)]
        return (
            [("if", [(self._condition(), self._failure())], None)]
            if self.tries
            else self._report(depth)
        )

    # operations

    def _await(self, depth: int) -> Block:
        word = self._pick(("await", "")) if self.script else "await"
        operation = self._operation()
        if operation[0] == "sleep":
            return [("await", word, None, operation)]
        return [
            ("await", word, self._declare("any" if operation[0] == "workflow" else INT), operation)
        ]

    def _operation(self) -> Node:
        if self.children and self._chance(0.3):
            return self._child()
        if self._chance(0.15):
            return ("sleep", self._pick((("literal", 1), ("literal", "90s"), ("literal", "1h30m"))))
        return self._fail("Declined") if self._risky() else self._task()

    def _task(self) -> Node:
        name = self._pick(("value", "add", "double"))
        keys = {"value": ["value"], "add": ["a", "b"], "double": ["x"]}[name]
        return ("task", name, ("object", [(key, self._small()) for key in keys]))

    def _small(self) -> Node:
        """An int that a task can compute with and stay within 64 bits: a task is not held to the
        language's limits."""
        return ("binary", "%", self._value(INT, 1), ("literal", 1000))

    def _fail(self, code: str) -> Node:
        return ("task", "fail", ("object", [("code", ("literal", code))]))

    def _child(self) -> Node:
        return (
            "workflow",
            self._pick(self.children),
            ("object", [("n", self._value(INT)), ("t", self._value(TEXT))]),
        )

    def _start(self, depth: int) -> Block:
        """Started now, awaited after the next statements."""
        id = self._declare("id")
        operation = self._operation()
        between = self._report(depth)
        return [("start", id, operation), *between, *self._take(operation, ("id", id))]

    def _take(self, operation: Node, wait: Node) -> Block:
        if operation[0] == "sleep":
            return [("await", "await", None, wait)]
        return [
            ("await", "await", self._declare("any" if operation[0] == "workflow" else INT), wait)
        ]

    def _mail(self, depth: int) -> Block:
        """Sends itself something, waits for something that cannot fail, and looks: it must be
        there."""
        task: Node = ("task", "value", ("object", [("value", ("literal", 1))]))
        sleep: Node = ("sleep", ("literal", self._pick((0, 1))))
        branch: Node = ("branch", [("await", "await", "own", task), ("return", ("name", "own"))])
        quick: Node = (
            "group",
            "race",
            ("object", [("quick", task), ("late", ("sleep", ("literal", "3d")))]),
            {},
        )
        either: Node = ("group", "any", ("list", [task, self._fail("Late")]), self._options())
        all_of: list[Node] = [
            ("group", "all", ("list", [each, task]), self._options())
            for each in (task, task, sleep, branch)
        ]
        value = self._value(INT)
        return [
            (
                "mail",
                self._declare(INT),
                value,
                self._pick((task, task, task, sleep, quick, either, *all_of)),
            )
        ]

    def _start_several(self, depth: int) -> Block:
        ids, name = self._declare("ids"), self._fresh("n")
        source = self._shorter(self._value(LIST), 4)
        each: Node = ("each", self._inside(self._task, {name: INT}), name, source)
        items = (
            each
            if self._chance(0.5)
            else ("list", [self._task() for _ in range(1 + self.random.randrange(3))])
        )
        return [("start", ids, items), *self._report(depth), *self._await_all(("name", ids), {})]

    def _await_all(self, items: Node, options: dict[str, Any]) -> Block:
        return [("await", "await", self._declare(LIST), ("group", "all", items, options))]

    def _group(self, depth: int) -> Block:
        return self._pick(
            (
                self._all,
                self._all,
                self._all_of_object,
                self._settle,
                self._need,
                self._any,
                self._race,
            )
        )()

    def _tasks(self) -> list[Node]:
        return [self._task() for _ in range(1 + self.random.randrange(3))]

    def _options(self) -> dict[str, Any]:
        return {"concurrency": 1 + self.random.randrange(3)} if self._chance(0.4) else {}

    def _all(self) -> Block:
        name = self._fresh("n")
        if self._chance(0.5):
            source = self._shorter(self._value(LIST), 5)
            items: Node = ("each", self._inside(self._task, {name: INT}), name, source)
        else:
            items = ("list", [*self._tasks(), *([self._fail("Declined")] if self._risky() else [])])
        return self._await_all(items, self._options())

    def _all_of_object(self) -> Block:
        inner: Node = ("group", "all", ("list", self._tasks()), self._options())
        found = self._declare("found")
        operation: Node = ("group", "all", ("object", [("one", self._task()), ("more", inner)]), {})
        return [("await", "await", found, operation), *self._out(("name", found))]

    def _settle(self) -> Block:
        items = [
            self._pick((self._task, lambda: self._fail("Declined"), self._branch))()
            for _ in range(1 + self.random.randrange(3))
        ]
        settled, each = self._declare("settled"), ("name", "each")
        done: Node = ("binary", "==", ("member", each, "status", False), ("literal", "completed"))
        failed: Node = ("member", ("member", each, "error", False), "code", False)
        shown: Node = (
            "comprehension",
            ("choose", done, ("member", each, "result", False), failed),
            "each",
            ("name", settled),
            None,
        )
        return [
            (
                "await",
                "await",
                settled,
                ("group", "all", ("list", items), {"settle": True, **self._options()}),
            ),
            *self._out(shown),
        ]

    def _need(self) -> Block:
        """As many as there are: the results in order; fewer: which ones is chance, how many is not;
        more: it fails."""
        tasks = self._tasks()
        need = max(1, len(tasks) + self._pick((0, -1)) + self._risky())
        found = self._declare("found")
        results: Node = (
            "comprehension",
            ("member", ("name", "each"), "result", False),
            "each",
            ("name", found),
            None,
        )
        seen: Node = (
            ("call", "sort", [results])
            if need == len(tasks)
            else ("call", "len", [("name", found)])
        )
        items: Node = ("list", [*tasks, self._fail("Declined")])
        return [
            ("await", "await", found, ("group", "all", items, {"need": need})),
            *self._out(seen),
        ]

    def _any(self) -> Block:
        """Whichever wins, the result is the same."""
        value, found = self._small(), self._declare("found")
        tasks: list[Node] = [
            ("task", "value", ("object", [("value", value)]))
            for _ in range(1 + self.random.randrange(2))
        ]
        items: Node = ("list", [*tasks, self._fail("Late")])
        return [
            ("await", "await", found, ("group", "any", items, self._options())),
            *self._out(("member", ("name", found), "result", False)),
        ]

    def _race(self) -> Block:
        found: Node = ("name", self._declare("found"))
        items: Node = ("object", [("quick", self._task()), ("late", ("sleep", ("literal", "3d")))])
        seen = [("member", found, "key", False), ("member", found, "result", False)]
        return [("await", "await", found[1], ("group", "race", items, {})), *self._out(*seen)]

    def _completed(self, depth: int) -> Block:
        """Each as it ends, in whatever order: only a sum and a count leave the loop."""
        each, count, total = self._fresh("each"), self._declare(INT), self._declare(INT)
        items = [*self._tasks(), *([self._fail("Declined")] if self._chance(0.3) else [])]
        done: Node = (
            "binary",
            "==",
            ("member", ("name", each), "status", False),
            ("literal", "completed"),
        )
        add: Node = ("assign", ("name", total), "+=", ("member", ("name", each), "result", False))
        body: Block = [
            ("assign", ("name", count), "+=", ("literal", 1)),
            ("if", [(done, [add])], None),
        ]
        loop: Node = (
            "completed",
            each,
            ("group", "completed", ("list", items), self._options()),
            body,
        )
        return [("let", "let", count, ("literal", 0)), ("let", "let", total, ("literal", 0)), loop]

    def _branches(self, depth: int) -> Block:
        found, name = self._declare("found"), self._fresh("n")
        if self._chance(0.5):
            source = self._shorter(self._value(LIST), 3)
            items: Node = ("each", self._inside(self._branch, {name: INT}), name, source)
        else:
            items = (
                "list",
                [self._branch(), self._task(), *([self._child()] if self.children else [])],
            )
        return [
            ("await", "await", found, ("group", "all", items, self._options())),
            *self._out(("name", found)),
        ]

    def _branch(self) -> Node:
        """A block of its own: it reads what is around it, and changes and reports only what is its
        own."""
        outer = self.fixed, self.loops, self.tries
        self.fixed, self.loops, self.tries = len(self.scopes), 0, 0
        own = self._fresh("own")
        self.reports.append(own)
        self.scopes.append({own: "own"})
        body = [("let", "let", own, ("list", [])), *self._statements(2), ("return", ("name", own))]
        self.scopes.pop()
        self.reports.pop()
        self.fixed, self.loops, self.tries = outer
        return ("branch", body)

    # expressions

    def _value(self, type: str, depth: int = 0) -> Node:
        names = self._known(type)
        if names and self._chance(0.35):
            return ("name", self._pick(names))
        if depth > 2:
            return self._literal(type)
        return {INT: self._int, TEXT: self._text, LIST: self._list, OBJECT: self._object}[type](
            depth + 1
        )

    def _literal(self, type: str) -> Node:
        if type == INT:
            return ("literal", self._pick(NUMBERS if self._chance(0.2) else NUMBERS[:9]))
        if type == TEXT:
            return ("literal", self._pick(TEXTS))
        return (
            ("list", [])
            if type == LIST
            else ("object", [("a", self._literal(INT)), ("b", self._literal(TEXT))])
        )

    def _int(self, depth: int) -> Node:
        form, make = self.random.randrange(16), lambda: self._value(INT, depth)
        if form < 4:
            return self._literal(INT)
        if form < 7:
            return ("binary", self._pick(("+", "-", "*")), make(), make())
        if form == 7:
            divisor = make() if self._risky() else ("literal", self._pick((2, 3, -7)))
            return self._pick(
                (
                    ("binary", "%", make(), divisor),
                    ("call", self._pick(("floor", "round")), [("binary", "/", make(), divisor)]),
                )
            )
        if form == 8:
            return self._pick(
                (
                    ("negative", make()),
                    ("call", "abs", [make()]),
                    ("call", self._pick(("min", "max")), [make(), make()]),
                )
            )
        if form == 9:
            return ("choose", self._condition(depth), make(), make())
        if form == 10:
            return ("call", "len", [self._value(self._pick((TEXT, LIST)), depth)])
        if form == 11:
            return ("logic", self._pick(("||", "&&")), make(), make())
        if form == 12:
            return ("member", self._value(OBJECT, depth), "a", False)
        if form == 13:
            optional = self._pick((True, False))  # before a `??` it is the same
            missing: Node = ("member", self._value(OBJECT, depth), "zz", optional)
            return self._pick(
                (
                    ("logic", "??", missing, make()),
                    ("call", "get", [self._value(OBJECT, depth), ("literal", "zz"), make()]),
                )
            )
        if form == 14 and self._risky():
            return ("index", self._value(LIST, depth), self._value(INT, depth))
        return self._pick(
            (
                ("call", "sum", [self._value(LIST, depth)]),
                ("call", "find_index", [self._value(LIST, depth), make()]),
            )
        )

    def _text(self, depth: int) -> Node:
        form, make = self.random.randrange(9), lambda: self._value(TEXT, depth)
        if form < 2:
            return self._literal(TEXT)
        if form == 2:
            return self._shorter(("binary", "+", make(), make()), 12)
        if form == 3:
            return self._shorter(
                ("template", [make(), ("literal", self._pick(TEXTS)), self._value(INT, depth)]), 12
            )
        if form == 4:
            return self._shorter(("call", self._pick(("upper", "lower", "trim")), [make()]), 12)
        if form == 5:
            return ("choose", self._condition(depth), make(), make())
        if form == 6:
            return ("member", self._value(OBJECT, depth), "b", False)
        if form == 7:
            return self._shorter(("call", "join", [self._value(LIST, depth), ("literal", "-")]), 12)
        return self._shorter(("call", "replace", [make(), ("literal", "a"), ("literal", "bb")]), 12)

    def _list(self, depth: int) -> Node:
        form, make = self.random.randrange(8), lambda: self._value(LIST, depth)
        if form < 2:
            return ("list", [self._value(INT, depth) for _ in range(self.random.randrange(4))])
        if form == 2:
            return self._shorter(
                self._pick((("binary", "+", make(), make()), ("call", "concat", [make(), make()]))),
                6,
            )
        if form == 3:
            return self._shorter(("list", [("spread", make()), self._value(INT, depth)]), 6)
        if form == 4:
            return ("call", self._pick(("sort", "reverse", "unique")), [make()])
        if form == 5:
            return ("call", "range", [("literal", self.random.randrange(5))])
        name, source = self._fresh("n"), make()
        element = self._inside(lambda: self._value(INT, depth), {name: INT})
        condition = (
            self._inside(lambda: self._condition(depth), {name: INT}) if self._chance(0.5) else None
        )
        return ("comprehension", element, name, source, condition)

    def _object(self, depth: int) -> Node:
        form = self.random.randrange(4)
        if form == 0:
            return ("object", [(None, self._value(OBJECT, depth)), ("a", self._value(INT, depth))])
        if form == 1:
            return (
                "call",
                "merge",
                [self._value(OBJECT, depth), ("object", [("a", self._value(INT, depth))])],
            )
        return ("object", [("a", self._value(INT, depth)), ("b", self._value(TEXT, depth))])

    def _number(self) -> Node:
        """Decimals and all; only for the result, so that texts and tasks need not agree on how to
        write them."""
        number: Node = (
            ("literal", self._pick(DECIMALS))
            if self._chance(0.5)
            else ("binary", "/", self._value(INT, 1), ("literal", 4))
        )
        return (
            "binary",
            self._pick(("+", "-", "*", "%")),
            number,
            ("literal", self._pick((3, 0.25, -7))),
        )

    def _condition(self, depth: int = 0) -> Node:
        form, type = self.random.randrange(7), self._type()
        if form < 2:
            return (
                "binary",
                self._pick(("<", "<=", ">", ">=")),
                self._value(INT, depth + 1),
                self._value(INT, depth + 1),
            )
        if form == 2:
            return (
                "binary",
                self._pick(("==", "!=")),
                self._value(type, depth + 1),
                self._value(type, depth + 1),
            )
        if form == 3:
            return ("binary", "in", self._value(INT, depth + 1), self._value(LIST, depth + 1))
        if depth > 2 or form == 4:
            return self._value(type, depth + 1)
        if form == 5:
            return ("not", self._condition(depth + 1))
        return (
            "logic",
            self._pick(("&&", "||")),
            self._condition(depth + 1),
            self._condition(depth + 1),
        )

    @staticmethod
    def _shorter(value: Node, length: int) -> Node:
        return ("call", "slice", [value, ("literal", 0), ("literal", length)])


_LEVELS = {
    "??": 1,
    "||": 2,
    "&&": 3,
    "==": 4,
    "!=": 4,
    "<": 5,
    "<=": 5,
    ">": 5,
    ">=": 5,
    "in": 5,
    "+": 6,
    "-": 6,
    "*": 7,
    "/": 7,
    "%": 7,
}
_UNARY, _ATOM = 8, 9


class _Writer:
    """The text of a structure, with no more parentheses than needed, and with the liberties of
    layout that people take."""

    def __init__(self, random: Random, script: bool, looks: bool) -> None:
        self.random = random
        self.script = script
        self.looks = looks

    def file(self, workflows: dict[str, Block]) -> str:
        if self.script:
            return self._lines(workflows["main"], "")
        heads = {
            name: "(ctx, inputs)" if self.looks else "(inputs)" if name != "main" else ""
            for name in workflows
        }
        return "\n".join(
            f"workflow {name}{heads[name]} {self._block(body, '')}\n"
            for name, body in workflows.items()
        )

    def _block(self, block: Block, indent: str) -> str:
        if (
            len(block) == 1
            and block[0][0] in ("jump", "return", "throw")
            and self.random.randrange(2)
        ):
            return f"{{ {self._statement(block[0], indent)} }}"
        return f"{{\n{self._lines(block, indent + '  ')}{indent}}}"

    def _lines(self, block: Block, indent: str) -> str:
        ends = ("\n", "\n", "\n", "\n", ";\n", "\n\n", "  // a note\n", " /* a note */\n")
        return "".join(
            f"{indent}{self._statement(s, indent)}{ends[self.random.randrange(len(ends))]}"
            for s in block
        )

    def _statement(self, node: Node, indent: str) -> str:
        kind, *parts = node
        return str(getattr(self, f"_write_{kind}")(indent, *parts))

    def _write_let(self, indent: str, word: str, name: str, value: Node) -> str:
        return f"{word} {name} = {self._expression(value)}".strip()

    def _write_assign(self, indent: str, target: Node, op: str, value: Node) -> str:
        return f"{self._expression(target)} {op} {self._expression(value)}"

    def _write_unpack_list(self, indent: str, names: list[str], value: Node) -> str:
        return f"let [{', '.join(names)}] = {self._expression(value)}"

    def _write_unpack_object(
        self, indent: str, fields: list[tuple[str, str, Node | None]], value: Node
    ) -> str:
        written = [
            f"{key}: {name}" + (f" = {self._expression(default)}" if default else "")
            for key, name, default in fields
        ]
        return f"let {{ {', '.join(written)} }} = {self._expression(value)}"

    def _write_if(
        self, indent: str, arms: list[tuple[Node, Block]], otherwise: Block | None
    ) -> str:
        written = [
            f"if ({self._expression(condition)}) {self._block(block, indent)}"
            for condition, block in arms
        ]
        return " else ".join(
            [*written, *([self._block(otherwise, indent)] if otherwise is not None else [])]
        )

    def _write_while(self, indent: str, condition: Node, body: Block) -> str:
        return f"while ({self._expression(condition)}) {self._block(body, indent)}"

    def _write_for(self, indent: str, names: list[str], source: Node, body: Block) -> str:
        word = "in" if self.random.randrange(2) else "of"
        return (
            f"for ({', '.join(names)} {word} {self._expression(source)}) "
            f"{self._block(body, indent)}"
        )

    def _write_completed(self, indent: str, name: str, group: Node, body: Block) -> str:
        return f"for ({name} in {self._operation(group, indent)}) {self._block(body, indent)}"

    def _write_jump(self, indent: str, word: str) -> str:
        return word

    def _write_return(self, indent: str, value: Node) -> str:
        return f"return {self._expression(value)}"

    def _write_throw(self, indent: str, value: Node) -> str:
        return f"throw {self._expression(value)}"

    def _write_try(
        self,
        indent: str,
        body: Block,
        error: str | None,
        handler: Block | None,
        cleanup: Block | None,
    ) -> str:
        text = f"try {self._block(body, indent)}"
        if handler is not None:
            text += f" catch ({error}) {self._block(handler, indent)}"
        return text + (f" finally {self._block(cleanup, indent)}" if cleanup is not None else "")

    def _write_await(self, indent: str, word: str, name: str | None, operation: Node) -> str:
        written = f"{word} {self._operation(operation, indent)}".strip()
        return f"let {name} = {written}" if name else written

    def _write_mail(self, indent: str, name: str, value: Node, operation: Node) -> str:
        look = f'let {name} = await signal("mail", {{ timeout: 0, default: "blind" }})'
        return (
            f'send(ctx.id, "mail", {self._expression(value)}); await '
            f"{self._operation(operation, indent)}; {look}"
        )

    def _write_start(self, indent: str, name: str, operation: Node) -> str:
        items = (
            self._items(operation, indent)
            if operation[0] in ("list", "each")
            else self._operation(operation, indent)
        )
        return f"let {name} = {items}"

    # operations

    def _operation(self, node: Node, indent: str) -> str:
        kind, *parts = node
        if kind in ("task", "workflow"):
            return f"{kind}({json.dumps(parts[0])}, {self._expression(parts[1])})"
        if kind == "sleep":
            return f"sleep({self._expression(parts[0])})"
        if kind == "branch":
            return f"branch {self._block(parts[0], indent)}"
        if kind == "id":
            return str(parts[0])
        mode, items, options = parts
        given = ", ".join(f"{key}: {json.dumps(value)}" for key, value in options.items())
        return f"{mode}({self._items(items, indent)}{f', {{ {given} }}' if given else ''})"

    def _items(self, node: Node, indent: str) -> str:
        if node[0] == "name":
            return str(node[1])
        if node[0] == "list":
            return f"[{', '.join(self._operation(item, indent) for item in node[1])}]"
        if node[0] == "object":
            return (
                f"{{ "
                f"{', '.join(f'{key}: {self._operation(item, indent)}' for key, item in node[1])} }}"
            )
        _, operation, name, source = node
        return f"[{self._operation(operation, indent)} for {name} in {self._expression(source)}]"

    # expressions

    def _expression(self, node: Node, level: int = 0) -> str:
        """The expression, in parentheses if it binds less tightly than `level`."""
        text, its = self._written(node)
        return text if its >= level else f"({text})"

    def _written(self, node: Node) -> tuple[str, int]:
        """The text, and how tightly it binds."""
        kind, *parts = node
        if kind in ("binary", "logic"):
            op, left, right = parts
            level = _LEVELS[op]
            chains = level in (4, 5)  # comparisons do not chain: both sides of one bind tighter
            return (
                (
                    f"{self._expression(left, level + chains)} {op} "
                    f"{self._expression(right, level + 1)}"
                ),
                level,
            )
        if kind == "choose":
            condition, yes, no = parts
            return (
                (
                    f"{self._expression(condition, 1)} ? {self._expression(yes)} : "
                    f"{self._expression(no)}"
                ),
                0,
            )
        if kind in ("negative", "not"):
            inner = self._expression(parts[0], _UNARY)
            return ("!" if kind == "not" else "-") + (
                f"({inner})" if inner.startswith("-") else inner
            ), _UNARY
        return self._atom(kind, parts), _UNARY if kind == "literal" and node[1].__class__ in (
            int,
            float,
        ) and node[1] < 0 else _ATOM

    def _atom(self, kind: str, parts: list[Any]) -> str:
        if kind == "literal":
            return self._literal(parts[0])
        if kind == "name":
            return str(parts[0])
        if kind == "member":
            target, name, optional = parts
            return f"{self._expression(target, _ATOM)}{'?.' if optional else '.'}{name}"
        if kind == "index":
            return f"{self._expression(parts[0], _ATOM)}[{self._expression(parts[1])}]"
        if kind == "list":
            return f"[{', '.join(('...' + self._expression(i[1])) if i[0] == 'spread' else self._expression(i) for i in parts[0])}]"
        if kind == "object":
            return f"{{ {', '.join(self._entry(key, value) for key, value in parts[0])} }}"
        if kind == "template":
            return f"`{''.join(self._part(part) for part in parts[0])}`"
        if kind == "call":
            return f"{parts[0]}({', '.join(self._expression(arg) for arg in parts[1])})"
        element, name, source, condition = parts
        tail = f" if {self._expression(condition)}" if condition else ""
        return f"[{self._expression(element)} for {name} in {self._expression(source)}{tail}]"

    def _literal(self, value: Any) -> str:
        if (
            isinstance(value, str)
            and "'" not in value
            and '"' not in value
            and self.random.randrange(3) == 0
        ):
            return f"'{json.dumps(value, ensure_ascii=False)[1:-1]}'"
        return json.dumps(value, ensure_ascii=False)

    def _entry(self, key: str | None, value: Node) -> str:
        if key is None:
            return f"...{self._expression(value)}"
        if value == ("name", key) and self.random.randrange(2):
            return key
        return f"{key}: {self._expression(value)}"

    def _part(self, node: Node) -> str:
        if node[0] == "literal" and isinstance(node[1], str):
            return node[1].replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
        return f"${{{self._expression(node)}}}"
