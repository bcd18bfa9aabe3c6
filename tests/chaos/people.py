"""Workers and HTTP servers are killed with `kill -9` in a storm of approvals, signals, events,
pauses and schedules.

Whatever somebody was told is done must be there afterwards, once, and every execution ends as the
decision that was acknowledged says.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from rhythm.app import Rhythm
from tests.chaos.acting import Act, Book, Person
from tests.chaos.kills import LASTING, Killer
from tests.chaos.report import Figure, at_least, none, shown
from tests.chaos.server import own_server, until
from tests.chaos.servers import Servers
from tests.chaos.stories import BY_HAND, FLOWS, TOGGLED, Stories
from tests.chaos.world import SHORT, World, world

PEOPLE = {  # roles, and business roles
    "operator": (("operator",), ()),
    "finance 1": (("approver",), ("finance",)),
    "finance 2": (("approver",), ("finance",)),
    "board": (("approver",), ("board",)),
}
SCHEDULES = ("allow", "skip", "queue", "cancel_other")  # named like what they do about overlaps
EVERY_US = 1_000_000
KEPT = 100  # rows of a schedule's past


def scenario(seed: int, scale: float) -> list[Figure]:
    kills = max(1, round(20 * scale))
    with own_server() as server:
        figures = _storm(server.url, seed, kills, scale > SHORT)
        figures.append(shown("deadlocks (retried)", server.logged("deadlock detected")))
    with tempfile.TemporaryDirectory(prefix="rhythm-chaos-") as folder:
        few = _storm(f"sqlite:///{folder}/rhythm.db", seed, max(1, round(6 * scale)), scale > SHORT)
    return [*figures, *[figure._replace(name=f"{figure.name} (SQLite)") for figure in few]]


def _storm(url: str, seed: int, kills: int, full: bool) -> list[Figure]:
    """So many kills of workers, and as many of servers."""
    with world(url, seed, 1, LASTING) as w, Rhythm(url) as app:
        storm = Storm(w, app, seed, full)
        try:
            storm.rage(kills)
            return storm.verdict(kills)
        finally:
            storm.end()


class Storm:
    def __init__(self, w: World, app: Rhythm, seed: int, full: bool) -> None:
        self.w, self.app, self.full, self.book = w, app, full, Book()
        app.register(FLOWS)
        secrets = {
            name: app.create_token(name, roles=roles, business_roles=own).secret
            for name, (roles, own) in PEOPLE.items()
        }
        self.servers = Servers(w.folder, w.url, 3 if full else 2)
        self.people = {
            name: Person(name, secret, self.servers.bases, self.book, seed)
            for name, secret in secrets.items()
        }
        self.stories = Stories(w.load, self.book, self.people, seed)
        self.killer = Killer(w, 3 if full else 2)
        self.killed = 0  # servers
        self.heads = list[str]()  # of the audit, kept here

    def end(self) -> None:
        self.stories.end()
        self.servers.end()
        for person in self.people.values():
            person.close()

    # the storm

    def rage(self, kills: int) -> None:
        assert until(lambda: len(self.servers.ready) == len(self.servers.ports), 60.0), [
            one.log() for one in self.servers.all
        ]
        for overlap in SCHEDULES:
            self.app.schedule(overlap, "beat", every=EVERY_US / 1e6, overlap=overlap, catch_up=1000)  # type: ignore[arg-type]
        self.app.schedule(TOGGLED, "beat", every=EVERY_US / 1e6, overlap="allow")
        self.app.schedule(BY_HAND, "beat", every="1h")
        self.stories.begin(8 if self.full else 6)
        self.w.torment(
            lambda: self.strike(kills), lambda: self.is_enough(kills), 0, 60.0 + 6.0 * kills
        )
        self.stories.end()
        for schedule in self.app.schedules():
            self.app.pause_schedule(schedule.name)

    def is_enough(self, kills: int) -> bool:
        told = set(self.stories.done) == {kind.__name__ for kind in self.stories.kinds}
        return (
            self.killer.count >= kills
            and self.killed >= kills
            and (told or bool(self.book.troubles))
            and self.fired() >= set(SCHEDULES)
        )

    def fired(self) -> set[str]:
        """Returns the schedules that came due: the first slot is a second away, and the storm may
        be over before it."""
        return {name for (name,) in self.query("SELECT DISTINCT schedule FROM schedule_fires")}

    def strike(self, kills: int) -> float:
        """A worker or a server goes, once all are there: else nobody would be left to do anything.
        Now and then somebody keeps the head of the audit."""
        if self.killer.count < kills and len(self.w.workers.ready) == len(self.w.workers.alive):
            self.killer.kill()
        if self.killed < kills and len(self.servers.ready) == len(self.servers.ports):
            self.servers.kill(self.w.chance.choice(self.servers.ready))
            self.killed += 1
        if self.w.chance.random() < 0.2:
            self.heads.append(self.app.verify_audit().head)
        return self.w.chance.uniform(0.3, 1.2) if self.full else 0.7

    # what must hold

    def verdict(self, kills: int) -> list[Figure]:
        until(lambda: len(self.servers.ready) == len(self.servers.ports), 60.0)
        late = self.servers.stop()
        figures = self.w.verdict()
        counts, done = self.book.counts, self.stories.done
        return [
            *figures,
            *self.killer.figures(kills, False),
            at_least("kills of servers", self.killed, kills),
            at_least("acts acknowledged", len(self.book.acknowledged), 10),
            shown(
                "… " + ", ".join(f"{kind} {count}" for kind, count in sorted(done.items())),
                sum(done.values()),
            ),
            at_least("requests cut off by a kill", counts["cut off"], 1 if self.full else 0),
            at_least("answers that nobody saw", counts["looked away"], 1 if self.full else 0),
            shown("requests that found no server", counts["no server there"]),
            none("answers that should not be", self.book.troubles),
            none("answers 5xx", sum(count for what, count in counts.items() if what.isdigit())),
            *self.of_audit(),
            *self.of_approvals(),
            *self.of_resumes(),
            *self.of_events(),
            *self.of_schedules(),
            none("bugs in the logs of servers", self.servers.bugs()),
            none("servers that did not stop when told", [process.log()[-300:] for process in late]),
        ]

    def query(self, text: str) -> list[Any]:
        return self.w.load.query(text)

    def of_audit(self) -> list[Figure]:
        """One row for each act that was acknowledged, at most one for each without an answer, and
        no others."""
        by_people = (
            "SELECT actor, action, object, detail FROM audit WHERE substr(source, 1, 10) <> "
            "'execution:'"
        )
        rows = Counter(_act(*row) for row in self.query(by_people) if row[0] in PEOPLE)
        wanted = Counter(self.book.acknowledged)
        broken = [
            *self.app.verify_audit().problems,
            *(text for head in self.heads for text in self.app.verify_audit(head).problems),
        ]
        return [
            none("acknowledged, but not in the audit", list((wanted - rows).elements())),
            none(
                "in the audit without having been acknowledged",
                list((rows - wanted - Counter(self.book.unanswered)).elements()),
            ),
            shown("… of those without an answer were done", len(list((rows - wanted).elements()))),
            none("published by a workflow, and not once in the audit", self.unrecorded()),
            none("the audit chain is broken", broken),
            shown("heads of the audit kept meanwhile", len(self.heads)),
        ]

    def of_approvals(self) -> list[Figure]:
        decisions = Counter(
            map(
                tuple,
                self.query("SELECT approval_id, actor, decision, key FROM approval_decisions"),
            )
        )
        found = {
            id: (decision, set(json.loads(by or "[]")))
            for id, decision, by in self.query("SELECT id, decision, decided_by FROM approvals")
        }
        others = [
            f"{id}: {found.get(id)}, not {how}"
            for id, how in self.stories.outcomes.items()
            if found.get(id) != how
        ]
        expired = {
            id for (id,) in self.query("SELECT object FROM audit WHERE action = 'approval.expire'")
        }
        return [
            none(
                "decisions lost, or there twice",
                _difference(decisions, Counter(self.book.decisions)),
            ),
            none("approvals that ended otherwise", others),
            none(
                "expired, but not in the audit",
                expired ^ {id for id, (how, _) in found.items() if how == "expired"},
            ),
        ]

    def of_resumes(self) -> list[Figure]:
        rows = self.query(
            "SELECT execution_id, triggered_by, triggered_by_id, reason, executed_at FROM "
            "execution_resume_requests"
        )
        manual = Counter(
            Act(who, "execution.resume", id, reason)
            for id, by, who, reason, _ in rows
            if by == "manual"
        )
        recorded = Counter(
            _act(*row)
            for row in self.query(
                "SELECT actor, action, object, detail FROM audit WHERE action = 'execution.resume'"
            )
        )
        lapsed = Counter(
            Act("rhythm", "execution.resume", id, "its pause is over")
            for id, by, *_ in rows
            if by == "timeout"
        )
        decided = Counter(of for _, by, of, _, _ in rows if by == "approval")
        return [
            none(
                "resume requests that the audit has otherwise",
                _difference(manual + lapsed, recorded),
            ),
            none(
                "approvals without one resume request",
                _difference(decided, Counter([*self.stories.outcomes])),
            ),
            none("resume requests that led to no turn", [row for row in rows if row[4] is None]),
        ]

    def unrecorded(self) -> list[str]:
        """Events of turns beside what the audit says of them."""
        published = Counter(
            id for (id,) in self.query("SELECT id FROM events WHERE type = 'decided'")
        )
        recorded = (
            "SELECT object FROM audit WHERE substr(source, 1, 10) = 'execution:' AND action = "
            "'event.publish'"
        )
        return _difference(published, Counter(id for (id,) in self.query(recorded)))

    def of_events(self) -> list[Figure]:
        there = {
            id: (type, json.loads(data))
            for id, type, data in self.query(
                "SELECT id, type, data FROM events WHERE type <> 'decided'"
            )
        }
        signals = Counter(id for (id,) in self.query("SELECT id FROM workflow_signals"))
        sent = Counter(
            act.mark for act in self.book.acknowledged if act.action == "execution.signal"
        )
        return [
            none(
                "events lost, or never acknowledged",
                [
                    id
                    for id in {*there, *self.book.events}
                    if there.get(id) != self.book.events.get(id)
                ],
            ),
            none("signals lost, or there twice", _difference(signals, sent)),
            none(
                "workflows not started once by their event",
                self._started("made", "event_id", self.stories.made),
            ),
            none(
                "… that was published by a workflow", self._started("told", None, self.stories.told)
            ),
        ]

    def _started(self, workflow: str, attribute: str | None, expected: dict[str, Any]) -> list[str]:
        """Executions of a workflow by the event that started them, or the id in their inputs: each
        one, with its result."""
        found = defaultdict[str, list[Any]](list)
        rows = self.query(
            f"SELECT attributes, inputs, result FROM executions WHERE name = '{workflow}' "
            f"AND type = 0"
        )
        for attributes, inputs, result in rows:
            of = json.loads(attributes)[attribute] if attribute else json.loads(inputs)["id"]
            found[of].append(json.loads(result or "null"))
        return [
            f"{of}: {found.get(of)}"
            for of in {*found, *expected}
            if found.get(of) != [expected.get(of)]
        ]

    def of_schedules(self) -> list[Figure]:
        started = defaultdict[str, list[tuple[str, str]]](list)
        for id, attributes in self.query(
            "SELECT id, attributes FROM executions WHERE name = 'beat'"
        ):
            told = json.loads(attributes)
            started[told["schedule"]].append((told["scheduled_at"], id))
        twice = [
            name
            for name, found in started.items()
            if name != BY_HAND and len({slot for slot, _ in found}) != len(found)
        ]
        others = {id for _, id in started[BY_HAND]} ^ self.stories.runs
        gaps = [gap for name in SCHEDULES for gap in self._gaps(name)]
        return [
            at_least(
                "slots that started an execution", sum(map(len, started.values())), len(SCHEDULES)
            ),
            none("slots with two executions", twice),
            none("slots of which nothing became", gaps),
            none("runs by hand that are not one execution", others),
        ]

    def _gaps(self, name: str) -> Iterable[str]:
        """Each slot has a row: started with an execution that is there, or skipped; one may wait
        still."""
        fires = self.query(
            f"SELECT slot_at, until_at, outcome, execution_id FROM schedule_fires WHERE "
            f"schedule = '{name}' ORDER BY slot_at"
        )
        [(next_at, queued_at)] = self.query(
            f"SELECT next_at, queued_at FROM schedules WHERE name = '{name}'"
        )
        there = {id for (id,) in self.query("SELECT id FROM executions WHERE name = 'beat'")}
        due = fires[0][0] if fires else next_at
        for slot, until_at, outcome, id in [*fires, (next_at, None, "next", None)]:
            due += EVERY_US if due == queued_at else 0
            if slot != due or (outcome == "started") != (id in there):
                yield f"{name}: {outcome} {slot} instead of {due}, {id}"
            due = (until_at or slot) + EVERY_US


MARKS = {  # where the audit has what tells an act from others
    "execution.signal": "id",
    "execution.pause": "reason",
    "execution.resume": "reason",
    "schedule.pause": "paused_reason",
    "schedule.run": "execution",
}


def _act(actor: str, action: str, subject: str, detail: str) -> Act:
    return Act(actor, action, subject, json.loads(detail)[MARKS[action]] if action in MARKS else "")


def _difference(left: Counter[Any], right: Counter[Any]) -> list[str]:
    return [
        f"{what}: {left[what]} instead of {right[what]}"
        for what in {*left, *right}
        if left[what] != right[what]
    ]
