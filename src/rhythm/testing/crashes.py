"""`crash_everywhere`: runs a workflow with a crash at every commit, and compares the outcomes.

A schedule says what goes wrong in a run: a fault at one commit, bodies that end in another order,
or both. The schedules are tried from the smallest on, so the first that fails is the smallest that
does. What happened in it is shown as a list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rhythm.errors import ExecutionFailed
from rhythm.record import Record
from rhythm.testing.engine import doctor
from rhythm.testing.faults import AFTER, BEFORE, COMMITS, LOST, MODES, CrashPoint, WatchedStore

if TYPE_CHECKING:
    from rhythm.authoring.workflow import Workflow
    from rhythm.testing.env import Env
    from rhythm.testing.trial import Trial

MAX_STEPS = 60  # lines of what happened that a failure shows
SAMPLE_SEED = 20  # so that a sample is the same every time
SIGNS = {  # what the worker says that it does, and the sign for it; the rest is left out
    "start": "▶", "task": "→", "done": "✓", "retry": "↻", "failure": "✗", "signal": "✉",
    "timer": "◷", "wait": "…", "approval": "…", "completed": "■", "failed": "■", "cancelled": "■",
}  # fmt: skip
WORDS = {
    "start": "begins:",
    "timer": "sets a timer:",
    "wait": "waits for",
    "approval": "asks the role",
    "completed": "completed",
    "failed": "failed:",
    "cancelled": "was cancelled",
}


class CrashPlan(Record):
    """What is run, and what is compared. See `Env.crash_everywhere`."""

    workflow: str | Workflow[..., Any]
    inputs: Any
    script: Callable[[Env, Trial[Any]], object] | None
    reset: Callable[[], object] | None
    effects: Callable[[], Any] | None
    check: Callable[[Env, Trial[Any]], object] | None
    same_result: bool

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return self.workflow if isinstance(self.workflow, str) else self.workflow.name


class Turnabout(Record):
    """Bodies in another order: at point `at`, from 1, the one of number `first` ends alone."""

    at: int
    first: int

    def __str__(self) -> str:
        return f"order {self.at}:{self.first}"


class CrashSchedule(Record):
    """What goes wrong in a run: at most one fault, and at most one other order."""

    fault: CrashPoint | None = None
    turnabout: Turnabout | None = None

    def __str__(self) -> str:
        return " and ".join(str(each) for each in (self.fault, self.turnabout) if each) or "none"


class RunOutcome(Record):
    """How a run ended, and what it left."""

    status: str
    value: Any
    effects: Any
    problem: str  # what `check` or the doctor says; empty: nothing is wrong


class Ran(Record):
    """One run: its outcome, and what happened in it."""

    schedule: CrashSchedule
    outcome: RunOutcome
    steps: tuple[str, ...]
    commits: tuple[str, ...]
    points: tuple[int, ...]  # at each point where several bodies had ended: how many
    met: bool  # whether its fault has come


class CrashReport(Record):
    """What `crash_everywhere` tried. `str(report)` says it in a sentence."""

    workflow: str
    runs: int
    commits: int
    schedules: int
    unmet: int = 0  # runs whose crash never came, since they did not do what the first one did

    def __str__(self) -> str:
        sample = "" if self.runs > self.schedules else f", a sample of {self.schedules:,} schedules"
        unmet = f"; in {self.unmet:,} of them the crash never came" if self.unmet else ""
        return (
            f"{self.workflow}: the same outcome in {self.runs:,} runs{sample}, with crashes before "
            f"and after its {self.commits} commits, lost answers, and other orders{unmet}"
        )


class CrashFailure(AssertionError):
    """A crash changed what a workflow does. `schedule` names where; `steps` is what happened."""

    def __init__(self, message: str, schedule: str, steps: Sequence[str]) -> None:
        super().__init__(message)
        self.schedule, self.steps = schedule, tuple(steps)


def crash_everywhere(env: Env, plan: CrashPlan, most: int, only: str | None) -> CrashReport:
    """Tries the schedules of a plan. Raises `CrashFailure` for the first that fails."""
    __tracebackhide__ = True
    if most < 1:
        raise ValueError(f"most is a number from 1 on, not {most!r}")
    usual = _run(env, plan, CrashSchedule())
    if usual.outcome.problem:
        raise AssertionError(f"it fails without any crash: {usual.outcome.problem}")
    schedules = list(_schedules(usual))
    chosen = _chosen(schedules, most, only)
    unmet = 0
    for number, schedule in enumerate(chosen, 1):
        ran = _run(env, plan, schedule)
        unmet += schedule.fault is not None and not ran.met
        if differences := _differences(plan, usual.outcome, ran.outcome):
            raise _failure(plan, ran, differences, number, len(schedules))
    return CrashReport(plan.name, len(chosen) + 1, len(usual.commits), len(schedules), unmet)


# which schedules there are


def _schedules(usual: Ran) -> Iterator[CrashSchedule]:
    """Yields all schedules, the smallest first."""
    faults = [
        CrashPoint(at, kind, mode)
        for at, kind in enumerate(usual.commits, 1)
        for mode in (BEFORE, AFTER, LOST)
    ]
    turnabouts = [
        Turnabout(at, first) for at, count in enumerate(usual.points, 1) for first in range(count)
    ]
    yield from (CrashSchedule(fault) for fault in faults)
    yield from (CrashSchedule(None, turnabout) for turnabout in turnabouts)
    yield from (CrashSchedule(fault, turnabout) for turnabout in turnabouts for fault in faults)


def _chosen(schedules: list[CrashSchedule], most: int, only: str | None) -> list[CrashSchedule]:
    if only is not None:
        found = [each for each in schedules if str(each) == only]
        if not found:
            some = ", ".join(str(each) for each in islice(schedules, 3))
            raise ValueError(f"there is no schedule {only!r}; there are {some} and so on")
        return found
    # All that have one thing go wrong come before any that has two: they are what was promised.
    singles = [each for each in schedules if not (each.fault and each.turnabout)]
    pairs = schedules[len(singles) :]
    return [*_sample(singles, most), *_sample(pairs, max(most - len(singles), 0))]


def _sample(schedules: list[CrashSchedule], most: int) -> list[CrashSchedule]:
    """Returns at most so many of the schedules, in their order; the same ones every time."""
    kept = random.Random(SAMPLE_SEED).sample(range(len(schedules)), min(most, len(schedules)))
    return [schedules[i] for i in sorted(kept)]


# one run


class _Observed:
    """What happens in a run, as lines."""

    def __init__(self, turnabout: Turnabout | None) -> None:
        self.lines: list[str] = []
        self.points: list[int] = []
        self._turnabout = turnabout
        self._commits = 0

    def order(self, count: int) -> int | None:
        """Says which of so many bodies that have ended is handed over first."""
        self.points.append(count)
        turn = self._turnabout
        if turn is None or len(self.points) != turn.at or turn.first >= count:
            return None
        self.lines.append(
            f"    ⇄ number {turn.first + 1} of {count} tasks that have ended comes first"
        )
        return turn.first

    def observe(self, what: str, id: str, detail: str) -> None:
        """Takes what the worker says that it does."""
        if what in SIGNS:
            words = [SIGNS[what], id, WORDS.get(what, ""), *detail.splitlines()[:1]]
            self.lines.append(f"    {' '.join(filter(None, words))}")

    def report(self, what: str, kind: str) -> None:
        """Takes what the store says: a commit, or the fault."""
        if what == "commit":
            self._commits += 1
            self.lines.append(f"{self._commits:>3} {COMMITS[kind][0]}")
        else:
            number = self._commits + (what == BEFORE)
            self.lines.append(f"  ☠ {number} {COMMITS[kind][0]}: {MODES[what]}")
            if what != LOST:
                self.lines.append("    another worker takes over")


def _run(env: Env, plan: CrashPlan, schedule: CrashSchedule) -> Ran:
    """Runs the workflow once, on a database of its own."""
    if plan.reset:
        plan.reset()
    seen = _Observed(schedule.turnabout)
    with env.twin() as twin:
        watched = WatchedStore(twin.app.store, schedule.fault, seen.report)
        twin.interrupt(watched, seen.order, seen.observe)
        try:
            outcome = _outcome(twin, plan)
        except Exception as wrong:
            wrong.add_note(f"in crash_everywhere, schedule {str(schedule)!r}")
            raise
        commits, points = tuple(watched.commits), tuple(seen.points)
        return Ran(schedule, outcome, tuple(seen.lines), commits, points, watched.met)


def _outcome(env: Env, plan: CrashPlan) -> RunOutcome:
    run = env.start_workflow(plan.workflow, plan.inputs, id="run")
    status, value, problem = "completed", None, ""
    try:
        if plan.script:
            plan.script(env, run)
        value = run.result()
    except ExecutionFailed as failed:
        status, value = failed.status, {**failed.error, "at": None}
    except AssertionError as wrong:  # of the script, or nothing can happen any more
        status, problem = run.status(), f"{type(wrong).__name__}: {wrong}"
    env.settle()
    if not problem and plan.check:
        problem = _checked(env, run, plan.check)
    if broken := doctor(env.app.store):
        problem = f"a bug in Rhythm, please report it: the doctor finds {broken}"
    return RunOutcome(status, value, plan.effects() if plan.effects else None, problem)


def _checked(env: Env, run: Trial[Any], check: Callable[[Env, Trial[Any]], object]) -> str:
    try:
        return "the check returned False" if check(env, run) is False else ""
    except AssertionError as wrong:
        return f"the check failed: {wrong or type(wrong).__name__}"


# what differs


def _differences(plan: CrashPlan, usual: RunOutcome, found: RunOutcome) -> list[str]:
    def differs(what: str, before: Any, after: Any) -> list[str]:
        return [] if before == after else [f"{what}: without a crash {before!r}, now {after!r}"]

    return [
        *([found.problem] if found.problem else []),
        *differs("status", usual.status, found.status),
        *(differs("result", usual.value, found.value) if plan.same_result else []),
        *differs("effects", usual.effects, found.effects),
    ]


def _failure(
    plan: CrashPlan, ran: Ran, differences: list[str], number: int, of: int
) -> CrashFailure:
    steps = list(ran.steps)
    if len(steps) > MAX_STEPS:
        steps = [
            *steps[: MAX_STEPS // 2],
            f"    … {len(steps) - MAX_STEPS} more …",
            *steps[-MAX_STEPS // 2 :],
        ]
    lines = [
        f"{plan.name} does something else if there is a crash ({ran.schedule}; "
        f"schedule {number} of {of})",
        "",
        *(f"  {each}" for each in differences),
        "",
        "What happened, with the commits numbered:",
        *(f"  {line}" for line in steps),
        "",
        f"To run this one alone: env.crash_everywhere(…, only={str(ran.schedule)!r})",
        "A task may run again if its worker dies before its end is stored: what it does outside "
        "must be safe to repeat. rhythm.current().idempotency_key is the same for all attempts.",
    ]
    return CrashFailure("\n".join(lines), str(ran.schedule), ran.steps)
