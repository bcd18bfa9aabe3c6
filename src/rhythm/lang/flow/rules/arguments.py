"""Whether arguments that are written out fit the tables of `ir.operations`.

It checks their number, options, names and durations. Computed arguments are not checked.
"""

from __future__ import annotations

from typing import Any

from rhythm.durations import duration_s, meant_duration
from rhythm.ir.operations import UNLIMITED, Signature
from rhythm.ir.options import BACKOFF, INSTEAD, STAGE, WHOLE, is_factor, whole_problem
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.problems import Problems
from rhythm.lang.flow.rules.kinds import COMPUTED, constant_of, literal_keys
from rhythm.limits import LONGEST_NAME, TEXTS
from rhythm.suggest import nearest

# What an option's literal value must be. Durations and whole numbers are checked further.
OPTION_TYPES = {
    "retries": "whole", "backoff": "backoff", "timeout": "duration", "queue": "name",
    "priority": "whole",
    "settle": "bool", "version": "name", "where": "where", "concurrency": "whole",
    "need": "whole",
    "keep": "bool", "role": "name", "reason": "reason", "quorum": "whole", "four_eyes": "bool",
    "notify": "name", "after": "duration", "initial": "duration", "max": "duration",
    "factor": "factor", "jitter": "bool",
}  # fmt: skip
OPTION_EXAMPLES = {
    "whole": "1", "name": '"name"', "reason": '"why"',
    "bool": "true", "where": '{ "order.id": 7 }', "factor": "2",
}  # fmt: skip
ANY_LENGTH = "1h30m"  # shows all that a duration may have, and looks like nobody's own
# Options that may be null, which is as if they were not there.
NULLABLE = frozenset(
    "retries backoff timeout queue priority version concurrency need notify reason where after "
    "settle keep".split()
)
# Calls whose arguments, from the first on, are names.
NAMED = {"task": 1, "workflow": 1, "signal": 1, "event": 1, "publish": 1, "set_attribute": 1}


def counted(node: nodes.Call, signature: Signature, problems: Problems) -> bool:
    """Whether the call has an allowed number of arguments; reports it if not."""
    if signature.least <= len(node.args) <= signature.most:
        return True
    least, most = signature.least, signature.most
    wanted = (
        f"{least}"
        if least == most
        else f"{least} or more"
        if most == UNLIMITED
        else f"{least} to {most}"
    )
    message = (
        f"`{node.name}` takes {wanted} argument{'' if wanted == '1' else 's'}, not {len(node.args)}"
    )
    problems.about("F024", message, node, help=f"write {signature.usage}")
    return False


def check_options(node: nodes.Call, signature: Signature, problems: Problems) -> None:
    """Reports options that are unknown or cannot work."""
    if not signature.options or len(node.args) <= signature.options_at:
        return
    options = node.args[signature.options_at]
    if isinstance(options, nodes.Literal | nodes.ListLiteral | nodes.Template):
        problems.about(
            "F026",
            f"the options of `{node.name}` are an object",
            options,
            help=f"write {signature.usage}",
        )
    _check_entries(node.name, options, signature.options, problems)


def _check_entries(name: str, options: Node, known: frozenset[str], problems: Problems) -> None:
    for entry in options.entries if isinstance(options, nodes.ObjectLiteral) else ():
        if not isinstance(entry, nodes.Entry):
            continue
        if entry.key not in known:
            near = nearest(entry.key, known)
            help = INSTEAD.get(entry.key) or (
                f"did you mean `{near}`?" if near else f"`{name}` knows {', '.join(sorted(known))}"
            )
            problems.about("F025", f"`{name}` has no option `{entry.key}`", entry, help=help)
        elif problem := _option_problem(entry):
            problems.about(
                "F026",
                problem,
                entry.value,
                help=f"write {{ {entry.key}: {_example(entry)} }}",
            )
        elif entry.key == "backoff":
            _check_entries("backoff", entry.value, BACKOFF, problems)
        elif entry.key == "escalate":
            _check_stages(entry.value, problems)


