"""Loads owned workflows: everything that their next turns may know.

It takes a few statements for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from rhythm.engine.reading import inputs_read, reading
from rhythm.engine.rows import load_owned
from rhythm.errors import InvalidProgram, NewerFormat
from rhythm.ir.awaiting import Plan, ends_as_a_whole, is_limited, size_of
from rhythm.ir.program import Program
from rhythm.store.interfaces.turns import Loaded
from rhythm.store.lifecycle import TERMINAL
from rhythm.vm.snapshot import Snapshot, decode_snapshot
from rhythm.worker.claiming import JustClaimed
from rhythm.worker.context import Context
from rhythm.worker.ownership import OwnedWorkflow, Ownership

# A workflow that awaits all of many looks at most so many rounds later whether one has failed.
MAX_DEFERRED_ROUNDS = 4
# Finds a program by name and version (None: the current one). May raise UnknownWorkflow, whose
# message has advice.
Programs = Callable[[str, str | None], Program | None]


class Loader:
    """Loads the workflows of one worker."""

    def __init__(self, context: Context, programs: Programs, ownership: Ownership) -> None:
        self.store, self.narrator, self.now = context.store, context.narrator, context.now
        self.newer_retry_s, self.seed = context.settings.newer_retry_s, context.seed
        self.programs, self.ownership, self.batch = programs, ownership, context.settings.batch

    def load_stale(self, just_claimed: JustClaimed) -> None:
        """Loads the owned workflows about which there may be something new.

        The rows of those that were claimed in this round are there already.
        """
        workflows = self.ownership.workflows.values()
        stale = [each for each in workflows if each.stale and each.is_as_stored]
        here = self._read_rows(stale, just_claimed)
        if not here:
            return
        turns = self.store.turns
        readings = [reading(each.row, each.snapshot, each.items, each.signals) for each in here]
        limited = [each for read in readings for each in read.unfinished()]
        found = iter(turns.nth_unfinished(limited) if limited else ())
        unfinished = {read.id: list(islice(found, len(read.limited))) for read in readings}
        needed = [need for read in readings for need in read.needed(unfinished[read.id])]
        outcomes = turns.outcomes(needed)
        readings = [read.rest(outcomes.get(read.id, ())) for read in readings]
        loops = [asked for read in readings if (asked := read.next_ended())]
        items = turns.next_ended(loops) if loops else {}
        boxes = [asked for read in readings for asked in read.mail]
        mail = self.store.messages.first_mail(boxes) if boxes else {}
        for each, read in zip(here, readings, strict=True):
            id = each.id
            each.inputs = inputs_read(
                each.row,
                each.snapshot,
                read,
                outcomes.get(id, ()),
                unfinished[id],
                items.get(id),
                mail.get(id, ()),
                self.seed(),
            )
            each.known = each.inputs.replace(
                outcomes={}, asked=(), firsts=(), signals=(), read=(), undecided=(), may_begin={}
            )
            each.outcomes, each.signals = dict(each.inputs.outcomes), each.inputs.signals
            each.items = {n: end for n, end in each.outcomes.items() if n in each.inputs.firsts}
            each.stale = False

    def _read_rows(
        self, workflows: Sequence[OwnedWorkflow], just_claimed: JustClaimed
    ) -> list[OwnedWorkflow]:
        """Reads the rows of these workflows; returns those to decide for in this round."""
        claims = just_claimed.claims
        new = {claim.id for claim in claims}
        here = [
            each
            for each in workflows
            if each.id not in new
            or self._take_row(each, claims.workflows.get(each.id), just_claimed.began)
        ]
        here = self._without_deferred(here)
        others = [each.id for each in here if each.id not in new]
        began = self.now()
        loaded = {row.id: row for row in self.store.turns.load(others)} if others else {}
        return [
            each
            for each in here
            if each.id in new or self._take_row(each, loaded.get(each.id), began)
        ]

    def _without_deferred(self, workflows: Sequence[OwnedWorkflow]) -> list[OwnedWorkflow]:
        """Returns the workflows that are loaded in this round.

        One that awaits all of many is loaded later while some of them end here, when their ends are
        committed: else it would be loaded for each few of them. The more there are, the later.
        """
        ending = {end.id.rpartition(".")[0] for end in self.ownership.ends}
        ending |= {each.id.rpartition(".")[0] for each in workflows}
        for each in workflows:
            most = self._rounds_later(each.snapshot.awaiting) if each.id in ending else 0
            each.deferred = each.deferred + 1 if each.deferred < most else 0
        return [each for each in workflows if not each.deferred]

    def _rounds_later(self, plan: Plan | None) -> int:
        """Returns how many rounds a workflow that awaits this may be loaded later.

        One that lets its items begin a few at a time must begin the next ones.
        """
        if plan is None or not ends_as_a_whole(plan):
            return 0
        rounds = 1 if is_limited(plan) else size_of(plan) // self.batch
        return min(max(rounds, 1), MAX_DEFERRED_ROUNDS)

    def _take_row(self, workflow: OwnedWorkflow, row: Loaded | None, began: float) -> bool:
        """Keeps the row of a workflow; returns whether there is a turn to decide for it.

        A workflow that has ended is dropped, and one that another worker owns by now is lost.
        """
        if row is None or row.status >= TERMINAL:
            self.ownership.forget(workflow.id)
            self.store.claims.drop({workflow.id: workflow.fence})
            return False
        if row.fence > workflow.fence:
            self.ownership.lose(workflow.id)
            return False
        if workflow.loaded is not None and workflow.loaded.seq != row.seq:
            workflow.items, workflow.signals = {}, ()
        workflow.loaded, workflow.loaded_at = row, began
        if not self._read_program(workflow, row):
            return False
        if not workflow.running:
            workflow.owned = load_owned(row.owned)
        return True

    def _read_program(self, workflow: OwnedWorkflow, row: Loaded) -> bool:
        """Reads program and snapshot; returns whether the worker keeps the workflow.

        False if it needs a newer Rhythm: it is given back for other workers. If the program or the
        snapshot is broken, no worker can run it: it is kept, without a program.
        """
        try:
            workflow.program = self.programs(row.name, row.version)
            workflow.snapshot = decode_snapshot(row.snapshot) if row.snapshot else Snapshot()
        except NewerFormat as problem:
            self.narrator.complain("program_newer", row.id, f"{problem}; it is left to those")
            self.ownership.forget(row.id)
            self.store.claims.release({row.id: workflow.fence}, self.newer_retry_s)
            return False
        except InvalidProgram as problem:
            workflow.program = None
            self.narrator.complain("program_broken", row.id, str(problem))
        return True
