"""Syntax tree to program: blocks become jumps, loops get a hidden position.

`finally` becomes a pending jump. Lowering runs only on a tree that the resolver accepted. Labels
are numbers that are given out before their place is known; `_placed` fills the places in at the
end. Names that begin with `$` are locals that no author can write.
"""

from __future__ import annotations

from typing import Any

from rhythm.ir import instructions as ir
from rhythm.ir.operations import EMITS, GROUPS, OPERATIONS
from rhythm.ir.program import Program, version_of
from rhythm.ir.versions import ir_version
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Block, Node
from rhythm.lang.source import Source
from rhythm.record import Record

LANGUAGE = "flow"
GIVEN = "$inputs"  # holds the checked inputs while they become parameters
RESULT = "$return"  # holds the value of a `return` while its `finally` blocks run


class _Finally(Record):
    """An open `try` with `finally`: its hidden local, and the label of its `finally` block."""

    state: str
    block: int
    # The code of each jump out of the `try`, from after its `finally` block on (two labels): a
    # cancel that arrives there must not run the block again.
    left: list[tuple[int, int]]


class _Loop(Record):
    """A loop that is open: the labels of its next round and of its end."""

    again: int
    end: int
    finallys: int  # how many `finally` blocks were open when the loop began


class _Labelled(Record):
    """A labelled block: where it ends, and how many `finally` blocks were open around it."""

    end: int
    finallys: int


def lower(source: Source, workflow: nodes.Workflow, options: dict[str, Any]) -> Program:
    """Returns the program of a checked workflow."""
    start = min([workflow.start, *(annotation.start for annotation in workflow.annotations)])
    start, end = (0, len(source.text)) if workflow.script else (start, workflow.end)
    version = version_of(LANGUAGE, source.text[start:end])
    return lower_tree(source, workflow, options, version, (start, end))


def lower_tree(
    source: Source,
    workflow: nodes.Workflow,
    options: dict[str, Any],
    version: str,
    span: tuple[int, int],
    language: str = LANGUAGE,
) -> Program:
    """Returns the program of a tree that stands at this span of the source."""
    lines = source.lines_of(*span)
    made = _Lowering(workflow.script).program(workflow, source, version, options, lines)
    return made.replace(language=language)


