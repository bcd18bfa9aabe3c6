"""What a node of the graph says: a short line for an instruction, and a group's items as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.ir.blocks import Blocks
from rhythm.ir.listing import show, show_instruction
from rhythm.ir.program import Program
from rhythm.record import Record

WIDTH = 80  # the longest label, in characters; the source has the rest


class Item(Record):
    """One item of a group. A group inside a group has items of its own."""

    label: str
    items: tuple[Item, ...] = ()


Label = tuple[str, str, tuple[Item, ...]]


class Labels:
    """Makes the labels of a program's instructions."""

    def __init__(self, program: Program, blocks: Blocks) -> None:
        self.program, self.code, self.blocks = program, program.code, blocks
        self.sources = {i.state: i.source for i in self.code if isinstance(i, ir.Iterate)}

    def of(self, pc: int) -> Label:
        """Returns the kind of node, its label and its items. The label is cut to `WIDTH`."""
        kind, label, items = self.whole(pc)
        return kind, clipped(label), items

    def whole(self, pc: int) -> Label:
        """Returns the same as `of`, with a label of any length."""
        match self.code[pc]:
            case ir.Await(operand, into):
                kind, label, items = _operand(operand)
                return kind, _into(into) + label, items
            case ir.Start(operand, into):
                kind, label, items = _operand(operand)
                return kind, _into(into) + f"start {label}".rstrip(), items
            case ir.Gather(_, group):
                return _operand(group)
            case ir.Take(_, into):
                return "loop", f"for {into}, as each of them ends", ()
            case ir.Next(state, names):
                return (
                    "loop",
                    (
                        f"for {', '.join(names)} in "
                        f"{show(self.sources[state]) if state in self.sources else state}"
                    ),
                    (),
                )
            case ir.JumpUnless(condition):
                return *self._condition(pc, show(condition)), ()
            case ir.Return(value):
                return "return", self._return(pc, value), ()
            case ir.Block(reason):
                return "block", f"block {show(reason)}", ()
            case ir.Jump(to):
                return "jump", self._jump(pc, to), ()
        instruction = self.code[pc]
        return (
            "throw" if isinstance(instruction, ir.Throw) else "emit",
            show_instruction(instruction),
            (),
        )

    def _condition(self, pc: int, condition: str) -> tuple[str, str]:
        if pc in self.blocks.loops:
            return "loop", f"while {condition}"
        if getattr(self.code[pc], "to", pc) <= pc:
            return "jump", f"unless {condition}"
        return (
            "decision",
            f"else if {condition}" if pc in self.blocks.else_ifs else f"if {condition}",
        )

    def _jump(self, pc: int, to: int) -> str:
        loop = self.blocks.loop_around[pc]
        if loop is None or to not in (loop, self.blocks.loops[loop].last):
            return "go on"
        return "continue" if to == loop else "break"

    def _return(self, pc: int, value: ir.Expression) -> str:
        while pc and isinstance(self.code[pc - 1], ir.Pend):
            pc -= 1
        before = self.code[pc - 1] if pc else None
        # The author did not write this name: show the value that was put into it.
        if isinstance(value, ir.Local) and value.name[0] == "$":
            value = (
                before.value if isinstance(before, ir.Set) and before.name == value.name else value
            )
        if isinstance(value, ir.Local) and value.name[0] == "$":
            return "return the result"
        return "return" if value == ir.Const(None) else f"return {show(value)}"


def branches_in(node: Any) -> Iterator[ir.Branch]:
    """Yields the branches that an instruction starts."""
    if isinstance(node, ir.Branch):
        yield node
    elif isinstance(node, Record) and not isinstance(node, ir.Const):
        for field in node.__dict__.values():
            yield from branches_in(field)
    elif isinstance(node, tuple):
        for item in node:
            yield from branches_in(item)


def clipped(text: str) -> str:
    """Returns the text on one line, cut to `WIDTH` characters."""
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _into(name: str | None) -> str:
    return f"{name} = " if name and name[0] != "$" else ""


def _operand(operand: Any) -> Label:
    match operand:
        case ir.Operation(kind):
            return kind if kind in ("task", "workflow") else "wait", show(operand), ()
        case ir.Branch(entry):
            return "group", f"branch {entry + 1}", ()
        case ir.Group(mode, items, options):
            label, inner = mode + (f" {show(options)}" if options else ""), _items(items)
            return "group", label if inner else f"{label} of {show(items)}", inner
        case ir.OperandList() | ir.OperandObject() | ir.Comprehension():
            return "group", "", _items(operand)
    return "wait", f"await {show(operand)}", ()


def _items(collection: Any) -> tuple[Item, ...]:
    match collection:
        case ir.OperandList(items):
            return tuple(_item(item) for item in items)
        case ir.OperandObject(entries):
            return tuple(_item(item, f"{key}: " if key else "") for key, item in entries)
        case ir.Comprehension(element, names, source, condition):
            tail = f" if {show(condition)}" if condition else ""
            return (_item(element, after=f" for {', '.join(names)} in {show(source)}{tail}"),)
    return ()


def _item(operand: Any, before: str = "", after: str = "") -> Item:
    _, label, items = _operand(operand)
    return Item(clipped(before + label.removeprefix("await ") + after), items)
