"""What a workflow can call: operations, commands and builtins, with the arguments of each.

The front ends check calls against these tables, the interpreter implements them, and the
documentation lists them. A test keeps the three in agreement.
"""

from __future__ import annotations

from rhythm.record import Record


class Signature(Record):
    """How something is called: with `least` to `most` arguments.

    `usage` is the call as people write it. `options` are the keys that are allowed in the object
    literal at argument `options_at` (from 0).
    """

    usage: str
    least: int
    most: int
    options: frozenset[str] = frozenset()
    options_at: int = -1


def _operation(
    usage: str, least: int, most: int, options: str = "", options_at: int | None = None
) -> Signature:
    return Signature(
        usage,
        least,
        most,
        frozenset(options.split()),
        most - 1 if options_at is None else options_at,
    )


OPERATIONS: dict[str, Signature] = {
    "task": _operation(
        "task(name, inputs?, options?)", 1, 3, "retries backoff timeout queue priority settle"
    ),
    "workflow": _operation(
        "workflow(name, inputs?, options?)", 1, 3, "queue priority timeout version settle"
    ),
    "sleep": Signature("sleep(duration)", 1, 1),
    "sleep_until": Signature("sleep_until(time)", 1, 1),
    "signal": _operation("signal(name, options?)", 1, 2, "timeout default"),
    "event": _operation("event(type, options?)", 1, 2, "where timeout default"),
    "approval": _operation(
        "approval({ role, … })", 1, 1, "role reason timeout quorum four_eyes data escalate notify"
    ),
}

GROUPS: dict[str, Signature] = {
    "all": _operation("all(operations, options?)", 1, 2, "concurrency settle need keep"),
    "any": _operation("any(operations, options?)", 1, 2, "concurrency keep"),
    "race": _operation("race(operations, options?)", 1, 2, "keep"),
    "completed": _operation("completed(operations, options?)", 1, 2, "concurrency"),
}

EMITS: dict[str, Signature] = {
    "publish": Signature("publish(type, data?)", 1, 2),
    "send": Signature("send(execution_id, signal_name, payload?)", 2, 3),
    "log": Signature("log(message, fields?)", 1, 2),
    "progress": Signature("progress(fraction, message?)", 1, 2),
    "set_attribute": Signature("set_attribute(name, value)", 2, 2),
    "cancel": Signature("cancel(id)", 1, 1),
}

ALIASES: dict[str, str] = {
    "Task.run": "task",
    "Workflow.run": "workflow",
    "Task.delay": "sleep",
    "Timer.delay": "sleep",
    "wait_for_signal": "signal",
    "Signal.next": "signal",
    "wait_for_event": "event",
    "wait_for_approval": "approval",
    "Task.all": "all",
    "Task.any": "any",
    "Task.race": "race",
}

UNLIMITED = 255

BUILTINS: dict[str, Signature] = {
    name: Signature(usage, least, most)
    for name, usage, least, most in [
        ("len", "len(x)", 1, 1),
        ("range", "range(stop) or range(start, stop, step?)", 1, 3),
        ("keys", "keys(object)", 1, 1),
        ("values", "values(object)", 1, 1),
        ("entries", "entries(object)", 1, 1),
        ("min", "min(list) or min(a, b, …)", 1, UNLIMITED),
        ("max", "max(list) or max(a, b, …)", 1, UNLIMITED),
        ("sum", "sum(list)", 1, 1),
        ("round", "round(number, digits?)", 1, 2),
        ("floor", "floor(number)", 1, 1),
        ("ceil", "ceil(number)", 1, 1),
        ("abs", "abs(number)", 1, 1),
        ("sort", "sort(list, key?)", 1, 2),
        ("unique", "unique(list)", 1, 1),
        ("reverse", "reverse(list_or_text)", 1, 1),
        ("slice", "slice(list_or_text, start, end?)", 2, 3),
        ("concat", "concat(list, list, …)", 1, UNLIMITED),
        ("flatten", "flatten(list)", 1, 1),
        ("contains", "contains(list_object_or_text, x)", 2, 2),
        ("find_index", "find_index(list_or_text, x)", 2, 2),
        ("upper", "upper(text)", 1, 1),
        ("lower", "lower(text)", 1, 1),
        ("trim", "trim(text)", 1, 1),
        ("split", "split(text, separator?)", 1, 2),
        ("join", "join(list, separator?)", 1, 2),
        ("replace", "replace(text, old, new)", 3, 3),
        ("starts_with", "starts_with(text, prefix)", 2, 2),
        ("ends_with", "ends_with(text, suffix)", 2, 2),
        ("str", "str(x)", 1, 1),
        ("int", "int(x)", 1, 1),
        ("float", "float(x)", 1, 1),
        ("bool", "bool(x)", 1, 1),
        ("json", "json(x)", 1, 1),
        ("parse_json", "parse_json(text)", 1, 1),
        ("get", "get(list_or_object, key_or_path, default?)", 2, 3),
        ("merge", "merge(object, object, …)", 1, UNLIMITED),
        ("pick", "pick(object, keys)", 2, 2),
        ("omit", "omit(object, keys)", 2, 2),
        ("now", "now()", 0, 0),
        ("date_add", "date_add(time, duration)", 2, 2),
        ("date_diff", "date_diff(later, earlier)", 2, 2),
        ("format_date", "format_date(time, format)", 2, 2),
        ("uuid", "uuid()", 0, 0),
        ("random", "random()", 0, 0),
        ("hash", "hash(x)", 1, 1),
        ("base64", "base64(text)", 1, 1),
        ("check_inputs", "check_inputs(inputs, schema, workflow)", 3, 3),
    ]
}

