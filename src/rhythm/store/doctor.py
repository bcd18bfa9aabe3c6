"""The rules that every database of Rhythm keeps, and the check for rows that break them.

A rule is a statement in `doctor.sql` of each database, or, where a plan must be understood, part of
the judge that the caller passes (`rhythm.engine.doctor`): a store knows rows, not meanings. A check
reads one snapshot of a changing database.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from rhythm.record import Record
from rhythm.store.access import (
    HIGHEST,
    LOWEST,
    MOST_PROBLEMS,
    PAGE_ROWS,
    PAGE_SIZE,
    AuditRow,
    Chain,
    Head,
    Links,
)
from rhythm.store.approvals import DecisionMade, decided_with_a_hand
from rhythm.store.audit_checks import (
    AuditedDecision,
    TokenAct,
    TokenFacts,
    TokenRow,
    collect_token_facts,
    other_decisions,
    other_tokens,
)
from rhythm.store.lifecycle import STATUS_NAMES, TERMINAL, StatusNumber
from rhythm.store.rows import records

MAX_FINDINGS = 20  # findings of one rule; the others are only counted
DECISIONS = 100  # how many are compared with the audit at a time: their comments may be long
US = 1_000_000

REPORT = (
    "report it as a bug of Rhythm, unless somebody changed the database by hand or restored "
    "only a part of it"
)
SERVE = "is a worker running? its services do this; if one is, look at its log"


class Finding(Record):
    """A broken rule. `subject` is the id of an execution or of another object.

    `of`: how many such findings there are; only the first are reported.
    """

    rule: str
    subject: str
    message: str
    of: int = 1


class Live(Record):
    """A workflow that has not ended, for a judge of waits."""

    id: str
    status: StatusNumber
    held: bool
    paused: bool
    cancel_requested: bool
    timed_out: bool
    ready: bool  # it has a ready row, so it is claimed or will be
    seq: int
    statement: int
    snapshot: bytes | None
    owned: str
    awaiting: str


class Child(Record):
    """A child and whether it has ended."""

    id: str
    status: StatusNumber
    finished_at: int | None
    type: int
    name: str


class Timer(Record):
    """A timer, or a wait for an event, of a workflow."""

    execution_id: str
    n: int
    fired_at: int | None
    cancelled_at: int | None
    status: StatusNumber | None  # of a wait for an event; None for a timer


class Mailed(Record):
    """A signal that has not been consumed, without its payload."""

    execution_id: str
    id: str
    name: str
    received_at: int


class Rule(Record):
    """What must hold (`law`), and what to do where it does not (`remedy`)."""

    law: str
    remedy: str = REPORT


RULES: Mapping[str, Rule] = {
    # what has ended
    "ended_once": Rule("a workflow ends once, and takes no turn after that"),
    "ended_clean": Rule("what has ended has exactly one outcome, what has not ended has none"),
    "ended_timers": Rule("a workflow that has ended has no timers"),
    "ended_ready": Rule("what has ended is in no queue",
        "a running worker removes the row of a workflow; for a task, " + REPORT),
    "children_asked_to_end": Rule(
        ("the children of a workflow that failed or was cancelled are asked to end, and "
                "none of an ended one is held back"),
        "cancel the child; and " + REPORT,
    ),
    "cancelled_tasks_end": Rule("a cancelled task that nobody runs ends", SERVE),
    "terminated_end": Rule("what is below an execution that was terminated ends", SERVE),
    # history
    "history_whole": Rule("the history has every turn of a workflow, from the first on"),
    "history_chained": Rule("each turn begins with the status in which the one before it ended"),
    "history_agrees": Rule("a workflow has the status in which its last turn left it"),
    "attempts_counted": Rule(
        "the attempts of a task are counted, and it completes in one of its own"
    ),
    "times_sound": Rule(
        "nothing ends before it began, or happens in the future",
        "was the clock of the database set back? timers and timeouts may be late"
    ),
    # claims and fences
    "fences_grow": Rule("the fences of an execution never go back, and each belongs to one worker"),
    "fences_drawn": Rule(
        "every fence was drawn from the sequence, and once",
        ("after a restore or a failover the sequence must be set beyond the highest fence "
                "before workers start"),
    ),
    "claim_newest": Rule(
        "a claim on a workflow is as new as its context",
        "stop the worker that holds it: when the claim expires, another can take over"
    ),
    "claims_taken_back": Rule("a claim that has expired is taken back", SERVE),
    "silent_hold_nothing": Rule("a worker that is silent loses its claims", SERVE),
    # queues
    "pending_queued": Rule(
        "what has not begun is queued, held back or paused",
        "pausing and resuming a workflow queues it again, a task must be cancelled; and " + REPORT,
    ),
    "ready_agrees": Rule("a queue row fits its execution"),
    "overdue": Rule(
        "timers, retries, delayed starts, timeouts and deadlines happen when they are due", SERVE
    ),
    # waiting
    "no_lost_wake": Rule(
        "a workflow is asleep only while what it awaits has not happened",
        "pause and resume it: that wakes it; and " + REPORT
    ),
    "no_orphan_wait": Rule(
        "whatever a workflow awaits can still happen",
        "nothing will wake it: cancel it and start it anew; and " + REPORT
    ),
    "waits_for_something": Rule("a workflow that is asleep awaits something",
        "pause and resume it: that wakes it; and " + REPORT),
    "owned_once": Rule(
        "a task without a row is awaited by a workflow that somebody holds or will take",
        "pause and resume the workflow: that wakes it; and " + REPORT,
    ),
    # what belongs together
    "belongs": Rule("every row belongs to an execution",
        "rows of executions that are gone do no harm; " + REPORT),
    "context_kept": Rule("a workflow has a context, a task has none",
        "without its context it cannot go on: start it anew; and " + REPORT),
    "blobs_kept": Rule(
        "a large snapshot is in blobs, and nothing else is there",
        ("without its snapshot it cannot go on: restore it from a backup, or start it "
                "anew; a blob too many does no harm; ") + REPORT,
    ),
    "definition_kept": Rule("the program of every workflow that has not ended is there",
        "register this version of the workflow again"),
    "sources_kept": Rule(
        "the text of every version of a workflow is there, once",
        ("without it people cannot see where an execution is: register the file again, "
                "changed if only by a space; ") + REPORT,
    ),
    "child_ids": Rule(
        "a child's id is that of its parent and its number, and a family has one root"
    ),
    "within_generations": Rule(
        "a workflow is no more generations below its root than there may be",
        "let it loop instead of starting itself; and " + REPORT
    ),
    "numbers_once": Rule("a number stands for one child or one timer of a workflow"),
    "one_per_key": Rule("of one name and idempotency key there is one execution",
        "is the unique index executions_key there, and valid?"),
    "status_known": Rule("types and statuses are those that Rhythm knows",
        "was a newer Rhythm at work here? then upgrade; else " + REPORT),
    "timers_sound": Rule("a timer never fires early, nor after it was cancelled"),
    "signals_numbered": Rule("the signals of a mailbox are numbered without a gap"),
    "signals_in_order": Rule("signals of one name are taken in the order in which they were sent"),
    "signals_taken": Rule("a signal is taken by a turn that was committed"),
    "events_kept": Rule(
        "an event that an execution has taken is there, and of the type that it waited for"
    ),
    "triggers_current": Rule(
        "an event starts workflows in the version that was registered last",
        "register the workflow again; and " + REPORT
    ),
    # people
    "approvals_entitled": Rule(
        "an approval is decided by enough people who may, and not after its end",
        ("somebody changed approvals by hand: `rhythm audit list --object ID` tells what "
                "was decided; and ") + REPORT,
    ),
    "contributors_kept": Rule(
        "everyone who took part in an execution is kept with its family, and with what comes of it",
        "somebody changed the database by hand, or only a part was restored: let nobody "
                "decide its approvals who may be concerned; "
        "and " + REPORT,
    ),
    "approvals_awaited": Rule("an approval is open only while its execution may wait for it",
        "nobody needs to decide it; " + REPORT),
    "decisions_audited": Rule(
        "a decision on an approval is in the audit, as whoever made it made it",
        ("somebody changed decisions or audit by hand, or only a part was restored: "
                "`rhythm audit list --object ID` tells what was recorded"),
    ),
    "tokens_audited": Rule(
        ("a token is there, and allows what it allows, because somebody made it so, who is "
                "in the audit"),
        ("somebody changed api_tokens by hand, or only a part was restored: revoke the "
                "token (`rhythm token revoke ID`) unless you know why"),
    ),
    "audit_chained": Rule(
        "the audit is one unbroken chain",
        ("somebody changed it by hand, or only a part was restored: compare it with an "
                "export (`rhythm audit verify --file`)"),
    ),
    # schedules
    "slots_once": Rule(
        "a slot of a schedule is one row and at most one execution, and comes once",
        ("was the clock of the database set back? a slot that has its row is not run "
                "again; else ") + REPORT,
    ),
    "schedules_fire": Rule(
        "schedules fire when they are due",
        SERVE + "; its time zone may be unknown there: install the package tzdata"
    ),
    # snapshots
    "snapshot_readable": Rule(
        "the snapshot of a workflow can be read",
        ("was a newer Rhythm at work here? then upgrade; else restore it from a backup, or "
                "cancel it"),
    ),
    "context_agrees": Rule("what a context tells people is what its snapshot says"),
    "within_limits": Rule("a snapshot is within the limits of the interpreter"),
}  # fmt: skip


class Ask(Protocol):
    """Runs a named statement inside the snapshot.

    `rows`: pairs that the statement gets as a table with the columns id and n.
    """

    def __call__(
        self, name: str, /, rows: Sequence[tuple[str, int]] | None = None, **values: Any
    ) -> list[Any]: ...


class Evidence:
    """What a judge may read, all of it in one snapshot."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask

    def live(self, page: int) -> Iterator[list[Live]]:
        """Yields the workflows that have not ended, from `page` contexts at a time."""
        after = ""
        while rows := self.ask("contexts", after=after, limit=page):
            page_read = records(Live, rows)
            after = page_read[-1].id
            yield [live for live in page_read if live.status is not None and live.status < TERMINAL]

    def children(self, ids: Sequence[str]) -> list[Child]:
        return records(Child, self.ask("children_by_id", ids=list(ids))) if ids else []

    def timers(self, numbers: Sequence[tuple[str, int]]) -> list[Timer]:
        return records(Timer, self.ask("timers_by_number", numbers)) if numbers else []

    def mail(self, ids: Sequence[str]) -> list[Mailed]:
        return records(Mailed, self.ask("mailboxes", ids=list(ids)))