class _Lowering:
    def __init__(self, script: bool) -> None:
        self.script = script
        self.code: list[ir.Instruction] = []
        self.handlers: list[ir.Handler] = []
        self.places: list[int] = []  # the places of labels
        self.branches: list[tuple[int, Block, tuple[str, ...]]] = []
        self.hidden = 0
        self.kept: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.names: dict[int, set[str]] = {}  # the variables used in each branch, by its start
        self._enter_body(())

    def program(
        self,
        workflow: nodes.Workflow,
        source: Source,
        version: str,
        options: dict[str, Any],
        lines: tuple[int, tuple[int, ...]],
    ) -> Program:
        if workflow.inputs is not None:
            self._take_inputs(workflow, workflow.inputs, options["inputs"])
        self._body(workflow.body)
        entries: list[int] = []
        while len(entries) < len(self.branches):  # lowering a branch may find more branches
            _, block, captures = self.branches[len(entries)]
            entries.append(len(self.code))
            self._enter_body(captures)
            self._body(block)
        code = tuple(self._placed(i) for i in self.code)
        return Program(
            name=workflow.name,
            language=LANGUAGE,
            version=version,
            code=code,
            handlers=tuple(self._placed_handler(handler) for handler in self.handlers),
            branches=tuple(entries),
            options=options,
            file=source.name,
            first_line=lines[0],
            lines=lines[1],
            ir=ir_version(code),
        )

    def _take_inputs(
        self, workflow: nodes.Workflow, parameters: tuple[nodes.Parameter, ...], schema: Any
    ) -> None:
        """Begins the program with the check of its inputs; each becomes a variable."""
        at = parameters[0].start if parameters else workflow.start
        args = (ir.Local("inputs"), ir.Const(schema), ir.Const(workflow.name))
        self._emit(ir.Set(GIVEN, ir.Call("check_inputs", args, at), at))
        for each in parameters:
            value = ir.Member(ir.Local(GIVEN), each.name, False, each.start)
            self._emit(ir.Set(each.name, value, each.start))
            self._declare(each.name)

    def _placed_handler(self, handler: ir.Handler) -> ir.Handler:
        places = self.places
        return handler.replace(
            first=places[handler.first], last=places[handler.last], target=places[handler.target]
        )

    def _placed(self, instruction: ir.Instruction) -> ir.Instruction:
        labels = {
            name: self.places[instruction.__dict__[name]]
            for name in ("to", "exit", "block")
            if name in instruction.__dict__
        }
        return instruction.replace(**labels) if labels else instruction

    def _enter_body(self, captures: tuple[str, ...]) -> None:
        self.scopes: list[dict[str, None]] = [dict.fromkeys(captures)]
        self.loops: list[_Loop] = []
        self.finallys: list[_Finally] = []
        self.labelled: dict[str, _Labelled] = {}

    def _body(self, block: Block) -> None:
        self._statements(block)
        self._emit(ir.Return(ir.Const(None), max(block.end - 1, block.start)))

    # Labels, hidden names, scopes.

    def _label(self) -> int:
        self.places.append(-1)
        return len(self.places) - 1

    def _place(self, label: int) -> None:
        self.places[label] = len(self.code)

    def _here(self) -> int:
        label = self._label()
        self._place(label)
        return label

    def _emit(self, instruction: ir.Instruction) -> None:
        self.code.append(instruction)

    def _fresh(self, what: str) -> str:
        self.hidden += 1
        return f"${what}{self.hidden}"

    def _declare(self, *names: str) -> None:
        self.scopes[-1].update(dict.fromkeys(names))

    def _keep(self) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name for scope in self.scopes for name in scope))
        # Awaits that keep the same names share one tuple.
        return self.kept.setdefault(names, names)

    def _block(self, block: Block, *declare: str) -> None:
        self.scopes.append(dict.fromkeys(declare))
        self._statements(block)
        self.scopes.pop()

    # Statements.

    def _statements(self, block: Block) -> None:
        for statement in block.statements:
            self._STATEMENTS[type(statement)](self, statement)

    def _let(self, node: nodes.Let) -> None:
        if isinstance(node.target, nodes.Name):
            self._into(node.target.name, node.value, node.start)
            self._declare(node.target.name)
        else:
            self._unpack(node.target, node.value, node.start)

    def _unpack(self, pattern: Node, value: Node | None, at: int) -> None:
        whole = self._fresh("value")
        self._into(whole, value, at)
        if isinstance(pattern, nodes.ListPattern):
            for i, name in enumerate(pattern.names):
                self._emit(
                    ir.Set(
                        name.name,
                        ir.Index(ir.Local(whole), ir.Const(i), False, name.start),
                        name.start,
                    )
                )
                self._declare(name.name)
        elif isinstance(pattern, nodes.ObjectPattern):
            for field in pattern.fields:
                self._emit(ir.Set(field.name.name, self._field(whole, field), field.start))
                self._declare(field.name.name)

    def _field(self, whole: str, field: nodes.Field) -> ir.Expression:
        value = ir.Member(ir.Local(whole), field.key, False, field.start)
        if field.default is None:
            return value
        there = ir.Binary("in", ir.Const(field.key), ir.Local(whole), field.start)
        return ir.Choose(there, value, self._expression(field.default))

    def _assign(self, node: nodes.Assign) -> None:
        if isinstance(node.target, nodes.ListPattern):
            return self._unpack(node.target, node.value, node.start)
        if isinstance(node.target, nodes.Name) and node.op == "=":
            name = node.target.name
            self._into(name, node.value, node.start)
            if not any(name in scope for scope in self.scopes):
                self._declare(name)
            return None
        value = self._evaluated(node.value)
        if node.op != "=":
            value = ir.Binary(node.op[:-1], self._expression(node.target), value, node.start)
        if isinstance(node.target, nodes.Name):
            self._emit(ir.Set(node.target.name, value, node.start))
        else:
            name, path = self._path(node.target)
            self._emit(ir.SetPath(name, path, value, node.target.start))
        return None

    def _path(self, node: Node) -> tuple[str, tuple[ir.Expression, ...]]:
        path: list[ir.Expression] = []
        while isinstance(node, nodes.Member | nodes.Index):
            path.append(
                ir.Const(node.name)
                if isinstance(node, nodes.Member)
                else self._expression(node.index)
            )
            node = node.target
        assert isinstance(node, nodes.Name), "the resolver lets only variables be assigned to"
        return node.name, tuple(reversed(path))

    def _evaluated(self, node: Node) -> ir.Expression:
        """Returns the value as an expression; what it awaits or starts comes in code before it."""
        if (
            isinstance(node, nodes.Await)
            or self._is_operation(node)
            or self._holds_operations(node)
        ):
            name = self._fresh("value")
            self._into(name, node, node.start)
            return ir.Local(name)
        return self._expression(node)

    def _into(self, name: str | None, value: Node | None, at: int) -> None:
        """Puts the value of a whole right side or statement into a local."""
        if isinstance(value, nodes.Await):
            self._emit(ir.Await(self._operand(value.value), name, self._keep(), value.value.start))
        elif value is not None and self._is_operation(value):
            operand = self._operand(value)
            self._emit(
                ir.Await(operand, name, self._keep(), value.start)
                if self.script
                else ir.Start(operand, name, value.start)
            )
        elif value is not None and self._holds_operations(value):
            self._emit(ir.Start(self._collection(value), name, value.start))
        else:
            self._emit(
                ir.Set(
                    name or "$", ir.Const(None) if value is None else self._expression(value), at
                )
            )

    def _expression_statement(self, node: nodes.ExpressionStatement) -> None:
        value = node.value
        if isinstance(value, nodes.Call) and value.name in EMITS:
            self._emit(
                ir.Emit(value.name, tuple(self._expression(arg) for arg in value.args), value.start)
            )
        else:
            self._into(None, value, node.start)

    def _if(self, node: nodes.If) -> None:
        end = self._label()
        for i, (condition, block) in enumerate(node.arms):
            otherwise = self._label()
            self._emit(ir.JumpUnless(self._expression(condition), otherwise, condition.start))
            self._block(block)
            if node.otherwise or i + 1 < len(node.arms):
                self._emit(ir.Jump(end, block.end))
            self._place(otherwise)
        if node.otherwise:
            self._block(node.otherwise)
        self._place(end)

    def _while(self, node: nodes.While) -> None:
        again, end = self._here(), self._label()
        self._emit(ir.JumpUnless(self._expression(node.condition), end, node.condition.start))
        self._loop(node.body, again, end)

    def _forever(self, node: nodes.Forever) -> None:
        self._loop(node.body, self._here(), self._label())

    def _labelled_block(self, node: nodes.Labelled) -> None:
        self.labelled[node.name] = around = _Labelled(self._label(), len(self.finallys))
        self._block(node.body)
        self._place(around.end)

    def _leave_block(self, node: nodes.Leave) -> None:
        around = self.labelled[node.name]
        self._pass_finallys(around.finallys, ir.Jump(around.end, node.start), node.start)

    def _declared(self, node: nodes.Declare) -> None:
        self._declare(*node.names)

    def _for(self, node: nodes.For) -> None:
        state, end = self._fresh("for"), self._label()
        names = tuple(name.name for name in node.names)
        self.scopes.append(dict.fromkeys((state, f"{state}.i")))
        if isinstance(node.source, nodes.Call) and node.source.name == "completed":
            self._emit(ir.Gather(state, self._group(node.source), node.source.start))
            again = self._here()
            self._emit(ir.Take(state, names[0], end, self._keep(), node.source.start))
        else:
            self._emit(
                ir.Iterate(state, self._expression(node.source), len(names), node.source.start)
            )
            again = self._here()
            self._emit(ir.Next(state, names, end, node.start))
        self._loop(node.body, again, end, names)
        self.scopes.pop()

    def _loop(self, body: Block, again: int, end: int, names: tuple[str, ...] = ()) -> None:
        self.loops.append(_Loop(again, end, len(self.finallys)))
        self._block(body, *names)
        self._emit(ir.Jump(again, body.end))
        self._place(end)
        self.loops.pop()

    def _break(self, node: Node) -> None:
        self._leave(self.loops[-1].end, node.start)

    def _continue(self, node: Node) -> None:
        self._leave(self.loops[-1].again, node.start)

    def _leave(self, to: int, at: int) -> None:
        """Jumps out of the loop's body, through the `finally` blocks in between."""
        self._pass_finallys(self.loops[-1].finallys, ir.Jump(to, at), at)

    def _pass_finallys(self, outermost: int, leave: ir.Instruction, at: int) -> None:
        end = self._label()
        for pending in reversed(self.finallys[outermost:]):
            after = self._label()
            self._emit(ir.Pend(pending.state, after, pending.block, at))
            self._place(after)
            pending.left.append((after, end))
        self._emit(leave)
        self._place(end)

    def _return(self, node: nodes.Return) -> None:
        value = ir.Const(None) if node.value is None else self._evaluated(node.value)
        if self.finallys:
            self._emit(ir.Set(RESULT, value, node.start))
            value = ir.Local(RESULT)
        self._pass_finallys(0, ir.Return(value, node.start), node.start)

    def _throw(self, node: nodes.Throw) -> None:
        self._emit(ir.Throw(self._expression(node.value), node.start))

    def _try(self, node: nodes.Try) -> None:
        end = self._label()
        pending = _Finally(self._fresh("finally"), self._label(), []) if node.cleanup else None
        if pending:
            self.finallys.append(pending)
        first = self._here()
        self._block(node.body)
        last = self._here()
        self._finish_try(pending, end, node.body.end)
        if node.handler:
            error = node.error.name if node.error else self._fresh("error")
            self.handlers.append(ir.Handler(first, last, self._here(), error, "catch"))
            self._block(node.handler, error)
            self._finish_try(pending, end, node.handler.end)
        if pending and node.cleanup:
            self._cleanup(node.cleanup, pending, first)
        self._place(end)

    def _finish_try(self, pending: _Finally | None, end: int, at: int) -> None:
        self._emit(ir.Pend(pending.state, end, pending.block, at) if pending else ir.Jump(end, at))

    def _cleanup(self, block: Block, pending: _Finally, first: int) -> None:
        self.finallys.pop()
        self._place(pending.block)
        for after, end in pending.left:
            self.handlers.append(ir.Handler(first, after, pending.block, pending.state, "finally"))
            first = end
        self.handlers.append(
            ir.Handler(first, pending.block, pending.block, pending.state, "finally")
        )
        self._block(block, pending.state, RESULT)
        self._emit(ir.EndFinally(pending.state, block.end))

    _STATEMENTS: dict[type[Node], Any] = {
        nodes.Let: _let,
        nodes.Assign: _assign,
        nodes.ExpressionStatement: _expression_statement,
        nodes.If: _if,
        nodes.For: _for,
        nodes.While: _while,
        nodes.Forever: _forever,
        nodes.Labelled: _labelled_block,
        nodes.Leave: _leave_block,
        nodes.Declare: _declared,
        nodes.Break: _break,
        nodes.Continue: _continue,
        nodes.Return: _return,
        nodes.Throw: _throw,
        nodes.Try: _try,
    }

    # Operations.

    @staticmethod
    def _is_operation(node: Node) -> bool:
        return isinstance(node, nodes.BranchBlock) or (
            isinstance(node, nodes.Call) and (node.name in OPERATIONS or node.name in GROUPS)
        )

    def _holds_operations(self, node: Node) -> bool:
        if isinstance(node, nodes.ListLiteral):
            return any(self._is_operation(item) for item in node.items)
        if isinstance(node, nodes.ObjectLiteral):
            return any(
                isinstance(entry, nodes.Entry) and self._is_operation(entry.value)
                for entry in node.entries
            )
        return isinstance(node, nodes.Comprehension) and self._is_operation(node.element)

    def _operand(self, node: Node) -> ir.Operand:
        if isinstance(node, nodes.BranchBlock):
            used = self._names(node)
            captures = tuple(name for name in self._keep() if name in used)
            self.branches.append((node.start, node.body, captures))
            return ir.Branch(len(self.branches) - 1, captures, node.start)
        if isinstance(node, nodes.Call) and node.name in GROUPS:
            return self._group(node)
        if isinstance(node, nodes.Call) and node.name in OPERATIONS:
            return ir.Operation(
                node.name, tuple(self._expression(arg) for arg in node.args), node.start
            )
        return self._expression(node)

    def _names(self, branch: nodes.BranchBlock) -> set[str]:
        """Returns the names of all variables that are written in the branch.

        Each branch is walked only once, however deep it is nested in others.
        """
        if branch.start not in self.names:
            found = self.names[branch.start] = set()
            stack: list[object] = [branch.body]
            while stack:
                node = stack.pop()
                if isinstance(node, nodes.Name):
                    found.add(node.name)
                elif isinstance(node, nodes.BranchBlock):
                    found |= self._names(node)
                elif isinstance(node, tuple | Node):
                    stack += node if isinstance(node, tuple) else node.__dict__.values()
        return self.names[branch.start]

    def _group(self, node: nodes.Call) -> ir.Group:
        options = self._expression(node.args[1]) if len(node.args) > 1 else None
        return ir.Group(node.name, self._collection(node.args[0]), options, node.start)

    def _collection(self, node: Node) -> ir.Collection:
        if isinstance(node, nodes.ListLiteral):
            return ir.OperandList(tuple(self._operand(item) for item in node.items), node.start)
        if isinstance(node, nodes.ObjectLiteral):
            pairs = (
                (entry.key, entry.value) if isinstance(entry, nodes.Entry) else (None, entry)
                for entry in node.entries
            )
            return ir.OperandObject(
                tuple((key, self._operand(value)) for key, value in pairs), node.start
            )
        if isinstance(node, nodes.Comprehension):
            return self._comprehension(node)
        return self._expression(node)

    # Expressions.

    def _expression(self, node: Node) -> ir.Expression:
        return self._EXPRESSIONS[type(node)](self, node)  # type: ignore[no-any-return]  # the table's methods all return one

    def _literal(self, node: nodes.Literal) -> ir.Expression:
        return ir.Const(node.value)

    def _name(self, node: nodes.Name) -> ir.Expression:
        return ir.Local(node.name)

    def _template(self, node: nodes.Template) -> ir.Expression:
        return ir.Template(tuple(self._expression(part) for part in node.parts), node.start)

    def _spread(self, node: nodes.Spread) -> ir.Expression:
        return ir.Spread(self._expression(node.value), node.start)

    def _list(self, node: nodes.ListLiteral) -> ir.Expression:
        return ir.ListOf(tuple(self._expression(item) for item in node.items), node.start)

    def _object(self, node: nodes.ObjectLiteral) -> ir.Expression:
        entries = tuple(
            (entry.key, self._expression(entry.value))
            if isinstance(entry, nodes.Entry)
            else (None, self._expression(entry))
            for entry in node.entries
        )
        return ir.ObjectOf(entries, node.start)

    def _comprehension(self, node: nodes.Comprehension) -> ir.Expression:
        condition = self._expression(node.condition) if node.condition else None
        source = self._expression(node.source)
        names = [name.name for name in node.names]
        self.scopes.append(dict.fromkeys(names))  # a branch inside copies these names
        element = self._operand(node.element)
        self.scopes.pop()
        return ir.Comprehension(element, tuple(names), source, condition, node.start)

    def _unary(self, node: nodes.Unary) -> ir.Expression:
        return ir.Unary(node.op, self._expression(node.value), node.start)

    def _binary(self, node: nodes.Binary) -> ir.Expression:
        return ir.Binary(
            node.op, self._expression(node.left), self._expression(node.right), node.op_start
        )

    def _logic(self, node: nodes.Logic) -> ir.Expression:
        left = self._expression(node.left)
        if node.op == "??":
            left = _or_null(left)
        return ir.Logic(node.op, left, self._expression(node.right))

    def _conditional(self, node: nodes.Conditional) -> ir.Expression:
        return ir.Choose(
            self._expression(node.condition), self._expression(node.yes), self._expression(node.no)
        )

    def _member(self, node: nodes.Member) -> ir.Expression:
        return ir.Member(self._expression(node.target), node.name, node.optional, node.name_start)

    def _index(self, node: nodes.Index) -> ir.Expression:
        return ir.Index(
            self._expression(node.target),
            self._expression(node.index),
            node.optional,
            node.index.start,
        )

    def _call(self, node: nodes.Call) -> ir.Expression:
        return ir.Call(node.name, tuple(self._expression(arg) for arg in node.args), node.start)

    _EXPRESSIONS: dict[type[Node], Any] = {
        nodes.Literal: _literal,
        nodes.Name: _name,
        nodes.Template: _template,
        nodes.Spread: _spread,
        nodes.ListLiteral: _list,
        nodes.ObjectLiteral: _object,
        nodes.Comprehension: _comprehension,
        nodes.Unary: _unary,
        nodes.Binary: _binary,
        nodes.Logic: _logic,
        nodes.Conditional: _conditional,
        nodes.Member: _member,
        nodes.Index: _index,
        nodes.Call: _call,
    }


def _or_null(left: ir.Expression) -> ir.Expression:
    """Returns the left side of a `??`: null also where only its last property is missing."""
    match left:
        case ir.Member() | ir.Index():
            return left.replace(optional=True)
        case ir.Logic("??", first, last):
            return ir.Logic("??", first, _or_null(last))
    return left
