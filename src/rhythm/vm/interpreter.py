"""`advance`: one turn of an execution, from a snapshot to the next await, the end, or a yield.

Same program + same snapshot + same inputs = same turn. Nothing here reads a clock, draws random
numbers or does I/O.

The caller may say when the turn has lasted long enough (`over`). Then the same turn, computed
twice, may end at different instructions. That is harmless: it ends between two instructions, as it
does when its fuel is spent, with a snapshot of exactly what has been done. Its commands are those
of the instructions before, under the numbers that these always give. Snapshot and commands are one
commit, guarded by `seq`. So of two computations of a turn only one counts, and the next turn goes
on from where that one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any
from weakref import WeakKeyDictionary

from rhythm.errors import InvalidProgram
from rhythm.ir.awaiting import Plan, is_settled
from rhythm.ir.cleanup import cleanup_of
from rhythm.ir.program import Program
from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.record import Record
from rhythm.vm.awaits import close, forget_unused, release, release_all
from rhythm.vm.closures import Frame
from rhythm.vm.commands import Cancel, Command
from rhythm.vm.machine import CONTEXT, ORIGINS, RESUMED, STARTED, Inputs, Machine
from rhythm.vm.origins import encode_origins
from rhythm.vm.snapshot import Snapshot
from rhythm.vm.state_size import check_state
from rhythm.vm.statements import BLOCKED, DONE, SUSPEND, Run, StatementCompiler
from rhythm.vm.values import CancelFault, Fault, LimitFault

CHUNK = 256  # instructions between two checks of the fuel
CHUNK_WORK = 10_000  # or this much work inside them, counted in instructions
# With more plans than this in a snapshot, those whose ids no variable holds are dropped.
PLANS_KEPT = 100
FAULT_WORK = 100  # what catching a failure costs, in instructions
# Locals of a snapshot that no program has: they are fields of the turn.
OF_THE_TURN = frozenset({STARTED, RESUMED, ORIGINS})
HINT_WORK = 3000  # the same for a failure whose message suggests a name


class TurnEnd(Record):
    """How a turn ended, and the commands to carry out.

    `drew`: the turn used the time or random numbers, so commit it before anything acts on its
    commands.
    """

    commands: tuple[Command, ...]
    drew: bool


class Suspended(TurnEnd):
    """The execution waits for what `snapshot.awaiting` says.

    If `snapshot` is the very object that was passed in, nothing has changed.
    """

    snapshot: Snapshot


class Continue(TurnEnd):
    """The turn's fuel is spent, not a failure: commit, let others run, and go on from the snapshot.

    It is also the end of a turn that has lasted long enough (`over`).
    """

    snapshot: Snapshot


class Completed(TurnEnd):
    """The execution is over and has this result."""

    result: Any


class Failed(TurnEnd):
    """The execution is over and has this error `{code, message, data}`.

    `at` is the offset in the source where it arose.
    """

    error: dict[str, Any]
    at: int
    cancelled: bool = False


class Blocked(TurnEnd):
    """The execution is over by decision: no failure, and no result.

    The reason is an error `{code, message, data}`.
    """

    error: dict[str, Any]
    at: int


Turn = Suspended | Continue | Completed | Failed | Blocked


class _Prepared(Record):
    """A program ready to run under these limits."""

    limits: Limits
    code: list[Run]
    carriers: frozenset[str]  # the variables whose errors keep their place (see `origins`)


_CODE: WeakKeyDictionary[Program, _Prepared] = WeakKeyDictionary()


def advance(
    program: Program,
    snapshot: Snapshot,
    inputs: Inputs,
    limits: Limits = DEFAULT_LIMITS,
    *,
    over: Callable[[], bool] = lambda: False,
) -> Turn:
    """Takes one turn and returns how it ended. `program` must have passed `ir.verify`.

    `over` says whether the turn has lasted long enough and must yield (`Continue`). It is asked
    after every CHUNK of instructions, so every turn makes progress. Raises `InvalidProgram` if the
    snapshot belongs to another program.
    """
    if not 0 <= snapshot.statement_index < len(program.code):
        raise InvalidProgram(
            f"the snapshot stands at instruction {snapshot.statement_index} of "
            f"{len(program.code)}: it is of another program"
        )
    machine = Machine(snapshot, inputs, limits)
    # A workflow that takes no `inputs` or `ctx` may have variables with these names.
    frame: Frame = {"inputs": inputs.inputs, "ctx": machine.ctx, **snapshot.locals, "$m": machine}
    if not OF_THE_TURN.isdisjoint(snapshot.locals):
        for name in OF_THE_TURN:
            frame.pop(name, None)
    if inputs.resume_data and CONTEXT in frame:
        frame[CONTEXT] = {**frame[CONTEXT], **inputs.resume_data}
    return _Turn(program, snapshot, machine, frame, over).run()


def _prepared(program: Program, limits: Limits) -> _Prepared:
    """Returns the program's instructions as closures, compiled at the first call."""
    cached = _CODE.get(program)
    if cached is None or cached.limits is not limits:
        compiler = StatementCompiler(program.code, limits, program.language)
        cached = _CODE[program] = _Prepared(limits, compiler.compile(), compiler.carriers)
    return cached


