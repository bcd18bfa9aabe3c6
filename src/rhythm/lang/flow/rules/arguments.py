"""Whether arguments that are written out fit the tables of `ir.operations`.

It checks their number, options, names and durations. Computed arguments are not checked.
"""

from __future__ import annotations

from rhythm.durations import duration_s
from rhythm.ir.operations import UNLIMITED, Signature
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.problems import Problems
from rhythm.lang.flow.rules.kinds import literal_keys
from rhythm.limits import INT_MAX
from rhythm.suggest import nearest

# What an option's literal value must be. Durations and counts are checked further.
OPTION_TYPES = {
    "retries": "count", "backoff": "backoff", "timeout": "duration", "queue": "text",
    "priority": "integer", "key": "text",
    "settle": "bool", "id": "text", "version": "text", "where": "object", "concurrency": "positive",
    "need": "positive",
    "keep": "bool", "role": "text", "reason": "text", "quorum": "positive", "four_eyes": "bool",
    "notify": "text", "after": "duration", "initial": "duration", "max": "duration",
    "factor": "factor", "jitter": "bool",
}  # fmt: skip
OPTION_EXAMPLES = {
    "count": "3", "backoff": '"2s"', "duration": '"30s"', "text": '"name"', "integer": "0",
    "bool": "true", "object": '{ "order.id": 7 }',
    "positive": "1", "factor": "2",
}  # fmt: skip
BACKOFF = frozenset({"initial", "factor", "max", "jitter"})
STAGE = frozenset({"role", "after", "timeout"})  # the keys of a stage of `escalate`
NAMED = ("task", "workflow", "signal", "event", "publish")  # calls whose first argument is a name


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
            help = (
                f"did you mean `{near}`?" if near else f"`{name}` knows {', '.join(sorted(known))}"
            )
            problems.about("F025", f"`{name}` has no option `{entry.key}`", entry, help=help)
        elif problem := _option_problem(entry):
            problems.about(
                "F026",
                problem,
                entry.value,
                help=f"write {{ {entry.key}: {OPTION_EXAMPLES[OPTION_TYPES[entry.key]]} }}",
            )
        elif entry.key == "backoff":
            _check_entries("backoff", entry.value, BACKOFF, problems)
        elif entry.key == "escalate":
            _check_stages(entry.value, problems)


def _check_stages(given: Node, problems: Problems) -> None:
    """Checks the stages of `escalate`: a role, `{ role, after, timeout }`, or a list of them."""
    for stage in given.items if isinstance(given, nodes.ListLiteral) else [given]:
        _check_entries("escalate", stage, STAGE, problems)
        if isinstance(stage, nodes.ObjectLiteral) and "role" not in literal_keys(stage, "role"):
            problems.about(
                "F026",
                "who is asked next needs a `role`",
                stage,
                help='write { role: "director", after: "4h" }',
            )
        elif isinstance(stage, nodes.Literal) and (
            not isinstance(stage.value, str) or not stage.value
        ):
            help = (
                'write { escalate: "director" } or { escalate: { role: "director", after: "4h" } }'
            )
            problems.about("F026", "`escalate` is a role", stage, help=help)


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
    if not isinstance(first, nodes.Literal):
        return
    if node.name == "sleep":
        try:
            duration_s(first.value)
        except ValueError as problem:
            problems.about(
                "F026", str(problem), first, help='write sleep("30s"), sleep("1h30m") or sleep(90)'
            )
    elif node.name in NAMED and (not isinstance(first.value, str) or not first.value):
        problems.about(
            "F026",
            f"the first argument of `{node.name}` is a name",
            first,
            help=f'write {node.name}("name", …)',
        )


def _option_problem(entry: nodes.Entry) -> str:
    """Says what is wrong with an option that is written out; empty if nothing, or if computed."""
    kind = OPTION_TYPES.get(entry.key)
    if kind == "object":
        return (
            f"`{entry.key}` is an object"
            if isinstance(entry.value, nodes.Literal | nodes.ListLiteral | nodes.Template)
            else ""
        )
    if not isinstance(entry.value, nodes.Literal) or kind is None:
        return ""
    value = entry.value.value
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind in ("duration", "backoff"):
        try:
            duration_s(value)
        except ValueError as problem:
            return f"`{entry.key}`: {problem}"
        return ""
    checks = {
        "count": (whole and 0 <= value <= INT_MAX, "is a whole number, 0 or more"),
        "positive": (whole and value > 0, "is a whole number, 1 or more"),
        "integer": (whole, "is a whole number"),
        "text": (isinstance(value, str) and value != "", "is text, and not empty"),
        "bool": (isinstance(value, bool), "is true or false"),
        "factor": (
            isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= 100,
            "is a number from 1 to 100",
        ),
    }
    fits, says = checks[kind]
    return "" if fits else f"`{entry.key}` {says}"
