"""What a workflow awaits: tasks, workflows, timers, signals, people, groups, and limits of time."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Any

from rhythm.durations import duration_s
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.names import MISSING, Callee, callee_of, operation_of
from rhythm.lang.python.translation import Make, Translation
from rhythm.suggest import nearest

TASK_OPTIONS = ("retries", "backoff", "timeout", "queue", "priority")
CHILD_OPTIONS = ("queue", "priority", "timeout", "version")
GROUP_OPTIONS = {
    "all": ("concurrency", "settle", "need", "keep"),
    "any": ("concurrency", "keep"),
    "race": ("keep",),
    "completed": ("concurrency",),
}
# What to write in place of the functions and classes of asyncio that are not there.
ASYNCIO_ADVICE = {
    "as_completed": "write async for done in rhythm.completed([…])",
    "wait": "write await asyncio.gather(…) for all, await rhythm.race([…]) for the first that "
    "ends, or async for done in rhythm.completed([…])",
    "shield": "await it as it is; what a `finally` awaits runs after a cancellation, too",
    "Semaphore": "write rhythm.all([…], concurrency=3)",
    "BoundedSemaphore": "write rhythm.all([…], concurrency=3)",
    "Lock": "one workflow runs one statement at a time: leave it out",
    "Event": "wait for a signal: await rhythm.signal(…)",
    "Queue": "keep a list, or wait for signals: await rhythm.signal(…)",
    "run": "a workflow is async already: await it",
    "to_thread": "put this in a task: a plain `def` runs in a thread, await name.run(…)",
    "run_coroutine_threadsafe": "await a task",
    "get_event_loop": "there is no event loop here: await tasks",
    "get_running_loop": "there is no event loop here: await tasks",
}
NEVER = "9999-01-01T00:00:00Z"  # a time limit that has passed, and counts no more
EMITS = ("publish", "log", "progress", "set_attribute")


def awaited(t: Translation, node: ast.Await) -> Node:
    """Writes an await; returns the variable that has its result."""
    at = t.at(node)
    result = t.hidden()
    write_await(t, node, result)
    return at.name(result)


def write_await(t: Translation, node: ast.Await, into: str | None) -> None:
    """Writes an await whose result goes into a variable, or nowhere."""
    value, at = node.value, t.at(node)
    if _is_operation(t, value, "wait_for"):
        assert isinstance(value, ast.Call)
        return _wait_for(t, value, into, at)
    if isinstance(value, ast.Call) and (sent := emitted(t, value)) is not None:
        t.write(at.statement(sent))
        return _given(t, at, into, at.literal(None))
    operand = operand_of(t, value)
    if operand is None:
        return _given(t, at, into, nodes.Broken(at.start, at.end))
    if not t.deadlines:
        return _given(t, at, into, at.awaited(operand))
    return _within(t, at, operand, into, t.deadlines)


def plain_await(t: Translation, node: ast.Await) -> Node | None:
    """Returns an await as `.flow` has it, for `return await …`; None if it takes more."""
    if t.deadlines or _is_operation(t, node.value, "wait_for"):
        return None
    if isinstance(node.value, ast.Call) and _emits(t, node.value):
        return None
    operand = operand_of(t, node.value)
    at = t.at(node)
    return nodes.Broken(at.start, at.end) if operand is None else at.awaited(operand)


def _given(t: Translation, at: Make, into: str | None, value: Node) -> None:
    if into is None:
        return t.write(at.statement(value))
    hidden = into.startswith("$")
    return t.write(at.let(into, value) if hidden else at.assign(into, value))


def operand_of(t: Translation, node: ast.AST) -> Node | None:
    """Returns what is awaited, or stands in a group; refuses what cannot be awaited."""
    if isinstance(node, ast.Name | ast.Subscript | ast.Attribute) and not _is_callee(t, node):
        from rhythm.lang.python.hints import hint_of

        if not _is_started(t, node) and hint_of(t, node) in (str, int, float, bool, list, dict):
            return t.refuse(
                "P031",
                node,
                f"`{ast.unparse(node)[:60]}` is a value, and nothing to wait for",
                "leave out the `await`",
            )
        return t.value(node)  # the id of what was started before
    if not isinstance(node, ast.Call):
        _refuse(t, node)
        return None
    callee, options = called(t, node.func)
    if callee is not None:
        if not callee.is_async and not _runs(node.func):
            written = ast.unparse(node.func)
            return t.refuse(
                "P031",
                node,
                f"`{written}` is a plain `def`: in Python its call gives a value at once",
                f"write {written}.run(…), which can be awaited",
            )
        return _started(t, node, callee, options)
    operation = operation_of(t.outside(node.func))
    if operation == "wait_for":
        return t.refuse(
            "P032",
            node,
            "`wait_for` cannot stand in a group",
            'give the task a limit, task.options(timeout="5s")(…), or wait for the whole group',
        )
    if operation in _OPERATIONS:
        made: Node | None = _OPERATIONS[operation](t, node)
        return made
    _refuse(t, node)
    return None


def _is_started(t: Translation, node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in t.started


def _runs(function: ast.AST) -> bool:
    return isinstance(function, ast.Attribute) and function.attr == "run"


def _is_callee(t: Translation, node: ast.AST) -> bool:
    found = t.outside(node)
    return found is not MISSING and (bool(callee_of(found)) or bool(operation_of(found)))


def _refuse(t: Translation, node: ast.AST) -> None:
    written = ast.unparse(node.func if isinstance(node, ast.Call) else node)
    if isinstance(node, ast.Call):
        found = t.outside(node.func)
        advice = _asyncio_advice(found)
        if advice is not None:
            t.refuse("P031", node, f"`{written}` cannot be awaited in a workflow", advice)
            return
        if inspect.iscoroutinefunction(found):
            t.refuse(
                "P031",
                node,
                f"`{written}` is a coroutine of Python's own, and no task",
                f"put this in a task: @rhythm.task above `{written}`; if it awaits tasks itself, "
                "make it a workflow: @rhythm.workflow",
            )
            return
        if found is MISSING:
            before = len(t.problems.found)
            t.value(node)  # says that there is no such function
            if len(t.problems.found) > before:
                return
    t.refuse(
        "P031",
        node,
        f"`{written[:60]}` cannot be awaited in a workflow",
        "await a task, a workflow, or an operation of rhythm; anything else belongs in a task",
    )


def _asyncio_advice(found: Any) -> str | None:
    """Returns what to write in place of a function of asyncio; None if it is not of asyncio."""
    of_asyncio = str(getattr(found, "__module__", "")).partition(".")[0] == "asyncio"
    name = getattr(found, "__name__", "")
    return ASYNCIO_ADVICE.get(name, "put this in a task") if of_asyncio else None


# Tasks and workflows.


def called(t: Translation, function: ast.AST) -> tuple[Callee | None, list[ast.keyword]]:
    """Returns the task or workflow of a call, with the options of `task.options(…)(…)`."""
    if isinstance(function, ast.Attribute) and function.attr in ("run", "__call__"):
        found, options = called(t, function.value)
        if found is not None:
            return found, options
    inner = function.func if isinstance(function, ast.Call) else None
    if isinstance(inner, ast.Attribute) and inner.attr == "options":
        found, _ = called(t, inner.value)
        return found, function.keywords if isinstance(function, ast.Call) else []
    return callee_of(t.outside(function)), []


def _started(t: Translation, node: ast.Call, callee: Callee, given: list[ast.keyword]) -> Node:
    at = t.at(node)
    inputs = _inputs(t, node, callee)
    allowed = TASK_OPTIONS if callee.kind == "task" else CHILD_OPTIONS
    options = _options(t, node, given, allowed, f"{callee.kind} `{callee.name}`")
    args = [at.literal(callee.name), inputs, *([options] if options else [])]
    return at.call(callee.kind, *args)


def _inputs(t: Translation, node: ast.Call, callee: Callee) -> Node:
    """Returns the arguments of a call as the object of inputs, bound by the signature."""
    at = t.at(node)
    spread = [k for k in node.keywords if k.arg is None]
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        return t.refuse("P033", node, "`*` cannot stand here: inputs have names")
    names = _bound_names(t, node, callee, bool(spread))
    if names is None:
        return nodes.Broken(at.start, at.end)
    parts = [*node.args, *(k.value for k in node.keywords)]
    values = t.values([_value_of(part) for part in parts])
    entries: list[Node] = []
    for name, value in zip(names, values, strict=True):
        if name is None:
            entries.append(nodes.Spread(at.start, at.end, at.call("py.dict", value)))
        else:
            entries.append(nodes.Entry(at.start, at.end, name, value))
    return nodes.ObjectLiteral(at.start, at.end, tuple(entries))


def _value_of(node: ast.AST) -> ast.AST:
    """Returns an argument; a tuple is sent as a list, as JSON has it."""
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.List(node.elts, ast.Load()), node)
    return node


def _bound_names(
    t: Translation, node: ast.Call, callee: Callee, partial: bool
) -> list[str | None] | None:
    """Returns the name of the input that each argument is, None for `**`; refuses what misfits."""
    named = {str(k.arg): k for k in node.keywords if k.arg is not None}
    try:
        bind = callee.signature.bind_partial if partial else callee.signature.bind
        bound = bind(*node.args, **named)
    except TypeError as problem:
        takes = ", ".join(callee.signature.parameters) or "no inputs"
        t.refuse("P033", node, f"{callee.kind} `{callee.name}`: {problem}", f"it takes {takes}")
        return None
    by_position = {}
    for name, value in bound.arguments.items():
        kind = callee.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            t.refuse("P033", node, "inputs have names: this one cannot be given by position")
            return None
        if isinstance(value, ast.AST):
            by_position[id(value)] = name
    return [
        *(by_position.get(id(arg)) for arg in node.args),
        *(k.arg for k in node.keywords),
    ]


def _options(
    t: Translation, node: ast.AST, given: list[ast.keyword], allowed: Sequence[str], what: str
) -> Node | None:
    """Returns keyword arguments as an object of options; refuses unknown ones."""
    for keyword in given:
        if keyword.arg not in allowed:
            near = nearest(str(keyword.arg), allowed)
            t.refuse(
                "P034",
                keyword.value,
                f"{what} has no option `{keyword.arg}`",
                f"did you mean `{near}`?" if near else f"there are {', '.join(allowed)}",
            )
            return None
    values = t.values([keyword.value for keyword in given])
    if not given:
        return None
    return t.at(node).object({str(k.arg): v for k, v in zip(given, values, strict=True)})


# Operations.


def _by_name(kind: str) -> Any:
    """Returns the translation of `rhythm.run_task("name", {…})` or `rhythm.run_workflow(…)`."""

    def made(t: Translation, node: ast.Call) -> Node | None:
        at = t.at(node)
        if not 1 <= len(node.args) <= 2:
            t.refuse("P033", node, f"it takes the name of the {kind}, and its inputs as a dict")
            return None
        values = t.values(node.args)
        allowed = TASK_OPTIONS if kind == "task" else CHILD_OPTIONS
        options = _options(t, node, node.keywords, allowed, f"a {kind}")
        if options is not None and len(values) == 1:
            values.append(at.literal(None))
        return at.call(kind, *values, *([options] if options else []))

    return made


def _sleep(t: Translation, node: ast.Call) -> Node | None:
    if len(node.args) != 1 or [k for k in node.keywords if k.arg != "result"]:
        t.refuse("P033", node, 'a sleep takes one duration: seconds, or text such as "1h"')
        return None
    return t.at(node).call("sleep", t.value(node.args[0]))


def _sleep_until(t: Translation, node: ast.Call) -> Node | None:
    if len(node.args) != 1 or node.keywords:
        t.refuse("P033", node, "`sleep_until` takes one time")
        return None
    return t.at(node).call("sleep_until", t.value(node.args[0]))


def _wait(kind: str, allowed: Sequence[str]) -> Any:
    """Returns the translation of `rhythm.signal("name", …)` or `rhythm.event("type", …)`."""

    def made(t: Translation, node: ast.Call) -> Node | None:
        at = t.at(node)
        if len(node.args) != 1:
            t.refuse("P033", node, f"`{kind}` takes the name, and {', '.join(allowed)}")
            return None
        name = t.value(node.args[0])
        options = _options(t, node, node.keywords, allowed, f"`{kind}`")
        return at.call(kind, name, *([options] if options else []))

    return made


def _approval(t: Translation, node: ast.Call) -> Node | None:
    allowed = ("role", "reason", "timeout", "quorum", "four_eyes", "data", "escalate", "notify")
    if node.args or not any(keyword.arg == "role" for keyword in node.keywords):
        t.refuse("P033", node, 'an approval needs a role: rhythm.approval(role="manager", …)')
        return None
    options = _options(t, node, node.keywords, allowed, "an approval")
    return t.at(node).call("approval", options) if options else None


def _group(mode: str) -> Any:
    """Returns the translation of `rhythm.all([…], concurrency=…)`, `any`, `race` or `completed`."""

    def made(t: Translation, node: ast.Call) -> Node | None:
        if len(node.args) != 1:
            t.refuse(
                "P033",
                node,
                f"`{mode}` takes one list or dict of what to start",
                f"write rhythm.{mode}([first(), second()])",
            )
            return None
        items = collection_of(t, node.args[0])
        options = _options(t, node, node.keywords, GROUP_OPTIONS[mode], f"`{mode}`")
        return t.at(node).call(mode, items, *([options] if options else []))

    return made


def _gather(t: Translation, node: ast.Call) -> Node | None:
    """Returns `asyncio.gather(a(), b())` or `asyncio.gather(*[a(x) for x in xs])` as an `all`."""
    at = t.at(node)
    settle = [k for k in node.keywords if k.arg == "return_exceptions"]
    others = [k for k in node.keywords if k.arg != "return_exceptions"]
    if settle and not (isinstance(settle[0].value, ast.Constant) and not settle[0].value.value):
        t.refuse(
            "P034",
            node,
            "return_exceptions= would give exceptions as values",
            "write rhythm.all([…], settle=True): each item has a status",
        )
        return None
    options = _options(t, node, others, GROUP_OPTIONS["all"], "`gather`")
    if len(node.args) == 1 and isinstance(node.args[0], ast.Starred):
        items = collection_of(t, node.args[0].value)
    else:
        items = at.list([_item(t, arg) for arg in node.args])
    return at.call("all", items, *([options] if options else []))


def collection_of(t: Translation, node: ast.AST) -> Node:
    """Returns a list, dict or comprehension of operations, or a value that holds their ids."""
    at = t.at(node)
    if isinstance(node, ast.List | ast.Tuple):
        return at.list([_item(t, item) for item in node.elts])
    if isinstance(node, ast.Dict):
        entries = []
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                t.refuse("P053", value, "the keys of a group are written as text")
                continue
            entries.append(nodes.Entry(at.start, at.end, key.value, _item(t, value)))
        return nodes.ObjectLiteral(at.start, at.end, tuple(entries))
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _fan_out(t, node)
    if isinstance(node, ast.DictComp):
        return t.refuse(
            "P034",
            node,
            "a group is a list, a list comprehension, or a dict that is written out",
            "write dict(zip(keys, await rhythm.all([… for …])))",
        )
    return t.value(node)


def _fan_out(t: Translation, node: ast.ListComp | ast.GeneratorExp) -> Node:
    """Returns `[task(x) for x in xs if …]`, one operation for each item."""
    from rhythm.lang.python.comprehensions import fan_out

    inner = node.elt
    if t.effects.has(inner) or any(t.effects.has(g.iter) for g in node.generators):
        return t.refuse(
            "P032",
            node,
            "what is started together cannot await before it starts",
            "await it before, in a loop, or make it a workflow",
        )
    return fan_out(t, node, lambda: _item(t, inner))


def _item(t: Translation, node: ast.AST) -> Node:
    if isinstance(node, ast.Starred):
        at = t.at(node)
        if isinstance(node.value, ast.ListComp | ast.GeneratorExp):
            return t.refuse(
                "P034",
                node,
                "a comprehension of what to start stands alone in a group",
                "write two groups, or one comprehension over all items",
            )
        return nodes.Spread(at.start, at.end, t.value(node.value))
    if isinstance(node, ast.Await):
        return t.refuse(
            "P032", node, "an item of a group is started, not awaited", "leave out the `await`"
        )
    operand = operand_of(t, node)
    start, end = t.text.span(node)
    return operand if operand is not None else nodes.Broken(start, end)


_OPERATIONS: dict[str | None, Any] = {
    "run_task": _by_name("task"),
    "run_workflow": _by_name("workflow"),
    "sleep": _sleep,
    "sleep_until": _sleep_until,
    "signal": _wait("signal", ("timeout", "default")),
    "event": _wait("event", ("where", "timeout", "default")),
    "approval": _approval,
    "gather": _gather,
    **{mode: _group(mode) for mode in ("all", "any", "race")},
}


# Commands, which nobody waits for.


def emitted(t: Translation, node: ast.Call) -> Node | None:
    """Returns a command such as `rhythm.publish(…)`; None for anything else."""
    operation, at = _emits(t, node), t.at(node)
    if operation is None:
        return None
    if operation == "send" and (limit := _limit(node)) is not None:
        return t.refuse(
            "P034",
            limit,
            "what comes after the name of a signal is no limit",
            f"write await {ast.unparse(node.func)}({ast.unparse(node.args[0])}, "
            f"timeout={ast.unparse(limit)})",
        )
    if operation == "cancel":
        return at.call("cancel", *t.values(node.args))
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    return at.call(operation, *t.values(parts))


def _limit(node: ast.Call) -> ast.expr | None:
    """Returns the `"3d"` of `signal("name", "3d")`, which would send a signal of that name."""
    if len(node.args) != 2 or not isinstance(node.args[1], ast.Constant):
        return None
    try:
        duration_s(node.args[1].value)
    except ValueError:
        return None
    return node.args[1]


def _emits(t: Translation, node: ast.Call) -> str | None:
    operation = operation_of(t.outside(node.func))
    if operation == "signal" and len(node.args) >= 2:
        return "send"
    return operation if operation in (*EMITS, "send", "cancel") else None


def started(t: Translation, node: ast.AST) -> Node | None:
    """Returns what `asyncio.create_task(…)` or `group.create_task(…)` starts; None if neither."""
    if not isinstance(node, ast.Call):
        return None
    in_group = (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "create_task"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in t.groups
    )
    if not in_group and not _is_operation(t, node, "start"):
        return None
    if not node.args or [k for k in node.keywords if k.arg != "name"]:
        return t.refuse("P033", node, "`create_task` takes one call of a task or workflow")
    return operand_of(t, node.args[0])


def write_start(
    t: Translation, node: ast.AST, operand: Node, into: str | None, *, needed: bool = True
) -> str:
    """Writes a start without waiting; the variable gets the id, for a later `await`.

    Returns the variable; if its name is not given, it is hidden.
    """
    at, group = t.at(node), _group_of(t, node)
    name = into if into is not None else t.hidden("started")
    if into is None and group is None and not needed:
        t.write(at.statement(operand))
        return name
    t.write(at.let(name, operand) if into is None else at.assign(name, operand))
    t.started.add(name)
    if group is not None:
        held = t.groups[group][0]
        t.write(at.assign(held, at.call("py.append", at.name(held), at.name(name))))
        t.groups[group].append(name)
    return name


def _group_of(t: Translation, node: ast.AST) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id in t.groups:
            return owner.id
    return None


def _is_operation(t: Translation, node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and operation_of(t.outside(node.func)) == name


# Limits of time.


def _wait_for(t: Translation, node: ast.Call, into: str | None, at: Make) -> None:
    """Writes `asyncio.wait_for(task(), timeout)`."""
    limit = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "timeout")]
    if len(limit) != 1 or not node.args:
        t.refuse("P033", node, "`wait_for` takes what to await, and a timeout")
        return
    operand, timeout = operand_of(t, node.args[0]), t.value(limit[0])
    if operand is None:
        return
    deadline = t.pinned(at.call("date_add", at.call("now"), timeout), "until")
    _within(t, at, operand, into, [*t.deadlines, deadline.name])


def _within(
    t: Translation, at: Make, operand: Node, into: str | None, deadlines: Sequence[str]
) -> None:
    """Writes an await that ends with `Timeout` at the first of these times.

    The await becomes a race with one timer for each time; a race cancels what loses.
    """
    timers = [at.call("sleep_until", at.name(name)) for name in deadlines]
    first = at.name(t.hidden())
    t.write(at.let(first.name, at.awaited(at.call("race", at.list([operand, *timers])))))
    late = {"code": "Timeout", "message": "it was not done in time", "data": None}
    in_time = at.equal(at.member(first, "key"), at.literal(0))
    # A limit ends what it limits once: what a `finally` awaits after that runs to its end.
    spent = [
        at.when(
            at.equal(at.member(first, "key"), at.literal(number)),
            at.block(at.assign(name, at.literal(NEVER))),
        )
        for number, name in enumerate(deadlines, 1)
        if name in t.deadlines
    ]
    t.write(at.when(at.negated(in_time), at.block(*spent, at.throw(at.literal(late)))))
    done = at.equal(at.member(first, "status"), at.literal("completed"))
    t.write(at.when(at.negated(done), at.block(at.throw(at.member(first, "error")))))
    if into is not None:
        _given(t, at, into, at.member(first, "result"))
