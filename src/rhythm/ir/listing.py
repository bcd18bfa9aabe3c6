"""Programs as text for people: expressions, and a listing with one instruction on each line."""

from __future__ import annotations

import json
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program


def listing(program: Program) -> str:
    """Returns the whole program as text: header, instructions with their source lines, handlers."""
    lines = [f"{program.name}  {program.language}  version {program.version[:12]}  ir {program.ir}"]
    lines += [
        f"@{name} {json.dumps(value, ensure_ascii=False)}"
        for name, value in program.options.items()
        if name != "inputs"  # the first instruction shows them
    ]
    targets, branches = _targets(program), {entry: n for n, entry in enumerate(program.branches)}
    for pc, instruction in enumerate(program.code):
        if pc in branches:
            lines.append(f"branch {branches[pc]}:")
        mark = ">" if pc in targets else " "
        lines.append(
            (
                f"{pc:>4} {mark} {show_instruction(instruction):<70} ; line "
                f"{program.position(_at(instruction))[0]}"
            ).rstrip()
        )
    for handler in program.handlers:
        lines.append(
            f"{handler.kind:<7} {handler.first}..{handler.last - 1} -> {handler.target} "
            f"with {handler.into}"
        )
    return "\n".join(lines)


def _at(instruction: ir.Instruction) -> int:
    return int(getattr(instruction, "at", 0))


def _targets(program: Program) -> set[int]:
    fields = ("to", "exit", "block")
    jumps = {
        getattr(instruction, name)
        for instruction in program.code
        for name in fields
        if hasattr(instruction, name)
    }
    return jumps | {handler.target for handler in program.handlers}


def show_instruction(instruction: ir.Instruction) -> str:
    """Returns an instruction as one line of text."""
    match instruction:
        case ir.Set(name, value):
            return f"set {name} = {show(value)}"
        case ir.SetPath(name, path, value):
            return f"set {name}{''.join(f'[{show(part)}]' for part in path)} = {show(value)}"
        case ir.Jump(to):
            return f"jump {to}"
        case ir.JumpUnless(condition, to):
            return f"jump {to} unless {show(condition)}"
        case ir.Iterate(state, source, arity):
            return f"iterate {state} over {show(source)}" + (" as pairs" if arity == 2 else "")
        case ir.Next(state, names, exit):
            return f"next {', '.join(names)} of {state}, else {exit}"
        case ir.Await(operand, into):
            return f"await {show(operand)}{_into(into)}"
        case ir.Start(operand, into):
            return f"start {show(operand)}{_into(into)}"
        case ir.Gather(state, group):
            return f"gather {state} = {show(group)}"
        case ir.Take(state, into, exit):
            return f"take {into} of {state}, else {exit}"
        case ir.Emit(kind, args):
            return f"{kind}({_commas(args)})"
        case ir.Return(value):
            return f"return {show(value)}"
        case ir.Throw(value):
            return f"throw {show(value)}"
        case ir.Block(reason, data):
            return f"block {show(reason)} with {show(data)}"
        case ir.Pend(state, to, block):
            return f"finally {block} then {to} by {state}"
        case ir.EndFinally(state):
            return f"end finally {state}"
    raise AssertionError(f"no line for {type(instruction).__name__}")


def _into(name: str | None) -> str:
    return f" -> {name}" if name else ""


def _commas(items: tuple[Any, ...]) -> str:
    return ", ".join(show(item) for item in items)


def show(node: Any) -> str:
    """Returns an expression or operand as `.flow` text."""
    match node:
        case ir.Const(value):
            return json.dumps(value, ensure_ascii=False)
        case ir.Local(name):
            return name
        case ir.Unary(op, value):
            return f"{op}{_tight(value)}"
        case ir.Binary(op, left, right) | ir.Logic(op, left, right):
            return f"{_tight(left)} {op} {_tight(right)}"
        case ir.Choose(condition, yes, no):
            return f"{_tight(condition)} ? {_tight(yes)} : {_tight(no)}"
        case ir.Member(target, name, optional):
            return f"{_tight(target)}{'?.' if optional else '.'}{name}"
        case ir.Index(target, index, optional):
            return f"{_tight(target)}{'?.' if optional else ''}[{show(index)}]"
        case ir.Spread(value):
            return f"...{_tight(value)}"
        case ir.ListOf(items) | ir.OperandList(items):
            return f"[{_commas(items)}]"
        case ir.ObjectOf(entries) | ir.OperandObject(entries):
            return (
                "{ " + ", ".join(_entry(key, value) for key, value in entries) + " }"
                if entries
                else "{}"
            )
        case ir.Template(parts):
            return (
                "`"
                + "".join(
                    _literal(p.value) if isinstance(p, ir.Const) else f"${{{show(p)}}}"
                    for p in parts
                )
                + "`"
            )
        case ir.Call(name, args) | ir.Operation(name, args):
            return f"{name}({_commas(args)})"
        case ir.Comprehension(element, names, source, condition):
            tail = f" if {show(condition)}" if condition else ""
            return f"[{show(element)} for {', '.join(names)} in {show(source)}{tail}]"
        case ir.Branch(entry, captures):
            return f"branch {entry}({', '.join(captures)})"
        case ir.Group(mode, items, options):
            return f"{mode}({show(items)}{', ' + show(options) if options else ''})"
    raise AssertionError(f"no text for {type(node).__name__}")


def _entry(key: str | None, value: Any) -> str:
    if key is None or (isinstance(value, ir.Local) and value.name == key):
        return show(value)
    return f"{key if key.isidentifier() else json.dumps(key, ensure_ascii=False)}: {show(value)}"


def _literal(value: Any) -> str:
    """Returns a constant part of a template, on one line."""
    text = (
        json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else json.dumps(value)
    )
    return text.replace('\\"', '"').replace("`", "\\`").replace("${", "\\${")


def _tight(node: Any) -> str:
    """Returns the text of a node, in parentheses if it is an operator."""
    text = show(node)
    return f"({text})" if isinstance(node, ir.Binary | ir.Logic | ir.Choose) else text
