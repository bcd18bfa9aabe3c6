"""Whether the operations of a translated function can work: their options, names and waits.

The tree that a function becomes is that of `.flow`, so the rules are those of `.flow`, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from rhythm.ir.operations import EMITS, GROUPS, OPERATIONS
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node, children, walk
from rhythm.lang.flow.problems import Problems, TooManyProblems
from rhythm.lang.flow.rules.arguments import check_group, check_literals, check_options
from rhythm.lang.flow.rules.operations import waits_for_ever
from rhythm.lang.flow.rules.surroundings import Surroundings, check_target
from rhythm.lang.report import Compilation
from rhythm.lang.source import in_order
from rhythm.limits import DEFAULT_LIMITS

CALLED = {**OPERATIONS, **GROUPS, **EMITS}
# The codes of `.flow`, and what a Python workflow has in their place.
CODES = {"F025": "P034", "F026": "P034", "F103": "P103", "F104": "P104", "F105": "P105"}


def check_operations(
    workflow: nodes.Workflow, options: Mapping[str, Any], problems: Problems
) -> None:
    """Reports options and arguments that no database would take, and waits without an end."""
    found = Problems(DEFAULT_LIMITS.diagnostics)
    with suppress(TooManyProblems):  # those that were found are reported
        for call, _ in calls(workflow.body):
            _check_call(call, found)
    _hand_over(found, problems)
    for call, racing in calls(workflow.body):
        if not racing and waits_for_ever(call) and options.get("timeout") is None:
            help = 'give it a limit: timeout="3d", or race it against a sleep'
            message = f"this can wait for {call.name} for ever"
            problems.report("P201", message, call.start, call.end, help=help)
    for node in walk(workflow.body):
        if isinstance(node, nodes.Literal) and (odd := _odd_in(node.value)):
            help = "databases refuse it; leave it out"
            problems.report("P050", f"text cannot hold {odd}", node.start, node.end, help=help)


def _check_call(call: nodes.Call, found: Problems) -> None:
    signature = CALLED[call.name]
    check_options(call, signature, found)
    if call.name in GROUPS:
        check_group(call, found)
    elif signature.least <= len(call.args):
        check_literals(call, found)


def _odd_in(value: Any) -> str:
    """Returns what is in a text that no database keeps; empty if nothing is."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return ""
    if "\0" in value:
        return "the character NUL"
    halves = any("\ud800" <= char <= "\udfff" for char in value)
    return "half of a surrogate pair" if halves else ""


def checked_against(compilation: Compilation, known: Surroundings) -> Compilation:
    """Returns the compilation with what is wrong about names: tasks and workflows there are not.

    A task that is called by its function is known; one that is called by its name may not be.
    """
    found = Problems(DEFAULT_LIMITS.diagnostics)
    for workflow, _ in compilation.workflows:
        for call, _racing in calls(workflow.body):
            check_target(call, known, frozenset(), found)
    problems = Problems(DEFAULT_LIMITS.diagnostics)
    for one in compilation.diagnostics:
        problems.report(one.code, one.message, one.start, one.end, one.label, one.help, one.related)
    _hand_over(found, problems)
    return compilation.replace(diagnostics=in_order(problems.found))


def calls(node: Node, racing: bool = False) -> Iterator[tuple[nodes.Call, bool]]:
    """Yields all operations, groups and commands below a node, and whether each is raced."""
    inside = racing
    if isinstance(node, nodes.Call) and node.name in CALLED:
        yield node, racing
        inside = node.name in ("race", "any") if node.name in GROUPS else racing
    for inner in children(node):
        yield from calls(inner, inside)


def _hand_over(found: Problems, problems: Problems) -> None:
    """Reports what the rules of `.flow` have found, under the codes of Python."""
    for one in found.found:
        if one.code in CODES:
            problems.report(
                CODES[one.code], one.message, one.start, one.end, one.label, _as_python(one.help)
            )


def _as_python(help: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the advice as one writes it in Python."""
    if any("escalate" in line for line in help):
        return ('write escalate="director", or {"role": "director", "after": "4h"}',)
    return tuple(_OPTION.sub(_keyword, _CALL.sub(r"write rhythm.\1(", line)) for line in help)


def _keyword(match: re.Match[str]) -> str:
    return f"write {match[1]}={_IN_PYTHON.get(match[2], match[2])}"


_CALL = re.compile(rf"write ({'|'.join(CALLED)})\(")
_OPTION = re.compile(r"write \{ (\w+): (.*) \}")
_IN_PYTHON = {"true": "True", '{ "order.id": 7 }': '{"order.id": 7}'}