class _Turn:
    def __init__(
        self,
        program: Program,
        snapshot: Snapshot,
        machine: Machine,
        frame: Frame,
        over: Callable[[], bool],
    ) -> None:
        self.program = program
        self.over = over
        self.snapshot = snapshot
        self.machine = machine
        self.frame = frame
        self.pc = snapshot.statement_index
        self.prepared = _prepared(program, machine.limits)

    def run(self) -> Turn:
        code = self.prepared.code
        if self.machine.inputs.cancel and not self.machine.cancelled:
            ended = self._cancel()
            if ended:
                return ended
        while True:
            try:
                stop = self._run_cleanup(code) if self.machine.limit else self._run_chunk(code)
            except RecursionError:
                stop = self._caught(LimitFault("a value nested too deep")) or self._spent_turn()
            except Fault as fault:
                stop = self._caught(fault) or self._spent_turn()
            if stop is not None:
                return stop

    def _run_cleanup(self, code: list[Run]) -> Turn | None:
        """Runs one instruction of a `finally` block.

        An execution that is over a limit runs nothing else: where a block leads out, it fails
        again, towards the next block. So each runs at most once, and nothing begins anew.
        """
        if not cleanup_of(self.program).holds(self.pc):
            raise self._limit_fault()
        return self._run_chunk(code, 1)

    def _run_chunk(self, code: list[Run], count: int | None = None) -> Turn | None:
        """Runs until the fuel must be checked again; returns the turn's end, or None to go on."""
        machine, frame, pc, next = self.machine, self.frame, self.pc, 0
        used, least = 0, max(machine.fuel - CHUNK_WORK, 0)
        try:
            for used in range(1, (count or CHUNK) + 1):  # noqa: B007 - read when the loop is left
                next = code[pc](frame)
                if next < 0:
                    break
                pc = next
                # One statement may use more than the turn has left; the next must not add to that.
                if machine.fuel <= least:
                    break
        finally:
            self.pc = pc
            machine.fuel -= used
        if next == SUSPEND:
            return self._suspended()
        if next == DONE:
            return self._completed()
        if next == BLOCKED:
            return self._blocked()
        return self._spent_turn()

    # The ends of a turn.

    def _spent_turn(self) -> Turn | None:
        return self._yielded() if self.machine.fuel <= 0 or self.over() else None

    def _spent(self) -> int:
        return (
            self.snapshot.instructions + self.machine.limits.turn_instructions - self.machine.fuel
        )

    def _snapshot(self, locals: dict[str, Any]) -> Snapshot:
        machine = self.machine
        check_state(locals, machine.awaiting, machine.limits, machine.limit is not None)
        return Snapshot(
            self.pc,
            locals,
            machine.awaiting,
            machine.next_child,
            self._spent(),
            machine.cancelled,
            machine.limit,
        )

    def _suspended(self) -> Turn | None:
        machine, frame = self.machine, self.frame
        locals = {name: frame[name] for name in machine.keep if name in frame}
        if machine.limit is not None:
            locals = self._needed(locals)
        self._go_on(locals)
        unchanged = (
            self.pc == self.snapshot.statement_index
            and not machine.commands
            and machine.awaiting == self.snapshot.awaiting
        )
        if unchanged and machine.inputs.resume_data is None:
            return Suspended((), machine.drew, self.snapshot)
        try:
            return self._stored(Suspended, locals)
        except LimitFault as fault:
            self._lose_all_but(locals)
            return self._over_limit(fault, self._suspended)

    def _yielded(self) -> Turn | None:
        machine = self.machine
        most = machine.limits.instructions(machine.limit is not None)
        if self._spent() > most:
            fault = LimitFault(f"more than {most:,} instructions in one execution")
            return self._over_limit(fault, self._yielded)
        given = {"inputs": machine.inputs.inputs, "ctx": machine.ctx, "$m": machine}
        locals = {
            name: value for name, value in self.frame.items() if value is not given.get(name, given)
        }
        if machine.limit is not None:
            locals = self._needed(locals)
        try:
            return self._stored(Continue, locals)
        except LimitFault as fault:
            return self._over_limit(fault, self._yielded)

    def _needed(self, locals: dict[str, Any]) -> dict[str, Any]:
        """Returns what `finally` blocks may still read: over a limit, nothing else is kept."""
        needed = cleanup_of(self.program).needs(self.pc)
        return {name: value for name, value in locals.items() if name in needed}

    def _stored(self, outcome: type[Suspended] | type[Continue], locals: dict[str, Any]) -> Turn:
        """Returns the end of a turn after which the execution goes on.

        Raises LimitFault if its state is too large.
        """
        machine = self.machine
        if len(machine.plans) > PLANS_KEPT:
            forget_unused(machine, locals)
        if machine.plans:
            locals[STARTED] = machine.plans
        if machine.resumed is not None:
            locals[RESUMED] = machine.resumed
        if machine.origins:
            locals[ORIGINS] = encode_origins(machine.origins, locals)
        return outcome(tuple(machine.commands), machine.drew, self._snapshot(locals))

    def _completed(self) -> Turn:
        if fault := self._overruled():
            return self._failed(fault)
        self._leave_running()
        return Completed(tuple(self.machine.commands), self.machine.drew, self.machine.result)

    def _blocked(self) -> Turn:
        if fault := self._overruled():
            return self._failed(fault)
        self._leave_running()
        at = getattr(self.program.code[self.pc], "at", 0)
        return Blocked(tuple(self.machine.commands), self.machine.drew, self.machine.result, at)

    def _leave_running(self) -> None:
        """Lets go on what was started and not awaited: it outlives its execution."""
        self._go_on(())
        for plan in self.machine.plans.values():
            release_all(self.machine, plan)

    def _go_on(self, kept: Container[str]) -> None:
        """Releases held-back items: in background groups as others end, in abandoned loops all.

        Background groups are started but not awaited yet. An abandoned `completed` loop is one
        whose state is not among the locals that are `kept`. Over a limit, what such a loop has not
        taken is cancelled.
        """
        machine = self.machine
        abandon = close if machine.limit else release_all
        for n, plan in machine.plans.items():
            if not is_settled(plan):
                machine.plans[n] = release(machine, plan)
        for name, value in self.frame.items():
            if (
                type(value) is dict
                and "taken" in value
                and name.startswith("$")
                and name not in kept
            ):
                abandon(machine, value)

    def _failed(self, fault: Fault) -> Turn:
        at, decided = self._place_of(fault), self._overruled()
        if decided is not None:
            fault, at = decided, at if decided.at is None else decided.at
        return Failed(
            tuple(self.machine.commands),
            self.machine.drew,
            fault.value(),
            at,
            self.machine.cancelled,
        )

    def _overruled(self) -> Fault | None:
        """Returns how the execution ends whatever its `finally` blocks do; None if that is open."""
        if self.machine.cancelled:
            return CancelFault()
        return self._limit_fault() if self.machine.limit else None

    # Failures and cancellation.

    def _cancel(self) -> Turn | None:
        machine = self.machine
        machine.cancelled, machine.awaiting = True, None
        if machine.next_child > 1:
            machine.commands.append(Cancel(1, machine.next_child - 1))
        return self._caught(CancelFault())

    def _caught(self, fault: Fault) -> Turn | None:
        """Goes on at the handler that takes the fault; without one, returns the turn's end."""
        machine, frame = self.machine, self.frame
        machine.awaiting = None
        machine.fuel -= HINT_WORK if fault.code == "MissingProperty" else FAULT_WORK
        at = self._place_of(fault)
        if isinstance(fault, LimitFault) and machine.limit is None:
            machine.limit = {"error": fault.value(), "at": at}
        for handler in self.program.handlers:
            if handler.first <= self.pc < handler.last and (
                fault.catchable or handler.kind == "finally"
            ):
                if handler.kind == "catch":
                    frame[handler.into] = fault.value()
                    if handler.into in self.prepared.carriers:
                        machine.origins[handler.into] = at
                else:
                    frame[handler.into] = {
                        "throw": fault.value(),
                        "at": at,
                        "cancel": isinstance(fault, CancelFault),
                    }
                    if isinstance(fault, LimitFault):
                        frame[handler.into]["limit"] = True
                self.pc = handler.target
                return None
        fault.at = at
        return self._failed(fault)

    def _place_of(self, fault: Fault) -> int:
        """Returns where the fault arose: by default, at the current instruction."""
        return getattr(self.program.code[self.pc], "at", 0) if fault.at is None else fault.at

    # Limits that are met where a turn ends.

    def _over_limit(self, fault: LimitFault, end: Callable[[], Turn | None]) -> Turn | None:
        """Fails where the turn would have ended, with the variables that the execution has there.

        A `finally` block is completed first: the turn ends (`end`) as it would have, within the
        limits for cleaning up. If it is over those too, the execution ends at once.
        """
        machine = self.machine
        if machine.limit is None and cleanup_of(self.program).holds(self.pc):
            machine.limit = {"error": fault.value(), "at": self._place_of(fault)}
            return end()
        if machine.awaiting is not None:
            self._give_up(machine.awaiting)
        if machine.limit is None:
            return self._caught(fault)
        first = self._limit_fault()
        first.message += f". Its `finally` blocks did not run to their end: {fault.message}"
        machine.limit = {"error": first.value(), "at": first.at}
        return self._failed(first)

    def _lose_all_but(self, locals: dict[str, Any]) -> None:
        """Drops what an await does not keep, as if the execution had waited and come back."""
        kept = {"inputs", "ctx", "$m", *locals}
        for name in [name for name in self.frame if name not in kept]:
            del self.frame[name]

    def _give_up(self, plan: Plan) -> None:
        """Takes back the await at which the limit was met; if it began earlier, cancels it."""
        machine = self.machine
        if machine.begun is None:
            close(machine, plan)
        else:
            del machine.commands[machine.mark : machine.begun]

    def _limit_fault(self) -> LimitFault:
        """Returns the failure of an execution that is over a limit."""
        assert self.machine.limit is not None
        error, at = self.machine.limit["error"], self.machine.limit["at"]
        return LimitFault(error["message"], at, error["data"])
