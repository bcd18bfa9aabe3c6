"""JSON values as the language sees them: truth, equality, order, text, arithmetic, size.

Values have no identity and are never changed in place, so they may share structure inside the
interpreter. Code that walks a value must count what it walks: through sharing, a small value can be
an enormous tree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from rhythm.limits import DEFAULT_LIMITS, INT_MAX, INT_MIN, Limits
from rhythm.paths import Path, show_path
from rhythm.vm.prices import LONG, looked_up, search, walked

# Similar names are suggested only for names up to this length: comparing two names takes the
# product of their lengths.
LONGEST_HINT = 40
HINTS = 8  # how many names it is compared with
# Counts work, in instructions. Raises a LimitFault if one statement does too much.
Charge = Callable[[int], None]


class Fault(Exception):
    """A failure inside the workflow, with code, message and data, on its way to a `catch`."""

    catchable = True

    def __init__(self, code: str, message: str, data: Any = None, at: int | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.at = code, message, data, at

    def value(self) -> dict[str, Any]:
        """Returns the error object that `catch (e)` gets."""
        return {"code": self.code, "message": self.message, "data": self.data}


class LimitFault(Fault):
    """A limit was exceeded. Only `finally` blocks see it, and then the execution ends.

    It cannot be caught: the code that caught it would only meet it again.
    """

    catchable = False

    def __init__(self, message: str, at: int | None = None, data: Any = None) -> None:
        super().__init__("LimitExceeded", message, data, at)


class CancelFault(Fault):
    """The execution itself is cancelled. Only `finally` blocks see it."""

    catchable = False

    def __init__(self, at: int | None = None) -> None:
        super().__init__("Cancelled", "the execution was cancelled", None, at)


def kind(value: Any) -> str:
    """Returns the type of a value as messages name it."""
    names = {
        type(None): "null",
        bool: "true/false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)


def is_number(value: Any) -> bool:
    """Whether the value is a number; true and false are not."""
    return type(value) is int or type(value) is float


def truthy(value: Any) -> bool:
    """Whether the value counts as true, as in JavaScript.

    null, false, 0 and "" are false; lists and objects are true, empty or not.
    """
    return value is True or (
        value is not False and value is not None and value != 0 and value != ""
    )


def equal(left: Any, right: Any, charge: Charge) -> bool:
    """Whether two values have the same content.

    Numbers are equal by value (1 == 1.0); true is not 1.
    """
    if left is right:
        return True
    kinds = type(left), type(right)
    if list not in kinds and dict not in kinds:
        if kinds[0] is str and len(left) > LONG:
            charge(len(left) // LONG)
        return bool(left == right) and (kinds[0] is kinds[1] or bool not in kinds)
    return deep_equal(left, right, charge, equal)


def deep_equal(
    left: Any, right: Any, charge: Charge, same: Callable[[Any, Any, Charge], bool]
) -> bool:
    """Whether two lists or objects have the same content; `same` compares what is neither."""
    pairs = [(left, right)]
    while pairs:
        a, b = pairs.pop()
        if a is b:
            continue
        if type(a) is list and type(b) is list:
            if len(a) != len(b):
                return False
            charge(1 + len(a))
            pairs += zip(a, b, strict=True)
        elif type(a) is dict and type(b) is dict:
            if len(a) != len(b):
                return False
            charge(1 + 2 * len(a) + sum(map(len, a)) // LONG)
            if a.keys() != b.keys():
                return False
            pairs += [(value, b[key]) for key, value in a.items()]
        elif type(a) in (list, dict) or type(b) in (list, dict) or not same(a, b, charge):
            return False
    return True


def contains(needle: Any, container: Any, charge: Charge) -> bool:
    """Whether `needle in container`: an element of a list, a key of an object, a part of a text."""
    if type(container) is list:
        charge(2 * len(container))
        return any(equal(needle, item, charge) for item in container)
    if type(container) is dict and type(needle) is str:
        charge(looked_up(needle))
        return needle in container
    if type(container) is str and type(needle) is str:
        charge(search(container, needle))
        return needle in container
    if type(container) in (dict, str):
        raise Fault("TypeMismatch", f"{kind(container)} contains text, not {kind(needle)}")
    raise Fault("TypeMismatch", f"`in` looks into a list, an object or text, not {kind(container)}")


def in_order(op: str, left: Any, right: Any, charge: Charge) -> bool:
    """Returns `< <= > >=` of two numbers or two texts. Raises Fault for other types."""
    if type(left) is str:
        charge(len(left) // LONG)
    if not (is_number(left) and is_number(right)) and not (
        type(left) is str and type(right) is str
    ):
        raise Fault("TypeMismatch", f"cannot compare {kind(left)} and {kind(right)} with `{op}`")
    if op == "<":
        return bool(left < right)
    if op == "<=":
        return bool(left <= right)
    return bool(left > right) if op == ">" else bool(left >= right)


def as_text(value: Any, limits: Limits, charge: Charge) -> str:
    """Returns the value as a template shows it.

    Text stays as it is, numbers are written as JavaScript writes them, the rest as JSON.
    """
    if type(value) is str:
        return value
    if type(value) is list or type(value) is dict:
        return as_json(value, limits, charge)
    if type(value) is float:
        return _float_text(value)
    if type(value) is int:
        return str(value)
    return "null" if value is None else "true" if value else "false"


def _float_text(value: float) -> str:
    """Returns the shortest digits that read back as the same number.

    There is an exponent only where JavaScript writes one.
    """
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(value).removesuffix(".0").partition("e")
    if not exponent:
        return mantissa
    power, digits = int(exponent), mantissa.lstrip("-").replace(".", "")
    if not -7 < power < 21:
        return f"{mantissa}e{power:+d}"
    sign = "-" if value < 0 else ""
    return sign + (digits.ljust(power + 1, "0") if power > 0 else f"0.{'0' * (-power - 1)}{digits}")


def as_json(value: Any, limits: Limits, charge: Charge) -> str:
    """Returns the value as compact JSON text."""
    size, parts = measure(value, limits.text_bytes, "the JSON text", limits.depth)
    charge(walked(parts, size))
    return check_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")), limits)


def check_text(text: str, limits: Limits) -> str:
    """Returns the text; raises LimitFault if it is too long."""
    limit = limits.text_bytes
    if len(text) > limit // 4 and len(text.encode("utf-8", "surrogatepass")) > limit:
        raise LimitFault(f"a text over {limit // 1024:,} KiB")
    return text


def check_entries(count: int, limits: Limits) -> None:
    """Raises LimitFault if a list or object would have too many entries."""
    if count > limits.entries:
        raise LimitFault(f"a list or object of {count:,} entries; the limit is {limits.entries:,}")


def check_number(value: int | float) -> int | float:
    """Returns the number; raises Fault if it does not fit."""
    if type(value) is int:
        if not INT_MIN <= value <= INT_MAX:
            raise Fault("Overflow", "the result does not fit 64 bits")
    elif not math.isfinite(value):
        raise Fault("Overflow", "the result is too large for a number")
    return value


def arithmetic(op: str, left: Any, right: Any, limits: Limits, charge: Charge) -> Any:
    """Returns `+ - * / %`, as in JavaScript for numbers; `+` also joins texts and lists."""
    if is_number(left) and is_number(right):
        try:
            return check_number(_compute(op, left, right))
        except OverflowError:
            raise Fault("Overflow", "the result is too large for a number") from None
    if op == "+" and type(left) is str and type(right) is str:
        charge((len(left) + len(right)) // 16)
        return check_text(left + right, limits)
    if op == "+" and type(left) is list and type(right) is list:
        check_entries(len(left) + len(right), limits)
        charge((len(left) + len(right)) // 16)
        return left + right
    raise Fault("TypeMismatch", _no_arithmetic(op, left, right))


def _no_arithmetic(op: str, left: Any, right: Any) -> str:
    message = f"cannot compute {kind(left)} {op} {kind(right)}"
    if op == "+" and str in (type(left), type(right)):
        message += "; to put a value into a text, write `text ${value}`"
    elif op == "+" and list in (type(left), type(right)):
        message += "; to add one element, write list + [element]"
    return message


def _compute(op: str, a: int | float, b: int | float) -> int | float:
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if b == 0:
        raise Fault("DivisionByZero", "division by zero")
    if type(a) is int and type(b) is int:
        remainder = abs(a) % abs(b)
        if op == "%":
            return remainder if a >= 0 else -remainder
        return a // b if remainder == 0 else a / b
    return math.fmod(a, b) if op == "%" else a / b


def member(target: Any, name: str, optional: bool = False, advice: str = "") -> Any:
    """Returns the property with that name.

    If there is none, raises a Fault that names the nearest one, and has the advice in it; with
    `optional`, returns None.
    """
    if type(target) is dict:
        if name in target:
            return target[name]
        if optional:
            return None
        hint = f"{advice}{did_you_mean(name, target)}"
        raise Fault("MissingProperty", f"there is no property `{name}`{hint}")
    if target is None:
        if optional:
            return None
        raise Fault("MissingProperty", f"null has no property `{name}`{advice}")
    hint = "; write len(x)" if name in ("length", "size") else ""
    raise Fault("MissingProperty", f"{kind(target)} has no property `{name}`{hint}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message: the nearest of the known names, or some of them."""
    import difflib

    # Enough for a hint. A loop may get here often.
    some = [key for _, key in zip(range(20), known, strict=False)]
    near = [
        key
        for key in some
        if len(key) <= LONGEST_HINT and abs(len(key) - len(name)) <= len(name) // 2 + 1
    ]
    close = (
        difflib.get_close_matches(name, near[:HINTS], n=1, cutoff=0.6)
        if len(name) <= LONGEST_HINT
        else []
    )
    if close:
        return f"; did you mean `{close[0]}`?"
    return (
        (
            "; the object has "
            f"{', '.join(f'`{key[:40]}`' for key in some[:8])}{', …' if len(some) > 8 else ''}"
        )
        if some
        else "; the object is empty"
    )