Judge = Callable[[Evidence], Iterable[Finding]]


OnProgress = Callable[[int, int], None]  # called with how many are done, of how many


def examine(
    ask: Ask,
    names: Iterable[str],
    now: int,
    grace_s: float,
    judge: Judge | None,
    on_progress: OnProgress = lambda done, of: None,
) -> list[Finding]:
    """Returns everything that breaks a rule, in the order of the rules."""
    before, found = now - int(grace_s * US), list[Finding]()
    rules = [name for name in names if name in RULES]
    for done, name in enumerate(rules):
        on_progress(done, len(rules))
        found += [
            Finding(name, subject, _with_names(message), of)
            for subject, message, of in ask(name, now=now, before=before, limit=MAX_FINDINGS)
        ]
    on_progress(len(rules), len(rules))
    found += _bounded(Finding("approvals_entitled", *bad) for bad in _decided_with_a_hand(ask))
    found += _bounded(Finding("decisions_audited", *bad) for bad in _other_decisions(ask))
    found += _bounded(Finding("tokens_audited", *bad) for bad in _other_tokens(ask))
    chain = verified(ask)
    found += [
        Finding("audit_chained", f"row {n}", message, chain.broken)
        for n, message in chain.problems[:MAX_FINDINGS]
    ]
    found += _bounded(judge(Evidence(ask))) if judge else ()
    order = {name: position for position, name in enumerate(RULES)}
    return sorted(found, key=lambda finding: (order[finding.rule], finding.subject))