def _example(entry: nodes.Entry) -> str:
    """Returns what to write for an option: of a duration what was meant, if that is clear."""
    kind = OPTION_TYPES[entry.key]
    if kind not in ("duration", "backoff"):
        return OPTION_EXAMPLES[kind]
    return f'"{meant_duration(constant_of(entry.value)) or ANY_LENGTH}"'


def _check_stages(given: Node, problems: Problems) -> None:
    """Checks the stages of `escalate`: a role, `{ role, after, timeout }`, or a list of them."""
    stages = given.items if isinstance(given, nodes.ListLiteral) else [given]
    if len(stages) > TEXTS.escalations:
        message = f"`escalate` has at most {TEXTS.escalations} stages, not {len(stages):,}"
        problems.about("F026", message, given, help="ask fewer roles, one after the other")
    for stage in stages:
        _check_entries("escalate", stage, STAGE, problems)
        if isinstance(stage, nodes.ObjectLiteral):
            if "role" not in literal_keys(stage, "role"):
                help = 'write { role: "director", after: "4h" }'
                problems.about("F026", "who is asked next needs a `role`", stage, help=help)
        elif stage is given and constant_of(stage) is None:
            return
        elif (role := constant_of(stage)) is not COMPUTED and (wrong := _name_problem(role)):
            help = (
                'write { escalate: "director" } or { escalate: { role: "director", after: "4h" } }'
            )
            message = f"`escalate` {'is a role' if not isinstance(role, str) else wrong}"
            problems.about("F026", message, stage, help=help)


def check_literals(node: nodes.Call, problems: Problems) -> None:
    """Reports arguments that are written out and cannot work."""
    first = node.args[0] if node.args else None
    if (
        node.name == "approval"
        and isinstance(first, nodes.ObjectLiteral)
        and "role" not in literal_keys(first, "role")
    ):
        problems.about(
            "F026",
            "an approval needs a `role`: who may decide",
            first,
            help='write approval({ role: "manager", … })',
        )
    if node.name in NAMED:
        _check_name(node, node.args[0], "the first argument", problems)
    elif node.name == "send":
        _check_name(node, node.args[1], "the second argument", problems)
    if node.name in _ARGUMENTS:
        at, check, help = _ARGUMENTS[node.name]
        value = constant_of(node.args[at]) if len(node.args) > at else COMPUTED
        if value is not COMPUTED and (problem := check(value)):
            meant = meant_duration(value) if node.name == "sleep" else ""
            help = f'write sleep("{meant}")' if meant else help
            problems.about("F026", problem, node.args[at], help=help)


def check_group(node: nodes.Call, problems: Problems) -> None:
    """Reports a group that cannot work: a race of nothing, `need` beside `settle`."""
    items = node.args[0]
    if node.name == "race" and constant_of(items) in ([], {}):
        help = 'write race([task("name"), sleep("1h")])'
        problems.about("F026", "a race of nothing never ends", items, help=help)
    options = constant_of(node.args[1]) if len(node.args) > 1 else COMPUTED
    both = isinstance(options, dict) and options.get("settle") and options.get("need") is not None
    if both:
        message = "`need` and `settle` exclude each other: with `need`, failures are left out"
        problems.about("F026", message, node.args[1], help="keep one of them")


def _check_name(node: nodes.Call, given: Node, which: str, problems: Problems) -> None:
    name = constant_of(given)
    if name is COMPUTED or not (problem := _name_problem(name)):
        return
    if isinstance(name, str) and name:
        message, help = f"a name {problem}", "find a shorter name"
    else:
        before = "id, " if node.name == "send" else ""
        message = f"{which} of `{node.name}` is a name"
        help = f'write {node.name}({before}"name", …)'
    problems.about("F026", message, given, help=help)


def checked_name(value: Any, what: str) -> Any:
    """Returns a name. Raises `ValueError` if it cannot be one; `what` names it in the message."""
    if problem := _name_problem(value):
        raise ValueError(f"{what} {problem}")
    return value