CALLABLE = (*OPERATIONS, *GROUPS, *EMITS, *BUILTINS)

# What Python's operators, functions and methods mean, as calls: Python workflows are made of these.
# Tuples are lists here, and the keys of a dict are text.
PYTHON: dict[str, Signature] = {
    f"py.{usage.partition('(')[0]}": Signature(f"py.{usage}", least, most)
    for usage, least, most in [
        ("truth(x)", 1, 1),
        ("add(a, b)", 2, 2),
        ("sub(a, b)", 2, 2),
        ("mul(a, b)", 2, 2),
        ("div(a, b)", 2, 2),
        ("floordiv(a, b)", 2, 2),
        ("mod(a, b)", 2, 2),
        ("pow(a, b)", 2, 2),
        ("bitand(a, b)", 2, 2),
        ("bitor(a, b)", 2, 2),
        ("bitxor(a, b)", 2, 2),
        ("lshift(a, b)", 2, 2),
        ("rshift(a, b)", 2, 2),
        ("iadd(a, b)", 2, 2),
        ("neg(x)", 1, 1),
        ("pos(x)", 1, 1),
        ("invert(x)", 1, 1),
        ("eq(a, b)", 2, 2),
        ("ne(a, b)", 2, 2),
        ("lt(a, b)", 2, 2),
        ("le(a, b)", 2, 2),
        ("gt(a, b)", 2, 2),
        ("ge(a, b)", 2, 2),
        ("contains(container, item)", 2, 2),
        ("str(x)", 1, 1),
        ("repr(x)", 1, 1),
        ("format(x, spec, conversion?)", 2, 3),
        ("percent(template, values)", 2, 2),
        ("int(x, base?)", 1, 2),
        ("float(x)", 1, 1),
        ("list(x?)", 0, 1),
        ("dict(x?)", 0, 1),
        ("item(x, key)", 2, 2),
        ("slice(x, start, stop, step)", 4, 4),
        ("attr(x, name)", 2, 2),
        ("set(x, path, value)", 3, 3),
        ("without(x, path)", 2, 2),
        ("append(x, v)", 2, 2),
        ("len(x)", 1, 1),
        ("range(start_or_stop, stop?, step?)", 1, 3),
        ("iter(x)", 1, 1),
        ("enumerate(x, start?)", 1, 2),
        ("zip(strict, x, …)", 1, UNLIMITED),
        ("reversed(x)", 1, 1),
        ("sorted(x, reverse, keys?)", 2, 3),
        ("min(x, default, keys?)", 2, 3),
        ("max(x, default, keys?)", 2, 3),
        ("sum(x, start?)", 1, 2),
        ("any(x)", 1, 1),
        ("all(x)", 1, 1),
        ("abs(x)", 1, 1),
        ("round(x, digits?)", 1, 2),
        ("divmod(a, b)", 2, 2),
        ("unpack(x, before, after)", 3, 3),
        ("method(x, name, args, kwargs?)", 3, 4),
        ("changed(x, name, args, kwargs?)", 3, 4),
        ("isinstance(x, names)", 2, 2),
        ("matches(error, names)", 2, 2),
        ("error(error, what)", 2, 2),
        ("iadd_unshared(a, b)", 2, 2),
        ("imul(a, b)", 2, 2),
        ("imul_unshared(a, b)", 2, 2),
        ("ior(a, b)", 2, 2),
        ("ior_unshared(a, b)", 2, 2),
        ("dumps(x, sort_keys?, indent?)", 1, 3),
        ("loads(text)", 1, 1),
        ("math(name, args, kwargs?)", 2, 3),
        ("time()", 0, 0),
        ("randint(a, b)", 2, 2),
        ("uniform(a, b)", 2, 2),
        ("choice(x)", 1, 1),
        ("sample(x, k)", 2, 2),
        ("shuffled(x)", 1, 1),
    ]
}
BUILTINS |= PYTHON

BINARY_OPERATORS = frozenset({"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in"})
# `and` and `or` take Python's truth; only Python workflows have them.
LOGIC_OPERATORS = frozenset({"&&", "||", "??", "and", "or"})
UNARY_OPERATORS = frozenset({"-", "!"})