def _decided_with_a_hand(ask: Ask) -> Iterator[tuple[str, str]]:
    after = ("", -1)
    while page := records(
        DecisionMade, ask("decisions_made", id=after[0], n=after[1], limit=DECISIONS)
    ):
        yield from decided_with_a_hand(page)
        after = (page[-1].approval_id, page[-1].n)


def _other_decisions(ask: Ask) -> Iterator[tuple[str, str]]:
    """Yields decisions that differ from the audit."""
    after = ("", -1)
    while page := records(
        AuditedDecision, ask("audited_decisions", id=after[0], n=after[1], limit=DECISIONS)
    ):
        yield from other_decisions(page)
        after = (page[-1].approval_id, page[-1].n)


def _other_tokens(ask: Ask) -> Iterator[tuple[str, str]]:
    """Yields tokens that differ from the audit, or are not in it."""
    facts, after = dict[str, TokenFacts](), 0
    while page := records(TokenAct, ask("token_acts", after=after, limit=PAGE_ROWS)):
        collect_token_facts(facts, page)
        after = page[-1].n
    yield from other_tokens(records(TokenRow, ask("token_rows")), facts)


def verified(
    ask: Ask,
    known: Head | None = None,
    after: Head | None = None,
    limit: int | None = None,
    size: int | None = None,
) -> Chain:
    """Reads the audit chain from its lowest row, or from row `after`, and returns what is wrong
    with it.

    It reads all of it, or as much as `limit` and `size` allow. Row `after` itself is read once more
    and is not counted, so a caller that reads part by part reaches the end.
    """
    passed = [known] if known is not None and after is not None and known.n < after.n else []
    head = records(Head, ask("audit_head"))[0]
    links = Links(*([known] if known and not passed else ()), after=after)
    ended = True
    problems = [problem for kept in passed for problem in _not_there(ask, kept)]
    count, read, characters = len(problems), 0, 0
    for row in _audit_rows(ask, LOWEST if after is None else max(after.n, 1)):
        if read == limit or (size is not None and characters >= size):
            ended = False
            break
        if after is None or row.n > after.n:
            read, characters = read + 1, characters + len(row.detail)
        for problem in links.follow(row):
            count += 1
            problems += [problem] if count <= MOST_PROBLEMS else ()
    last = list(links.end(head)) if ended else []
    return Chain(head, links.last, read, ended, tuple(problems + last), count + len(last))


