"""Which lists and dicts an expression may refer to: an abstract heap for one program.

Python's variables hold references; those of the engine hold values. The two differ only where
something is changed in place that another name can reach. To find such places, each expression
that makes a list or dict stands for two abstract objects: the one that was made last (`fresh`),
and all that were made before. Of what comes from outside, everything inside is one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.lang.flow.lower import GIVEN
from rhythm.record import Record


class Ref(Record):
    """An abstract object: stands for some of the lists and dicts that one expression makes.

    `site` is the expression. `fresh`: the object that it made last, not an earlier one. `inner`:
    what is inside that object. `pair`: one of those that `enumerate`, `zip` and `.items()` give, in
    Python a tuple.
    """

    site: tuple[int, int]
    fresh: bool
    inner: bool = False
    pair: bool = False


PARTS = 100  # how far the parts of a pair are from it, among the objects of one instruction
Refs = frozenset[Ref]
NOTHING: Refs = frozenset()
# What these calls give refers to nothing: numbers, texts, true and false.
SCALAR = frozenset(
    f"py.{name}"
    for name in "truth eq ne lt le gt ge contains str repr format percent int float len abs round "
    "isinstance matches error dumps math time randint uniform sub div floordiv mod pow neg pos "
    "invert bitand bitxor lshift rshift any all".split()
) | {"date_add", "date_diff", "now", "uuid", "random"}  # fmt: skip
# These give a list or dict only of two such.
BOTH = frozenset({"py.add", "py.bitor"})
# These give an element of their first argument.
ELEMENT = frozenset({"py.item", "py.attr", "py.min", "py.max", "py.choice"})
# These give their first argument itself, changed in place.
CHANGES = frozenset(
    {"py.append", "py.set", "py.without", "py.changed", "py.iadd", "py.imul", "py.ior"}
)
# `a += b`, `a *= b`, `a |= b`: a list or dict is changed in place, a number is not.
AUGMENTED = frozenset({"py.iadd", "py.imul", "py.ior"})
# These give a list of pairs, which hold the elements of what is given.
PAIRS = frozenset({"py.enumerate", "py.zip"})
# These give the elements of the elements: of lists that are joined, of pairs that become entries.
JOINED = frozenset({"flatten", "py.sum", "py.dict"})
METHODS_OF_ELEMENTS = frozenset({"get"})
# Methods and functions that Python evaluates lazily: a loop over them walks the object itself.
LAZY_METHODS = frozenset({"keys", "values", "items"})
LAZY = frozenset({"py.enumerate", "py.zip", "py.reversed", "py.iter"})
MODULE = "$module"  # what stands for the module: it holds the constants, and is always there
BEGUN = "$begun"  # what stands for tasks that were started: Python reads their arguments later


class Memory:
    """What each variable may refer to, and what each object may hold, at one place of a program."""

    def __init__(
        self,
        variables: dict[str, Refs] | None = None,
        held: dict[Ref, Refs] | None = None,
        twice: Refs = NOTHING,
        came_from: dict[tuple[int, int], Refs] | None = None,
    ) -> None:
        self.variables, self.held = variables or {}, held or {}
        # Of the elements that loops took out of something: what they may be in there.
        self.came_from = came_from or {}
        self.twice = twice  # objects that may be in two places of others

    def copy(self) -> Memory:
        return Memory(dict(self.variables), dict(self.held), self.twice, dict(self.came_from))

    def merge(self, other: Memory) -> bool:
        """Merges the memory of another path to the same place. Returns whether anything is new."""
        changed = not other.twice <= self.twice
        self.twice |= other.twice
        both: list[tuple[dict[Any, Refs], dict[Any, Refs]]] = [
            (self.variables, other.variables),
            (self.held, other.held),
            (self.came_from, other.came_from),
        ]
        for here, there in both:
            for key, refs in there.items():
                if not refs <= here.get(key, NOTHING) or key not in here:
                    here[key] = here.get(key, NOTHING) | refs
                    changed = True
        return changed

    def inside(self, refs: Refs) -> Refs:
        """Returns what these objects may hold."""
        return frozenset().union(*(self.held.get(ref, NOTHING) for ref in refs))

    def reachable(self, refs: Refs) -> Refs:
        """Returns these objects and everything inside them, however deep."""
        found, work = set(refs), list(refs)
        while work:
            for ref in self.held.get(work.pop(), NOTHING) - found:
                found.add(ref)
                work.append(ref)
        return frozenset(found)

    def make(self, site: tuple[int, int], holds: Refs = NOTHING, *, pair: bool = False) -> Refs:
        """Makes a new object: the one that was made here before becomes one of the older ones."""
        self._age(site)
        made = Ref(site, True, pair=pair)
        # What a copy holds is in two places only if both are read later: that is asked then.
        self.held[made] = self.held.get(made, NOTHING) | holds
        return frozenset({made})

    def begin(self, constants: int) -> None:
        """Makes the constants of the module, which other executions see, too."""
        for i in range(constants):
            made = self.come_in((-1, i))
            self.variables[MODULE] = self.variables.get(MODULE, NOTHING) | made

    def come_in(self, site: tuple[int, int]) -> Refs:
        """Makes an object of which nothing is known, such as the result of a task."""
        self._age(site)
        made, inner = Ref(site, True), Ref(site, True, True)
        self.held[made] = self.held[inner] = frozenset({inner})
        return frozenset({made})

    def take_out(self, site: tuple[int, int], container: Refs) -> Refs:
        """Returns what the next element of a container may be; each round of a loop has another."""
        elements = self.inside(container)
        if elements and all(ref.pair for ref in elements):
            parts = self.take_out((site[0], site[1] - PARTS), elements)
            return self.make(site, parts, pair=True)
        if not elements or not all(ref.inner for ref in elements):
            return elements
        taken = self.come_in(site)
        self.came_from[site] = self.came_from.get(site, NOTHING) | elements
        return taken

    def same_as(self, refs: Refs, but_not_at: int | None = None) -> Refs:
        """Returns these objects, and all that may be the same object under another name.

        `but_not_at`: what the loop at this place has taken out is not what it walks.
        """
        found = set(refs)
        work = list(refs)
        while work:
            site = work.pop().site
            came_from = NOTHING if site[0] == but_not_at else self.came_from.get(site, NOTHING)
            for ref in came_from - found:
                found.add(ref)
                work.append(ref)
        return frozenset(found)

    def _age(self, site: tuple[int, int]) -> None:
        def aged(refs: Refs) -> Refs:
            if not any(ref.site == site and ref.fresh for ref in refs):
                return refs
            return frozenset(ref.replace(fresh=False) if ref.site == site else ref for ref in refs)

        self.variables = {name: aged(refs) for name, refs in self.variables.items()}
        held: dict[Ref, Refs] = {}
        for ref, refs in self.held.items():
            key = ref.replace(fresh=False) if ref.site == site else ref
            held[key] = held.get(key, NOTHING) | aged(refs)
        self.held, self.twice = held, aged(self.twice)

    def put(self, into: Refs, refs: Refs) -> None:
        """Notes that these objects now hold those; one that is held already is held twice."""
        everywhere = frozenset().union(*self.held.values()) if self.held else NOTHING
        both = self.reachable(self.inside(into)) & self.reachable(refs)
        self.twice |= (refs & everywhere) | both
        for ref in into:
            self.held[ref] = self.held.get(ref, NOTHING) | refs


def _constant(number: int | None) -> Refs:
    """Returns the constant of this number."""
    return NOTHING if number is None else frozenset({Ref((-1, number), True)})


class InPlaceChange(Record):
    """A change in place: of which objects, through which variable.

    `sure` is false for `a += b` if it is not known whether `a` is a list or a number.
    """

    refs: Refs
    through: str
    call: ir.Call
    sure: bool
    into_itself: bool = False  # the object would hold itself


class ProgramFacts(Record):
    """What is known of a program besides its instructions.

    - `constants`: by the identity of its value, which constant of the module it is.
    - `defaults`: by the name of an input, which constant its default is: Python makes that once.
    - `plain`: where fields are read that hold nothing, with the names of the fields.
    """

    constants: Mapping[int, int]
    defaults: Mapping[str, int]
    plain: AbstractSet[tuple[int, str]]


class Reader:
    """Finds what the expressions of an instruction refer to, and records the objects they make."""

    def __init__(self, memory: Memory, pc: int, known: ProgramFacts) -> None:
        self.memory, self._pc, self._count = memory, pc, 0
        self._constants, self._defaults, self._plain = known.constants, known.defaults, known.plain
        self.changes: list[InPlaceChange] = []

    def _site(self) -> tuple[int, int]:
        self._count += 1
        return self._pc, self._count

    def refs(self, node: Any) -> Refs:
        """Returns the objects that the value may be."""
        memory = self.memory
        match node:
            case ir.Local(name):
                return memory.variables.get(name, NOTHING)
            case ir.Const(value) if id(value) in self._constants:
                return _constant(self._constants[id(value)])
            case ir.Const(value):
                return memory.make(self._site()) if isinstance(value, list | dict) else NOTHING
            case ir.Logic(_, left, right) | ir.Choose(_, left, right):
                self.refs(getattr(node, "condition", None))
                return self.refs(left) | self.refs(right)
            case ir.ListOf(items):
                return self._made(items)
            case ir.ObjectOf(entries):
                return self._made(value for _, value in entries)
            case ir.Comprehension():
                return self._comprehension(node)
            case ir.Index(ir.Call("py.changed") as call, ir.Const(part)):
                changed = self._change(call)
                return changed if part == 0 else self.given_back(call, changed)
            case ir.Index(ir.Call("py.unpack") as call, ir.Const(part)) if part == starred(call):
                return self.rest(self.refs(call))
            case ir.Index(ir.Local(name), ir.Const(part)) if f"{name}.{part}" in memory.variables:
                return memory.variables[f"{name}.{part}"]
            case ir.Member(ir.Local(name), field) if name == GIVEN:
                given = memory.come_in(self._site())  # each input is a value of its own
                return given | _constant(self._defaults.get(field))
            case ir.Index(target, _) | ir.Member(target, _):
                return memory.inside(self.refs(target))
            case ir.Call():
                return self._call(node)
        return NOTHING

    def given_back(self, call: ir.Call, changed: Refs) -> Refs:
        """Returns what a changing method returns: an element, or for `popitem` a pair."""
        inner = self.memory.inside(changed)
        if _method_name(call) == "popitem":
            return self.memory.make(self._site(), inner)
        return inner

    def rest(self, parts: Refs) -> Refs:
        """Returns the list that the starred name of `a, *b = x` gets, given all parts."""
        return self.memory.make(self._site(), self.memory.inside(parts))

    def sent(self, operand: Any) -> Refs:
        """Returns what the arguments of an operation, or of a group of them, may be."""
        match operand:
            case ir.Operation(args=args):
                return self._all(args)
            case ir.Group(items=items):
                return self.sent(items)
            case ir.OperandList(items=items):
                return frozenset().union(*(self.sent(item) for item in items))
            case ir.OperandObject(entries=entries):
                return frozenset().union(*(self.sent(item) for _, item in entries))
            case ir.Comprehension(element=ir.Operation(args=args)):
                return self._comprehension(operand.replace(element=ir.ListOf(args)))
        return self.refs(operand)

    def _all(self, items: Iterable[Any]) -> Refs:
        return frozenset().union(*(self.refs(item) for item in items))

    def _made(self, items: Iterable[Any]) -> Refs:
        parts: list[Refs] = []
        for item in items:
            spread = isinstance(item, ir.Spread)
            refs = self.refs(item.value if spread else item)
            parts.append(self.memory.inside(refs) if spread else refs)
        made = self.memory.make(self._site())
        for refs in parts:
            self.memory.put(made, refs)
        return made

    def _comprehension(self, node: ir.Comprehension) -> Refs:
        memory = self.memory
        source = self.refs(node.source)
        before = dict(memory.variables)
        for name in node.names:
            memory.variables[name] = memory.inside(source)
        outer = frozenset().union(*before.values()) if before else NOTHING
        elements = self.refs(node.element) if isinstance(node.element, ir.Expression) else NOTHING
        memory.variables = before
        made = memory.make(self._site(), elements)
        # The same object for every element, or inside every element.
        taken = memory.reachable(memory.inside(source))
        memory.twice |= memory.reachable(elements) & outer - taken
        return made

    def _call(self, node: ir.Call) -> Refs:
        if node.name in CHANGES:
            return self._change(node)
        given = [self.refs(arg) for arg in node.args]
        memory = self.memory
        if node.name in SCALAR or (node.at, _field_of(node)) in self._plain:
            return NOTHING
        if node.name in BOTH and not all(given):
            return NOTHING
        if node.name in ELEMENT:
            return memory.inside(given[0])
        if node.name == "py.iter":
            return given[0]
        if node.name == "py.loads":
            return memory.come_in(self._site())
        if node.name == "py.method":
            return self._method(node, given)
        inner = memory.inside(frozenset().union(*given)) if given else NOTHING
        if node.name in PAIRS:
            inner = memory.make(self._site(), inner, pair=True)
        elif node.name in JOINED:
            inner |= memory.inside(inner)
        made = memory.make(self._site(), inner)
        if node.name == "py.mul":  # `[x] * 3` holds the same x three times
            memory.twice |= inner
        elif node.name == "py.add":  # and `xs + xs` each of them twice
            memory.twice |= memory.inside(given[0]) & memory.inside(given[1])
        return made

    def _method(self, node: ir.Call, given: list[Refs]) -> Refs:
        name, inner = _method_name(node), self.memory.inside(given[0])
        if name in METHODS_OF_ELEMENTS:
            return inner | self.memory.inside(given[2])
        if name == "items":
            inner = self.memory.make(self._site(), inner, pair=True)
        if name in ("copy", "keys", "values", "items"):
            return self.memory.make(self._site(), inner)
        return self.memory.make(self._site())

    def _change(self, node: ir.Call) -> Refs:
        """Notes a change in place; returns the object that was changed, which stays the same."""
        memory, target = self.memory, node.args[0]
        if node.name == "py.set" and self._puts_back(node):
            self.refs(node.args[2])  # the change is inside: `x[k].append(v)`
            whole = self.refs(target)
            if _may_give_another(node.args[2]):
                place = self._container(whole, node)
                self.changes.append(InPlaceChange(place, root_of(target), node, True))
            return whole
        whole = self.refs(target)
        changed = whole
        added = NOTHING if node.name == "py.changed" else self._all(node.args[1:])
        if node.name in ("py.set", "py.without"):
            changed = self._container(whole, node)
            added = self.refs(node.args[2]) if node.name == "py.set" else NOTHING
        elif node.name == "py.changed":
            added = self._given(node)
        elif node.name in AUGMENTED:
            added = memory.inside(added)
        if node.name in AUGMENTED and not self._may_hold(node):
            return NOTHING  # a number or a text is added: another value
        sure = node.name not in AUGMENTED or _is_list(node.args[1])
        into_itself = node.name != "py.without" and _is_part(root_of(target), node.args[-1])
        self.changes.append(InPlaceChange(changed, root_of(target), node, sure, into_itself))
        memory.put(changed, added - changed if node.name in AUGMENTED else added)
        if node.name == "py.imul":  # `xs *= 2` holds each element twice
            memory.twice |= memory.inside(changed)
        return whole

    def _container(self, whole: Refs, node: ir.Call) -> Refs:
        """Returns what the last key of a path is a key of."""
        path = node.args[1].items if isinstance(node.args[1], ir.ListOf) else ()
        for _ in path[:-1]:
            whole = self.memory.inside(whole)
        return whole

    def _puts_back(self, node: ir.Call) -> bool:
        """Whether `py.set` puts back the changed element: `x = py.set(x, [k], py.append(x[k], v))`.

        In Python that is a change of the element alone.
        """
        value = node.args[2]
        if isinstance(value, ir.Index):
            value = value.target
        if isinstance(value, ir.Local):  # what `py.changed` gave before
            return f"{value.name}.0" in self.memory.variables
        if not isinstance(value, ir.Call) or value.name not in CHANGES:
            return False
        inner = value.args[0]
        of_item = isinstance(inner, ir.Call) and inner.name == "py.item"
        return of_item and root_of(inner) == root_of(node.args[0])

    def _given(self, node: ir.Call) -> Refs:
        """Returns what a changing method puts into its object."""
        name = _method_name(node)
        items = node.args[2].items if isinstance(node.args[2], ir.ListOf) else ()
        if name in ("extend", "update"):
            inner = self.memory.inside(self._all(items))
            # A dict takes pairs, and arguments with names.
            pairs = self.memory.inside(inner) if name == "update" else NOTHING
            return inner | pairs | self.memory.inside(self._all(node.args[3:]))
        # The last one is what is put in: the others are a key or a position.
        stored = self._all(items[-1:])
        return stored if name in ("append", "insert", "setdefault") else NOTHING

    def _may_hold(self, node: ir.Call) -> bool:
        """Whether `a += b`, `a *= b` or `a |= b` may be of a list or dict."""
        return bool(self.refs(node.args[0 if node.name == "py.imul" else 1]))


def starred(call: ir.Call) -> int | None:
    """Returns the position of the starred name of `a, *b = x`; None if there is none."""
    match call.args:
        case (_, ir.Const(int(before)), ir.Const(int())):
            return before
    return None


def _field_of(node: ir.Call) -> str:
    """Returns the field of a model that a call reads; no name for any other call."""
    match node:
        case ir.Call("py.attr" | "py.item", (_, ir.Const(str(field)))):
            return field
        case ir.Call("py.method", (_, ir.Const("get"), ir.ListOf((ir.Const(str(field)), *_)))):
            return field
    return ""


def _method_name(node: ir.Call) -> str:
    name = node.args[1].value if isinstance(node.args[1], ir.Const) else ""
    return name if isinstance(name, str) else ""


def _is_part(name: str, value: Any) -> bool:
    """Whether a value that is put somewhere is the variable, or is made with it."""
    match value:
        case ir.Local(found):
            return found == name
        case ir.ListOf(items):
            return any(_is_part(name, item) for item in items)
        case ir.ObjectOf(entries):
            return any(_is_part(name, item) for _, item in entries)
    return False


def _may_give_another(value: Any) -> bool:
    """Whether what is put back may be another value: `x[k] += 1` of a number."""
    return isinstance(value, ir.Call) and value.name in AUGMENTED and not _is_list(value.args[1])


def _is_list(node: Any) -> bool:
    """Whether the value is certainly a list."""
    if isinstance(node, ir.Call):
        return node.name in ("py.list", "py.sorted", "py.range", "py.slice", "py.reversed")
    return isinstance(node, ir.ListOf | ir.Comprehension)


def root_of(node: Any) -> str:
    """Returns the variable in which the changed object is."""
    while isinstance(node, ir.Call | ir.Index | ir.Member):
        node = node.args[0] if isinstance(node, ir.Call) else node.target
    return node.name if isinstance(node, ir.Local) else ""


def walked(node: Any) -> Iterator[Any]:
    """Yields the expressions that a loop over this source walks in Python, itself included."""
    yield node
    if isinstance(node, ir.Call):
        lazy = node.name in LAZY or (
            node.name == "py.method"
            and isinstance(node.args[1], ir.Const)
            and node.args[1].value in LAZY_METHODS
        )
        for arg in node.args if lazy else ():
            yield from walked(arg)
