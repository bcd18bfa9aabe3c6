"""Chains of people, workflows, events, signals, schedules, children, retries and resumes, each
ending in an approval: whoever had a hand in what is decided about must be refused, and nobody else.

A chain is a row of stations. Data comes into a station from people (who start it, signal it,
publish to it, resume it with data, make its schedule, retry it) and from the station before, and
goes on to the next. So everybody who did one of these things has a hand in what the last station
asks; bystanders do things that look alike and give it nothing. In the end everybody tries to
decide, with a quorum that nobody reaches, so that one vote does not end the approval.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from rhythm.app import Rhythm
from rhythm.engine.doctor import examine
from rhythm.engine.payload import dump
from rhythm.errors import Denied, NotDelivered, Undecidable
from rhythm.store.access import Actor
from tests.attack.places import KINDS
from tests.chaos.report import Figure, at_least, none
from tests.support.stores import rows

PEOPLE = ("ann", "bob", "cyd", "dan", "eve", "fay")
CHAINS = 10_000  # at full size, half of them on each database
AT_ONCE = 500  # chains that share a database
TOUCHES = ("signal", "event", "resume", "child", "retry", "comment")
FIRST, NEXT = ("start", "run", "clock", "knock"), ("publish", "send", "kick", "below")
FLOWS = """
workflow leaf() { return await signal("in") }
workflow station(ctx, inputs) {
  let data = inputs.data
  for (take in inputs.takes) {
    if (take == "signal") { data = await signal("in") }
    if (take == "event") { data = await event("item", { where: { to: inputs.me } }) }
    if (take == "child") { data = await workflow("leaf") }
    if (take == "comment") {
      let said = await approval({ role: "finance", reason: `${inputs.me} asks`, four_eyes: false })
      data = said.comment
    }
    if (take == "below") { data = await workflow("station", inputs.below) }
    if (take == "resume" || take == "retry") {
      await signal("go")
      data = ctx.resume_data ?? data
    }
  }
  if (inputs.give == "publish") { publish("item", { to: inputs.next, data }) }
  if (inputs.give == "send") { send(inputs.next, "in", data) }
  if (inputs.give == "kick") { publish("kick", inputs.next) }
  if (inputs.give == "ask") {
    return await approval({ role: "finance", reason: inputs.me, data, quorum: 99, escalate: { role: "board" } })
  }
  return data
}
@on("kick") workflow kicked(inputs) { return await workflow("station", inputs) }
@on("knock") workflow knocked(inputs) { return await workflow("station", inputs) }
"""


class Station:
    """One workflow of a chain: how data comes in from the one before, and how people give it
    more."""

    def __init__(self, name: str, entry: str, touches: list[str]) -> None:
        self.name, self.entry, self.touches = name, entry, touches
        self.inputs: dict[str, Any] = {"me": name, "takes": [], "data": None, "give": "ask"}

    def take(self, rng: random.Random) -> None:
        """What it waits for: what comes in, and what people give, in any order; a retry last, when
        all the rest is there."""
        comes = {"publish": ["event"], "send": ["signal"]}.get(self.entry, [])
        waits = [*comes, *(touch for touch in self.touches if touch != "retry")]
        rng.shuffle(waits)
        # first: whoever publishes to a child finds it there
        below = ["below"] * (self.entry == "below")
        self.inputs["takes"] = [
            *below,
            *waits,
            *(touch for touch in self.touches if touch == "retry"),
        ]


class Chain:
    """What people do in one chain; `hands` is who had a hand in what its last station asks."""

    def __init__(self, app: Rhythm, rng: random.Random, name: str) -> None:
        self.app, self.rng, self.name = app, rng, name
        self.hands: set[str] = set()
        self.story: list[str] = []
        count = rng.randint(1, 4)
        entries = [rng.choice(FIRST), *(rng.choice(NEXT) for _ in range(count - 1))]
        for i in reversed(range(1, count)):  # what begins as a child has no other beginning
            if entries[i] == "below":
                entries[i - 1] = "publish" if i > 1 else "child"
        self.stations = [
            Station(
                f"{name}-{i}",
                entry,
                rng.sample(TOUCHES, rng.randint(0, 2))
                if i < count - 1 or rng.random() < 0.7
                else [],
            )
            for i, entry in enumerate(entries)
        ]
        for before, after in zip(self.stations, self.stations[1:], strict=False):
            self._join(before, after)
        self._without_comment(self.stations[-1])
        for station in self.stations:
            station.take(rng)

    def _join(self, before: Station, after: Station) -> None:
        if after.entry == "below":
            before.inputs["give"], after.inputs["below"] = "return", before.inputs
            # events of before are not for who is retried
            before.touches = [touch for touch in before.touches if touch != "retry"]
        elif after.entry == "kick":
            before.inputs |= {"give": "kick", "next": after.inputs}
        else:
            before.inputs |= {"give": after.entry, "next": after.name}

    def _without_comment(self, station: Station) -> None:
        """In the family that asks, a comment on another decision is no hand in it."""
        station.touches = [touch for touch in station.touches if touch != "comment"]
        if "below" in station.inputs:
            self._without_comment(self.stations[self.stations.index(station) - 1])

    def somebody(self, what: str) -> str:
        """Somebody who has a hand in it from now on, in some spelling of the name."""
        who = self.rng.choice(PEOPLE)
        self.hands.add(who)
        self.story.append(f"{who} {what}")
        return self.rng.choice((who, who.title(), who.upper()))

    def bystander(self) -> str:
        return self.rng.choice(PEOPLE)

    # the story

    def play(self) -> Iterator[None]:
        """Does what people do; at each `yield` the workers do their part until nothing is left to
        do."""
        for station in reversed(self.stations):  # who receives is there before who sends
            self._begin(station)
            yield
        self._stand_by()
        waiting = [(station, touch) for station in self.stations for touch in station.touches]
        for _ in range(40):
            waiting = [
                (station, touch) for station, touch in waiting if not self._touch(station, touch)
            ]
            yield
            if not waiting:
                return

    def _begin(self, station: Station) -> None:
        app, inputs, name = self.app, station.inputs, station.name
        match station.entry:
            case "start" | "publish" | "send":
                if not self._is_child(station):
                    attributes = {"schedule": f"{self.name}-other"}
                    app.start_workflow(
                        "station",
                        inputs,
                        id=name,
                        by=self.somebody(f"starts {name}"),
                        attributes=attributes,
                    )
                    app.start_workflow(
                        "station", {**inputs, "data": "other"}, id=name, by=self.bystander()
                    )
            case "below":
                app.start_workflow("station", inputs, id=name, by=self.somebody(f"starts {name}"))
            case "knock":
                app.publish("knock", inputs, by=self.somebody(f"publishes what starts {name}"))
            case "run" | "clock":
                self._schedule(station)

    def _is_child(self, station: Station) -> bool:
        i = self.stations.index(station)
        return i + 1 < len(self.stations) and self.stations[i + 1].entry == "below"

    def _schedule(self, station: Station) -> None:
        app, name = self.app, station.name
        times: dict[str, Any] = {"every": "1000h"}
        before = {"me": "old", "takes": [], "data": None, "give": "nothing"}
        app.schedule(
            name, "station", inputs=before, by=self.somebody(f"makes the schedule {name}"), **times
        )
        if station.entry == "clock":
            times = {"at": datetime.now(UTC) + timedelta(seconds=0.2)}
        app.schedule(
            name,
            "station",
            inputs=station.inputs,
            by=self.somebody(f"changes the schedule {name}"),
            **times,
        )
        if station.entry == "run":
            app.run_schedule(name, by=self.somebody(f"runs the schedule {name}"))

    def _touch(self, station: Station, touch: str) -> bool:
        """Somebody gives something to a station, if it is there already and waits for that."""
        app, name, id = self.app, station.name, self._id(station)
        awaited = (app.get(id).awaiting or {}) if id else {}
        if id is None or (touch == "child" and awaited.get("op") != "workflow"):
            return False
        if touch == "retry" and (
            awaited.get("name") != "go" or ("resume" in station.touches and not self._resumed(id))
        ):
            return False
        match touch:
            case "event":
                app.publish("item", {"to": name}, by=self.somebody(f"publishes to {name}"))
            case "resume":
                return self._resume(station, id)
            case "child":
                return self._signal_child(station, id)
            case "comment":
                return self._comment(station)
            case "signal":
                app.signal(id, "in", signal_id="once", by=self.somebody(f"signals {name}"))
                self._late(id)
            case "retry":
                self._retry(station, id)
        return True

    def _signal_child(self, station: Station, id: str) -> bool:
        leaves = [
            child.id
            for child in self.app.children(id)
            if child.name == "leaf" and child.finished_at is None
        ]
        if leaves:
            self.app.signal(
                leaves[0], "in", by=self.somebody(f"signals the child of {station.name}")
            )
        return bool(leaves)

    def _resume(self, station: Station, id: str) -> bool:
        """Paused by anybody, and resumed with data. While somebody is asked to decide, it gets
        none."""
        before = set(self.hands), list(self.story)
        self.app.pause(id, by=self.bystander())
        try:
            self.app.resume(
                id, by=self.somebody(f"resumes {station.name} with data"), data={"given": 1}
            )
        except Undecidable:
            self.hands, self.story = before
            self.app.resume(id, by=self.bystander())
            return False
        self.app.signal(id, "go")
        return True

    def _comment(self, station: Station) -> bool:
        """Somebody decides on what a station asks, and says something with it."""
        asked = _asked(self.app).get(f"{station.name} asks")
        if asked:
            self.app.approve(
                asked,
                by=Actor(self.somebody(f"comments at {station.name}"), ("finance",)),
                comment="7",
            )
        return asked is not None

    def _resumed(self, id: str) -> bool:
        """Whether the signal for its resume is taken: then `go` that it waits for is that for its
        retry."""
        gone = (
            "SELECT 1 FROM workflow_signals WHERE execution_id = ? AND name = 'go' AND "
            "consumed_seq IS NOT NULL"
        )
        return bool(rows(self.app.store, gone, [id]))

    def _late(self, id: str) -> None:
        """The same signal again, by somebody else, is nothing."""
        with contextlib.suppress(NotDelivered):  # it has ended by now
            assert not self.app.signal(id, "in", signal_id="once", by=self.bystander())

    def _retry(self, station: Station, id: str) -> None:
        """Ended while it waits, and made to go on by somebody."""
        ((root,),) = rows(self.app.store, "SELECT root_id FROM executions WHERE id = ?", [id])
        self.app.terminate(root, by=self.bystander())
        self.app.retry(root, by=self.somebody(f"retries {station.name}"))
        again = self._id(station)
        assert again is not None
        self.app.signal(again, "go")

    def _id(self, station: Station) -> str | None:
        """The newest execution of a station."""
        asked = (
            "SELECT id FROM executions WHERE name = 'station' AND finished_at IS NULL AND "
            "inputs = ? ORDER BY created_at DESC LIMIT 1"
        )
        found = rows(self.app.store, asked, [dump(station.inputs, "inputs")])
        return str(found[0][0]) if found else None

    def _stand_by(self) -> None:
        """What looks like a hand in it, and is none."""
        app, last = self.app, self.stations[-1]
        app.start_workflow(
            "station",
            {"me": last.name, "takes": ["event"], "data": None, "give": "nothing"},
            by=self.bystander(),
        )
        app.publish("item", {"to": f"{self.name}-nobody"}, by=self.bystander())
        app.schedule(
            f"{self.name}-other",
            "station",
            every="1000h",
            inputs={"me": "other"},
            by=self.bystander(),
        )
        if last.entry in ("start", "publish", "send"):
            app.pause(last.name, by=self.bystander())
            app.resume(last.name, by=self.bystander())

    def __str__(self) -> str:
        """What people have done, and what its executions wait for."""
        names = f"{self.name}-%"
        waits = rows(
            self.app.store,
            "SELECT id, status, inputs FROM executions WHERE name = 'station' AND inputs LIKE ?",
            [f'%"me":"{names}'],
        )
        where = [
            f"{id} {status} {self.app.get(str(id)).awaiting} {inputs}"
            for id, status, inputs in waits
        ]
        return f"{self.name}: {', '.join(self.story)}; {where}"

    # the end

    def judge(self, approval: str) -> tuple[list[str], list[str]]:
        """Who was let through with a hand in it, and who was kept out without one."""
        through, out = list[str](), list[str]()
        for who in PEOPLE:
            involved = who in self.hands
            acts = [self.app.approve, *([self.app.escalate] if involved else [])]
            for act in acts:
                refused = _refused(act, approval, who)
                if refused != involved:
                    (out if refused else through).append(
                        f"{who} on {approval}: {', '.join(self.story)}"
                    )
        return through, out


def _refused(act: Any, approval: str, who: str) -> bool:
    try:
        act(approval, by=Actor(who.title(), ("finance", "board")))
    except Denied as problem:
        return problem.code == "self_approval"
    except Undecidable:  # somebody who was let through has escalated it
        return False
    return False


def play(url: str, seed: int, count: int) -> tuple[list[str], list[str], list[str]]:
    """Plays chains on a new database: those that asked nobody, who was let through, who was kept
    out."""
    rng = random.Random(seed)
    with Rhythm(url, (), tasks=(), environment={}, worker_poll_interval="5ms") as app:
        app.register(FLOWS)
        chains = [Chain(app, rng, f"c{i}") for i in range(count)]
        left = [chain.play() for chain in chains]
        with app.worker():
            while left:
                left = [story for story in left if next(story, left) is not left]
                _quiet(app)
            asked = _asked(app)
        found = [
            chain.judge(asked[chain.stations[-1].name])
            for chain in chains
            if chain.stations[-1].name in asked
        ]
        assert examine(app.store, 60.0) == []
        through, out = ([each for pair in found for each in pair[i]] for i in (0, 1))
        silent = [
            f"{chain} of seed {seed}" for chain in chains if chain.stations[-1].name not in asked
        ]
        return silent, through, out


def _quiet(app: Rhythm) -> None:
    """Until the workers have nothing to do."""
    soon = int((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1e6)
    while rows(
        app.store,
        (
            "SELECT 1 FROM ready WHERE state < 2 UNION ALL SELECT 1 FROM schedules WHERE "
            "next_at < ? LIMIT 1"
        ),
        [soon],
    ):
        time.sleep(0.002)


def _asked(app: Rhythm) -> dict[str, str]:
    """The approvals that are open, by the station that asks."""
    return dict(rows(app.store, "SELECT reason, id FROM approvals WHERE ended_at IS NULL"))


def scenario(seed: int, scale: float) -> list[Figure]:
    figures = list[Figure]()
    wanted = max(int(CHAINS * scale) // 2, 1)
    for kind, place in KINDS.items():
        silent, through, out = list[str](), list[str](), list[str]()
        with place() as fresh:
            for i in range(0, wanted, AT_ONCE):
                more = play(fresh(), seed + i, min(AT_ONCE, wanted - i))
                silent, through, out = silent + more[0], through + more[1], out + more[2]
        figures += [
            at_least(f"chains that ended in an approval, {kind}", wanted - len(silent), wanted),
            none(f"of these that did not, {kind}", silent),
            none(f"let through with a hand in it, {kind}", through),
            none(f"kept out without one, {kind}", out),
        ]
    return figures
