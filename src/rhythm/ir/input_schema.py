"""The inputs that a workflow declares, as JSON Schema, and the one check of inputs against it.

It is a small part of JSON Schema:

- `type`: null, boolean, integer, number, string, array, object, or a list of these; `enum`;
  `anyOf`, of which the first that fits is taken; `default`.
- `format`: those of `formats`, and `double`, a number that is kept as a float.
- of arrays: `items`, `prefixItems` (then the length is theirs), `uniqueItems`.
- of objects: `properties`, `required`, `additionalProperties`; and `x-positional`, a list of
  properties that may also be given as a list of values, in this order.

A schema that says nothing allows anything. A check returns the value as it is kept: with defaults,
and in the form of its format. A schema is a tree without references, so that each part of a value
meets each part of a schema once, and the time of a check is bounded by the product of both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from rhythm.errors import InvalidInputs
from rhythm.ir.formats import FORMATS
from rhythm.paths import Path, show_path
from rhythm.suggest import nearest

Schema = Mapping[str, Any]
# Counts work. It may raise an error if it is too much.
Spend = Callable[[int], None]

WORDS: dict[type, str] = {
    type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "text",
    list: "a list", dict: "an object",
}  # fmt: skip
MAX_PARTS = 2_000  # of one schema
MAX_DEPTH = 64
MAX_WORK = 1_000_000  # of one check that nobody else counts
MAX_CHOICES = 10  # that a message lists
MAX_NAMES = 20
VALUE_CHARACTERS = 60  # longest value in a message
MAX_MEMBER_DEPTH = 8  # of a list in a set
CHARACTERS = 16  # of a text with a format that are read in the time of one step
LONG = 256  # characters of a key or text that are compared in that time


class InvalidSchema(ValueError):
    """It is not a schema of the part of JSON Schema that is known here."""


class WrongValue(Exception):
    """A value that does not fit. `path` leads to it from the inputs, the innermost step first."""

    def __init__(self, problem: str, expected: str = "") -> None:
        super().__init__(problem)
        self.problem, self.expected = problem, expected
        self.steps: list[str | int] = []

    def inside(self, step: str | int) -> WrongValue:
        """Returns itself, with a path that begins one step further out."""
        self.steps.append(step)
        return self

    @property
    def path(self) -> str:
        """The way to the value as one would write it: `order.items[3]`."""
        path: Path = None
        for step in reversed(self.steps):
            path = (path, step)
        return show_path(path).removeprefix(".")


class SchemaCheck:
    """What a schema asks for.

    Values of the types in `exact` fit as they are. Any other is converted by `convert`, or refused
    with `WrongValue`. `takes` has the words of the JSON types that may fit; empty if any may.
    """

    __slots__ = ("convert", "exact", "takes")

    def __init__(
        self,
        takes: frozenset[str],
        convert: Callable[[Any, Spend], Any],
        exact: frozenset[type] = frozenset(),
    ) -> None:
        self.takes, self.convert, self.exact = takes, convert, exact

    def fit(self, value: Any, spend: Spend) -> Any:
        """Returns the value as it is kept. Raises `WrongValue` if it does not fit."""
        return value if type(value) in self.exact else self.convert(value, spend)


def check_inputs(workflow: str, schema: Schema, inputs: Any) -> Any:
    """Returns inputs as a workflow with this schema takes them, with defaults.

    Raises `InvalidInputs` that names what is missing, unknown or of another type.
    """
    return DeclaredInputs(schema).check(workflow, inputs)


def words_taken(schema: Schema) -> frozenset[str]:
    """Returns the words of the JSON types that may fit a schema; empty if any may."""
    kind = _Reading().kind(schema, 0)
    return kind.takes if kind else frozenset()


def fitted(schema: Schema, value: Any) -> Any:
    """Returns a value as it is kept by a schema. Raises `WrongValue` if it does not fit."""
    kind = _Reading().kind(schema, 0)
    return kind.fit(value, _Budget().spend) if kind else value


class _Budget:
    """Ends a check that takes too long."""

    def __init__(self) -> None:
        self.left = MAX_WORK

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise InvalidInputs("the inputs are too large to be checked: pass a reference to them")


class DeclaredInputs:
    """A schema that was read: checks the inputs of a workflow.

    Raises `InvalidSchema` if it is no schema.
    """

    def __init__(self, schema: Any) -> None:
        reading = _Reading()
        self._kind = reading.kind(schema, 0)
        self.parts = reading.parts
        properties = schema.get("properties")
        self._names = [*properties] if isinstance(properties, dict) else []

    def check(self, workflow: str, inputs: Any, spend: Spend | None = None) -> Any:
        """Returns the inputs as the workflow takes them. Raises `InvalidInputs`."""
        spend = spend or _Budget().spend
        given = {} if inputs is None else inputs
        if self._kind is None:
            return given
        if type(given) is not dict:
            word = WORDS.get(type(given), "another value")
            raise InvalidInputs(
                f"the inputs of workflow `{workflow}` must be an object, not {word}; "
                f"{self._takes()}"
            )
        try:
            return self._kind.fit(given, spend)
        except _Unknown as unknown:
            if not unknown.steps:
                raise InvalidInputs(
                    f"workflow `{workflow}` has no input `{unknown.name}`; "
                    f"{unknown.help or self._takes()}"
                ) from None
            raise _refusal(workflow, unknown) from None
        except _Missing as missing:
            if not missing.steps:
                raise InvalidInputs(
                    f"workflow `{workflow}` also needs {missing.inputs}; {self._takes()}"
                ) from None
            raise _refusal(workflow, missing) from None
        except WrongValue as wrong:
            raise _refusal(workflow, wrong) from None

    def _takes(self) -> str:
        return f"it takes {_listed(self._names)}" if self._names else "it takes no inputs"


def _refusal(workflow: str, wrong: WrongValue) -> InvalidInputs:
    return InvalidInputs(f"the input `{wrong.path}` of workflow `{workflow}` {wrong.problem}")


class _Unknown(WrongValue):
    def __init__(self, name: str, known: Mapping[str, Any]) -> None:
        near = nearest(name, list(known)[:MAX_PARTS])
        self.name = _cut(name)
        self.help = f"did you mean `{near}`?" if near else ""
        takes = f"it takes {_listed([*known])}" if known else "it takes no keys"
        super().__init__(f"has `{self.name}`, which is not known; {self.help or takes}")


class _Missing(WrongValue):
    def __init__(self, names: list[str]) -> None:
        *others, last = (f"`{_cut(name)}`" for name in names[:MAX_NAMES])
        listed = f"{', '.join(others)} and {last}" if others else last
        self.inputs = f"the input{'s' if others else ''} {listed}"
        super().__init__(f"also needs {listed}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(map(_cut, names[:MAX_NAMES])) + more


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_CHARACTERS else f"{text[:VALUE_CHARACTERS]}…"


def shown(value: Any) -> str:
    """Returns a value for a message: a scalar as JSON, cut short; of others the word."""
    if type(value) in (list, dict):
        return WORDS[type(value)]
    if type(value) is str:
        return json.dumps(_cut(value), ensure_ascii=False)
    return _cut(json.dumps(value))


def _refused(value: Any, takes: frozenset[str], expected: str) -> WrongValue:
    """Returns the error for a value: with its type if that is wrong, else with the value."""
    word = WORDS.get(type(value), "another value")
    given = shown(value) if word in takes else word
    return WrongValue(f"must be {expected}, not {given}", expected)


# reading a schema


class _Reading:
    """Turns a schema into kinds, and counts its parts."""

    def __init__(self) -> None:
        self.parts = self.names = 0

    def kind(self, schema: Any, depth: int) -> SchemaCheck | None:
        """Returns what a schema asks for; None if it says nothing."""
        self._count(1, depth)
        if not isinstance(schema, dict):
            raise InvalidSchema(
                f"a schema must be an object, not {WORDS.get(type(schema), 'that')}"
            )
        if "enum" in schema:
            return self._choice(schema["enum"])
        if "anyOf" in schema:
            return _union([self.kind(part, depth + 1) for part in _list_of(schema, "anyOf")])
        if "type" not in schema:
            return None
        form = schema.get("format")
        if isinstance(form, str) and form in FORMATS:
            return _formatted(form)
        types = _list_of(schema, "type") if isinstance(schema["type"], list) else [schema["type"]]
        self._count_names(len(types) - 1)
        return _union([self._typed(name, schema, depth) for name in types])

    def _count(self, parts: int, depth: int) -> None:
        self.parts += parts
        if self.parts > MAX_PARTS or depth > MAX_DEPTH:
            raise InvalidSchema(
                f"a schema has at most {MAX_PARTS:,} parts, and is nested at most {MAX_DEPTH} deep"
            )

    def _count_names(self, names: int) -> None:
        """Counts names in lists beside the parts: a list that parts share is read for each."""
        self.names += names
        if self.names > 2 * MAX_PARTS:
            raise InvalidSchema(f"a schema has at most {2 * MAX_PARTS:,} names in its lists")

    def _typed(self, name: Any, schema: dict[str, Any], depth: int) -> SchemaCheck:
        if name == "array":
            return self._array(schema, depth)
        if name == "object":
            return self._object(schema, depth)
        if name == "number" and schema.get("format") == "double":
            return _FLOAT
        if not isinstance(name, str) or name not in _PLAIN:
            known = ", ".join([*_PLAIN, "array", "object"])
            raise InvalidSchema(f"a type must be one of {known}, not {shown(name)}")
        return _PLAIN[name]

    def _choice(self, choices: Any) -> SchemaCheck:
        if not isinstance(choices, list) or not choices:
            raise InvalidSchema("`enum` is a list of values")
        self._count(len(choices), 0)
        return _choice(choices)

    def _array(self, schema: dict[str, Any], depth: int) -> SchemaCheck:
        if "prefixItems" in schema:
            parts = _list_of(schema, "prefixItems")
            return _tuple([self.kind(part, depth + 1) for part in parts])
        items = self.kind(schema.get("items", {}), depth + 1)
        return _array(items, schema.get("uniqueItems") is True)

    def _object(self, schema: dict[str, Any], depth: int) -> SchemaCheck:
        properties = schema.get("properties", {})
        required, order = schema.get("required", []), schema.get("x-positional")
        for names in (required, order):
            self._count_names(len(names) if isinstance(names, list) else 0)
        if not isinstance(properties, dict) or not _are_names(required):
            raise InvalidSchema("`properties` is an object, and `required` a list of names")
        if order is not None and not _are_names(order):
            raise InvalidSchema("`x-positional` is a list of names")
        kinds = {name: self.kind(part, depth + 1) for name, part in properties.items()}
        defaults = {name: part["default"] for name, part in properties.items() if "default" in part}
        more = schema.get("additionalProperties", True)
        others = None if isinstance(more, bool) else self.kind(more, depth + 1)
        if not kinds and not required and more is True:
            return _ANY_OBJECT
        shape = _Shape(kinds, required, defaults, others, more is not False, order)
        takes = {"an object"} if order is None else {"an object", "a list"}
        return SchemaCheck(frozenset(takes), shape.convert)


def _list_of(schema: dict[str, Any], key: str) -> list[Any]:
    if not isinstance(schema[key], list) or not schema[key]:
        raise InvalidSchema(f"`{key}` is a list that is not empty")
    return list(schema[key])


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


# kinds of values


def _only(types: tuple[type, ...], expected: str) -> SchemaCheck:
    takes = frozenset(WORDS[cls] for cls in types)

    def refuse(value: Any, spend: Spend) -> Any:
        raise _refused(value, takes, expected)

    return SchemaCheck(takes, refuse, frozenset(types))


def _whole(value: Any, spend: Spend) -> int:
    if type(value) is float and value.is_integer() and abs(value) < 2**63:
        return int(value)
    raise _refused(value, _NUMBER, "a whole number")


def _float(value: Any, spend: Spend) -> float:
    if type(value) is int:
        return float(value)
    raise _refused(value, _NUMBER, "a number")


_NUMBER = frozenset({"a number"})
_FLOAT = SchemaCheck(_NUMBER, _float, frozenset({float}))
_PLAIN: dict[str, SchemaCheck] = {
    "null": _only((type(None),), "null"),
    "boolean": _only((bool,), "true or false"),
    "integer": SchemaCheck(_NUMBER, _whole, frozenset({int})),
    "number": _only((int, float), "a number"),
    "string": _only((str,), "text"),
}
_ANY_OBJECT = _only((dict,), "an object")
_TYPE_WORDS = {"string": "text", "number": "a number"}


def _formatted(name: str) -> SchemaCheck:
    form = FORMATS[name]
    takes = frozenset(_TYPE_WORDS[each] for each in form.types)

    def convert(value: Any, spend: Spend) -> Any:
        if WORDS.get(type(value)) in takes:
            spend(2 + (len(value) // CHARACTERS if type(value) is str else 0))
            try:
                return form.keep(value)
            except (ValueError, OverflowError):
                pass
        raise _refused(value, takes, form.expected)

    return SchemaCheck(takes, convert)


def _array(item: SchemaCheck | None, unique: bool) -> SchemaCheck:
    def convert(value: Any, spend: Spend) -> Any:
        if type(value) is not list:
            raise _refused(value, frozenset(), "a list")
        spend(1 + len(value) // 8)
        items = value
        if item is not None and not item.exact.issuperset(map(type, value)):
            spend(2 * len(value))
            items = [_step(item, part, i, spend) for i, part in enumerate(value)]
        return _unique(items, spend) if unique else items

    exact = frozenset({list}) if item is None and not unique else frozenset()
    return SchemaCheck(frozenset({"a list"}), convert, exact)


def _unique(items: list[Any], spend: Spend) -> list[Any]:
    """Returns what a set of these keeps: each once, in order if they have one."""
    members: dict[Any, Any] = {}
    for item in items:
        members.setdefault(_hashable(item, spend), item)
    try:
        return sorted(members.values())
    except TypeError:
        return sorted(members.values(), key=lambda item: (type(item).__name__, repr(item)))


def _hashable(item: Any, spend: Spend) -> Any:
    """Returns what tells members of a set apart.

    A list becomes text: whoever sends numbers can make tuples of them that all have one hash.
    """
    member = _member(item, spend, 0)
    return (repr(member), list) if type(item) is list else member


def _member(item: Any, spend: Spend, depth: int) -> Any:
    """Returns the item with equal numbers written alike: sets take True and 1.0 for 1."""
    spend(4 + (len(item) // CHARACTERS if type(item) is str else 0))
    if type(item) is dict or depth > MAX_MEMBER_DEPTH:
        raise WrongValue("is a list with members that cannot be in a set")
    if type(item) is list:
        return [_member(part, spend, depth + 1) for part in item]
    whole = type(item) is bool or (type(item) is float and item.is_integer())
    return int(item) if whole else item


def _tuple(kinds: list[SchemaCheck | None]) -> SchemaCheck:
    takes = frozenset({"a list"})

    def convert(value: Any, spend: Spend) -> Any:
        if type(value) is not list:
            raise _refused(value, frozenset(), f"a list of {len(kinds)}")
        if len(value) != len(kinds):
            raise WrongValue(f"must be a list of {len(kinds)}, not of {len(value):,}")
        spend(1 + 2 * len(kinds))
        return [
            part if kind is None else _step(kind, part, i, spend)
            for i, (kind, part) in enumerate(zip(kinds, value, strict=True))
        ]

    return SchemaCheck(takes, convert)


def _step(kind: SchemaCheck, value: Any, step: str | int, spend: Spend) -> Any:
    """Fits a part of a value; the path of a `WrongValue` gets this step."""
    try:
        return kind.fit(value, spend)
    except WrongValue as wrong:
        raise wrong.inside(step) from None


class _Shape:
    """An object with certain keys."""

    def __init__(
        self,
        kinds: Mapping[str, SchemaCheck | None],
        required: list[str],
        defaults: Mapping[str, Any],
        others: SchemaCheck | None,
        others_fit: bool,
        order: list[str] | None,
    ) -> None:
        self.kinds, self.required, self.defaults = kinds, required, defaults
        self.others, self.others_fit, self.order = others, others_fit, order

    def convert(self, value: Any, spend: Spend) -> Any:
        if type(value) is list and self.order is not None and len(value) <= len(self.order):
            value = dict(zip(self.order, value, strict=False))
        if type(value) is not dict:
            raise _refused(value, frozenset(), "an object")
        spend(3 + len(value) + len(self.required) + len(self.defaults))
        spend(sum(map(len, value)) // LONG)
        if not self.others_fit:
            self._refuse_unknown(value, spend)
        missing = [name for name in self.required if name not in value]
        if missing:
            raise _Missing(missing)
        made = {
            key: part
            if (kind := self.kinds.get(key, self.others)) is None
            else _step(kind, part, key, spend)
            for key, part in value.items()
        }
        for name, default in self.defaults.items():
            if name not in made:
                made[name] = default
        return made

    def _refuse_unknown(self, value: dict[str, Any], spend: Spend) -> None:
        if value.keys() <= self.kinds.keys():
            return
        spend(10 * min(len(self.kinds), MAX_PARTS))
        raise _Unknown(next(key for key in value if key not in self.kinds), self.kinds)


def _union(parts: list[SchemaCheck | None]) -> SchemaCheck | None:
    """Returns a kind that takes the first part that fits.

    A value that one of the parts takes as it is, and that no part before it could convert, passes
    at once.
    """
    kinds = [part for part in parts if part is not None]
    if len(kinds) < len(parts):
        return None
    if len(kinds) == 1:
        return kinds[0]
    exact, earlier, open_ended = set[type](), set[str](), False
    for part in kinds:
        exact |= {cls for cls in part.exact if not open_ended and WORDS[cls] not in earlier}
        earlier |= part.takes
        open_ended = open_ended or not part.takes
    takes = frozenset(earlier)
    expected = " or ".join(dict.fromkeys(word for part in kinds for word in sorted(part.takes)))

    def convert(value: Any, spend: Spend) -> Any:
        word, problems = WORDS.get(type(value), ""), list[WrongValue]()
        for part in kinds:
            spend(2)
            try:
                return part.fit(value, spend)
            except WrongValue as wrong:
                if word in part.takes:
                    problems.append(wrong)
        raise _nearest_problem(value, problems) if problems else _refused(value, takes, expected)

    return SchemaCheck(takes, convert, frozenset(exact))


def _nearest_problem(value: Any, problems: list[WrongValue]) -> WrongValue:
    """Returns the problem of the alternative that came nearest; of a scalar, all together."""
    if type(value) in (list, dict) or len(problems) == 1:
        return max(problems, key=lambda problem: len(problem.steps))
    either = " or ".join(dict.fromkeys(problem.expected for problem in problems))
    return WrongValue(f"must be {either}, not {shown(value)}", either)


def _choice(choices: list[Any]) -> SchemaCheck:
    scalars = {_key(each): each for each in choices if type(each) not in (list, dict)}
    others = [each for each in choices if type(each) in (list, dict)]
    listed = ", ".join(shown(each) for each in choices[:MAX_CHOICES])
    listed += ", …" if len(choices) > MAX_CHOICES else ""
    expected = listed if len(choices) == 1 else f"one of {listed}"
    takes = frozenset(WORDS[type(each)] for each in choices)

    def convert(value: Any, spend: Spend) -> Any:
        spend(1 + (len(value) // LONG if type(value) is str else 0))
        whole = type(value) is float and value.is_integer() and abs(value) < 2**63
        for form in (value, int(value)) if whole else (value,):
            if type(form) in (list, dict):
                if any(_equal(form, each, spend) for each in others):
                    return form
            elif (key := _key(form)) in scalars:
                return scalars[key]
        raise _refused(value, takes, expected)

    return SchemaCheck(takes, convert)


def _equal(value: Any, choice: Any, spend: Spend) -> bool:
    """Whether a value is a choice: true is not 1. Each comparison is counted."""
    spend(2 + (len(value) // LONG if type(value) is str else 0))
    if type(value) is list and type(choice) is list:
        return len(value) == len(choice) and all(
            _equal(*pair, spend) for pair in zip(value, choice, strict=True)
        )
    if type(value) is dict and type(choice) is dict:
        spend(len(choice))
        return value.keys() == choice.keys() and all(
            _equal(part, choice[key], spend) for key, part in value.items()
        )
    if {type(value), type(choice)} & {list, dict}:
        return False
    return (type(value) is bool) is (type(choice) is bool) and bool(value == choice)


def _key(value: Any) -> tuple[type, Any]:
    """Returns what tells scalars apart: 1 is not 1.0, and not true."""
    return type(value), value
