"""`check_inputs`: the inputs of a workflow that declares them, as it takes them.

A workflow that declares its inputs begins with it, so that it runs with nothing else, whoever
started it. Mostly the schema is a constant of the program, and is read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.errors import InvalidInputs
from rhythm.ir import instructions as ir
from rhythm.ir.input_schema import MAX_PARTS, DeclaredInputs, InvalidSchema
from rhythm.vm.closures import Compile, Compiled, Frame, placed
from rhythm.vm.prices import made, price_of
from rhythm.vm.values import Fault, kind

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

READ = 20  # the price of reading a part of a schema


def check_inputs(m: Machine, inputs: Any, schema: Any, workflow: Any) -> Any:
    """Returns inputs as a schema asks for them. Raises a Fault if they do not fit."""
    return _checked(m, _read(m, schema), inputs, workflow)


def _read(m: Machine, schema: Any) -> DeclaredInputs:
    try:
        declared = DeclaredInputs(schema)
    except InvalidSchema as problem:
        m.charge(READ * MAX_PARTS)  # nobody knows how much of it was read
        raise Fault("InvalidArgument", f"the schema of `check_inputs`: {problem}") from None
    m.charge(READ * declared.parts)
    return declared


def _checked(m: Machine, declared: DeclaredInputs, inputs: Any, workflow: Any) -> Any:
    if type(workflow) is not str:
        raise Fault("TypeMismatch", f"the name of a workflow must be text, not {kind(workflow)}")
    try:
        return declared.check(workflow, inputs, m.charge)
    except InvalidInputs as problem:
        raise Fault("InvalidInputs", str(problem)) from None


def compiled(node: ir.Call, closure_of: Compile) -> Compiled:
    """Compiles a call; a schema that is a constant is read once."""
    inputs, schema, workflow = map(closure_of, node.args)
    price, at, constant = price_of(node.name), node.at, isinstance(node.args[1], ir.Const)
    kept: list[DeclaredInputs] = []

    def call(frame: Frame) -> Any:
        m = frame["$m"]
        m.charge(price())
        declared = kept[0] if kept else placed(at, _read, m, schema(frame))
        if constant and not kept:
            kept.append(declared)
        result = placed(at, _checked, m, declared, inputs(frame), workflow(frame))
        m.charge(made(result))
        return result

    return call