def element(
    target: Any, index: Any, charge: Charge, optional: bool = False, advice: str = ""
) -> Any:
    """Returns the element at a position, the property of a key, or a character of a text.

    Negative positions count from the end. If there is none, raises a Fault, of a key with the
    advice in it; with `optional`, returns None.
    """
    if type(target) is dict and type(index) is str:
        if len(index) > LONG:
            charge(looked_up(index))
        return member(target, index, optional, advice)
    if optional and target is None:
        return None
    if type(target) is list or type(target) is str:
        position = whole(index, "an index")
        if -len(target) <= position < len(target):
            return target[position]
        if optional:
            return None
        raise Fault(
            "IndexOutOfRange", f"index {position} is outside {kind(target)} of {len(target)}"
        )
    if type(target) is dict:
        raise Fault("TypeMismatch", f"a key must be text, not {kind(index)}")
    raise Fault("TypeMismatch", f"{kind(target)} has no elements")


def whole(value: Any, what: str) -> int:
    """Returns the value as a whole number. Raises Fault if it is not one."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(check_number(int(value)))
    raise Fault(
        "TypeMismatch",
        f"{what} must be a whole number, not {kind(value) if not is_number(value) else value}",
    )


def with_element(target: Any, path: list[Any], value: Any, limits: Limits, charge: Charge) -> Any:
    """Returns a copy of the target in which the element at the path is the value.

    What is not on the path is shared with the target.
    """
    key, rest = path[0], path[1:]
    if type(target) is dict:
        charge(len(target) // 8 + 2 * looked_up(key))
        if type(key) is not str:
            raise Fault("TypeMismatch", f"a key must be text, not {kind(key)}")
        new = with_element(member(target, key), rest, value, limits, charge) if rest else value
        check_entries(len(target) + (key not in target), limits)
        return {**target, key: new}
    if type(target) is list:
        charge(len(target) // 16)
        old, copy = element(target, key, charge), target.copy()
        copy[whole(key, "an index")] = (
            with_element(old, rest, value, limits, charge) if rest else value
        )
        return copy
    raise Fault("TypeMismatch", f"{kind(target)} has no elements to set")


def weigh(value: Any, limit: int, what: str, depth: int = DEFAULT_LIMITS.depth) -> int:
    """Returns about how many bytes the value has as JSON.

    Raises LimitFault if it is over the limit or nested too deep.
    """
    return measure(value, limit, what, depth)[0]


def measure(value: Any, limit: int, what: str, depth: int) -> tuple[int, int]:
    """Returns the result of `weigh`, and how many values there are in the value, itself included.

    It goes level by level. So the depth is known without further work, and a value that shares its
    parts is counted as the tree that it would be.
    """
    total, parts, level = 3, 1, [value]
    for _ in range(depth + 1):
        below: list[Any] = []
        for item in level:
            kind_of = type(item)
            if kind_of is str:
                total += len(item)
                if not item.isascii():
                    total += len(item.encode("utf-8", "surrogatepass")) - len(item)
                    if total > limit:
                        break
            elif kind_of is dict or kind_of is list:
                count = len(item)
                parts += count
                if kind_of is dict:
                    below += item.values()
                    total += 6 * count + len("".join(item))
                else:
                    below += item
                    total += 3 * count
                # A value that shares its parts can be a tree larger than memory.
                if total > limit:
                    break
        if total > limit:
            raise LimitFault(f"{what} is over {limit // 1024:,} KiB")
        if not below:
            return total, parts
        level = below
    raise LimitFault(f"{what} is nested more than {depth} deep")


def unstorable(value: Any) -> str:
    """Says which text in a JSON value no database can store, and where; empty if there is none."""
    if problem := _text_problem(value):
        return problem
    below: list[tuple[Any, Path]] = [(value, None)]
    while below:
        item, path = below.pop()
        if type(item) is dict and (key := next(filter(_text_problem, item), None)) is not None:
            return f"{_text_problem(key)} at {show_path((path, key)).lstrip('.')}"
        for step, inner in (
            item.items() if type(item) is dict else enumerate(item) if type(item) is list else ()
        ):
            if problem := _text_problem(inner):
                return f"{problem} at {show_path((path, step)).lstrip('.')}"
            if type(inner) is dict or type(inner) is list:
                below.append((inner, (path, step)))
    return ""


def _text_problem(value: Any) -> str:
    if type(value) is not str:
        return ""
    if "\0" in value:
        return "text with the character NUL"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "text with half of a surrogate pair"
    return ""