def _not_there(ask: Ask, kept: Head) -> list[tuple[int, str]]:
    """Returns what is wrong with one row, whose head was kept."""
    links = Links(after=kept)
    found = records(AuditRow, ask("audit_page", first=kept.n, limit=1, size=PAGE_SIZE))
    return [problem for row in found if row.n == kept.n for problem in links.follow(row)] or list(
        links.end(None)
    )


def _audit_rows(ask: Ask, first: int) -> Iterator[AuditRow]:
    while first <= HIGHEST and (
        rows := records(AuditRow, ask("audit_page", first=first, limit=PAGE_ROWS, size=PAGE_SIZE))
    ):
        first = rows[-1].n + 1
        yield from rows


def bounded_text(text: str, limit: str) -> str:
    """Returns a rule's statement with a bound on its rows.

    Each row also has the number of all rows.
    """
    return (
        f"SELECT subject, message, count(*) OVER () FROM (\n{text}\n) AS found ORDER BY "
        f"subject, message LIMIT {limit}"
    )


def _bounded(found: Iterable[Finding]) -> Iterator[Finding]:
    """Returns the first findings of each rule, each with the number of all findings of its rule."""
    of: Counter[str] = Counter()
    kept: list[Finding] = []
    for finding in found:
        of[finding.rule] += 1
        if of[finding.rule] <= MAX_FINDINGS:
            kept.append(finding)
    return (finding.replace(of=of[finding.rule]) for finding in kept)


def _with_names(message: str) -> str:
    """Returns a message with the names of statuses in place of their numbers."""
    return re.sub(r"status (\d+)", lambda found: STATUS_NAMES.get(int(found[1]), found[0]), message)