def is_name(value: Any) -> bool:
    """Whether a value can be the name of a task, role, queue, signal or event."""
    return not _name_problem(value)


def _name_problem(value: Any) -> str:
    """Says why a value cannot be a name; empty if it can."""
    if not isinstance(value, str) or not value:
        return "is text, and not empty"
    if len(value) > LONGEST_NAME:
        return f"has at most {LONGEST_NAME} characters, not {len(value):,}"
    return ""


def _sleep_problem(value: Any) -> str:
    try:
        duration_s(value)
    except ValueError as problem:
        return str(problem)
    return ""


def _time_problem(value: Any) -> str:
    return "" if isinstance(value, str) and is_time(value) else "this is no time"


def is_time(text: str) -> bool:
    """Whether the text is a time that a workflow can wait for."""
    from datetime import UTC, datetime

    try:
        time = datetime.fromisoformat(text)
        time.astimezone(UTC) if time.tzinfo else time
    except (ValueError, OverflowError):
        return False
    return len(text) <= 64


def _progress_problem(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if number and 0 <= value <= 1 else "`progress` takes a number from 0 to 1"


def _log_problem(value: Any) -> str:
    fits = value is None or isinstance(value, dict)
    return "" if fits else "the fields of `log` are an object"


def _attribute_problem(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an attribute is text, a number, true, false or null"
    if isinstance(value, str) and len(value.encode()) > TEXTS.attribute_bytes:
        return f"an attribute has at most {TEXTS.attribute_bytes:,} bytes"
    return ""


# By the call: which argument, what is wrong with it, and what to write.
_ARGUMENTS: dict[str, tuple[int, Any, str]] = {
    "sleep": (0, _sleep_problem, 'write sleep("30s"), sleep("1h30m") or sleep(90)'),
    "sleep_until": (0, _time_problem, 'write sleep_until("2026-11-15T09:30:00Z")'),
    "progress": (0, _progress_problem, 'write progress(0.5, "half")'),
    "log": (1, _log_problem, 'write log("message", { order: 7 })'),
    "set_attribute": (1, _attribute_problem, 'write set_attribute("order", "o-7")'),
}


def _option_problem(entry: nodes.Entry) -> str:
    """Says what is wrong with an option that is written out; empty if nothing, or if computed."""
    kind, value = OPTION_TYPES.get(entry.key), constant_of(entry.value)
    if kind == "where" and isinstance(entry.value, nodes.ListLiteral | nodes.Template):
        return f"`{entry.key}` is an object"
    if value is COMPUTED or kind is None or (kind == "backoff" and isinstance(value, dict)):
        return ""
    if value is None and entry.key in NULLABLE:
        return ""
    if entry.key in WHOLE:
        return whole_problem(entry.key, value)
    if kind in ("duration", "backoff"):
        problem = _sleep_problem(value)
        return f"`{entry.key}`: {problem}" if problem else ""
    problem = _KINDS[kind](value)
    return f"`{entry.key}` {problem}" if problem else ""


def _where_problem(value: Any) -> str:
    if not isinstance(value, dict):
        return "is an object"
    size, most = json_bytes(value), TEXTS.where_bytes
    return f"has at most {most:,} bytes, not {size:,}" if size > most else ""


def json_bytes(value: Any) -> int:
    """Returns how many bytes a value has as JSON."""
    import json

    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _reason_problem(value: Any) -> str:
    if not isinstance(value, str):
        return "is text"
    long = len(value) > TEXTS.comment
    return f"has at most {TEXTS.comment:,} characters, not {len(value):,}" if long else ""


_KINDS: dict[str, Any] = {
    "name": _name_problem,
    "where": _where_problem,
    "reason": _reason_problem,
    "bool": lambda value: "" if isinstance(value, bool) else "is true or false",
    "factor": lambda value: "" if is_factor(value) else "is a number from 1 to 100",
}
