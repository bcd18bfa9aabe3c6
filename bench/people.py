"""J5: many executions that wait for people, who decide over HTTP, a hundred at once.

The server is `rhythm server`, the worker `rhythm worker`, each a process with its defaults; whoever
decides has a token of their own. All of them, the client and the database share the machine, so its
clock is everyone's: what begins with a request ends with a time that the database has noted. In the
end everything must be completed, the doctor content, and the audit whole.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench import raw
from bench.client import Answer, Asked, at_once
from bench.jobs import tell
from bench.measure import percentiles, row, show_s
from bench.places import Place, postgres, sqlite
from rhythm.app.audit import AuditCheck
from rhythm.engine.doctor import examine
from rhythm.record import Record

V1 = "/api/v1"
PEOPLE = 10
LIMIT_S = 120.0  # for what must happen in any case
GRACE_S = 900.0
FLOW = """
workflow warm(inputs) {
  return inputs
}
workflow order(inputs) {
  let answer = await approval({ role: "manager", reason: "An order", data: { number: inputs } })
  return answer.decision
}
workflow held() {
  return await signal("go")
}
"""


class Size(Record):
    """How much of it: executions that are paused, how many requests come at once and how many
    alone, and how long idleness is watched."""

    paused: int
    at_once: int = 100
    singles: int = 20
    idle_s: float = 0.0


SIZES = (Size(1000), Size(10_000, idle_s=11.0))


class Idle(Record):
    """What the processes cost in a second in which nothing happens: asked of the database, and
    seconds of a core."""

    asked: float
    worker: float
    server: float

    def __str__(self) -> str:
        return f"{self.asked:.1f}/s, worker {self.worker:.2%}, server {self.server:.2%} of a core"


class ByHand(Record):
    """Pauses by hand, from the request to the pause; resumes, from the request to the end of the
    execution."""

    pauses: list[float]
    resumes: list[float]


class Report(Record):
    """What was measured with one number of executions, in seconds; and whether all is as it should
    be."""

    size: Size
    paused_s: float  # from the start of all to the last that is paused
    pauses: list[float]  # of each, from its start
    single_pauses: list[float]  # nothing else going on: from the request that starts it
    single_decisions: list[float]  # from the request to its execution's end
    answers: list[float]  # all at once: from the request to its answer
    decisions: list[float]  # from the request to its execution's end
    # from the decision to its execution's end, by the database's times alone
    resumptions: list[float]
    waves: list[float]  # from the first request to the last end, of as many as come at once
    empty: list[float]  # as many requests that ask for nothing
    cpu: tuple[float, float]  # of the worker and of the server, for each decision
    by_hand: ByHand  # all at once
    single_by_hand: ByHand
    # one request that pauses all of them, one that resumes them: to its answer
    whole: tuple[float, float]
    idle: Idle | None
    executions: int
    completed: int
    findings: list[Any]  # of the doctor
    audit: AuditCheck

    @property
    def sound(self) -> bool:
        return self.completed == self.executions and not self.findings and self.audit.intact


class World:
    """A database, the people who have tokens for it, a worker process and a server process."""

    worker = server = port = 0

    def __init__(self, place: Place) -> None:
        self.place = place
        place.app.register(FLOW)
        made = [
            place.app.create_token(f"person {n}", roles=["approver"], business_roles=["manager"])
            for n in range(PEOPLE)
        ]
        self.people = [token.secret for token in made]
        self.operator = place.app.create_token("operator", roles=["operator"]).secret
        self.db = place.connect()

    def ask(self, requests: Sequence[Asked]) -> list[Answer]:
        """All at once; whoever is not answered as expected ends the benchmark."""
        answers = at_once(self.port, requests)
        wrong = [answer for answer in answers if answer.status not in (200, 201)]
        assert not wrong, wrong[0]
        return answers

    def settled(self, requests: Sequence[Asked]) -> list[Answer]:
        """Their answers, when what follows from them is done, too."""
        answers = self.ask(requests)
        self.rest()
        return answers

    def rest(self) -> None:
        """Until there is nothing to do."""
        until(lambda: not self.rows("SELECT 1 FROM ready LIMIT 1"))

    def rows(self, text: str) -> list[Any]:
        return list(self.db.execute(text).fetchall())

    def cpu(self) -> tuple[float, float]:
        """Seconds of a core that the worker and the server have used."""
        return _cpu_s(self.worker), _cpu_s(self.server)

    def open(self) -> list[str]:
        return [
            id
            for (id,) in self.rows(
                "SELECT id FROM approvals WHERE ended_at IS NULL ORDER BY created_at, id"
            )
        ]

    def ends(self) -> dict[str, float]:
        """When each execution ended."""
        return {
            id: us / 1e6
            for id, us in self.rows(
                "SELECT id, finished_at FROM executions WHERE finished_at IS NOT NULL"
            )
        }


def until(done: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < limit, f"{LIMIT_S:.0f} s were not enough"
        time.sleep(0.005)


@contextmanager
def world(place: Place) -> Iterator[World]:
    made = World(place)
    with (
        closing(made.db),
        place.workers(1, "warm") as made.worker,
        _server(place.url) as (made.server, made.port),
    ):
        yield made


@contextmanager
def _server(url: str) -> Iterator[tuple[int, int]]:
    """The process of a server, and its port. It finds tokens, so it lets nobody in without one."""
    command = [sys.executable, "-m", "rhythm", "server", "--port", "0", "--database", url]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr
            said = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
            assert found, said
            yield process.pid, int(found[1])
        finally:
            process.terminate()


# what is measured


def measured(at: World, size: Size) -> Report:
    paused_s, pauses = _pause_all(at, size)
    idle = _idle(at, size.idle_s) if size.idle_s else None
    single_pauses, single_decisions = _singles(at, size)
    empty = [answer.took for answer in at.ask(_nothing(size))]
    by_hand, single_by_hand = _by_hand(at, size.at_once, 1), _by_hand(at, 1, size.singles)
    whole = _all_by_hand(at, size, "pause"), _all_by_hand(at, size, "resume")
    before = at.cpu()
    answers, decisions, resumptions, waves = _decide_all(at, size)
    worker, server = at.cpu()
    cpu = (worker - before[0]) / size.paused, (server - before[1]) / size.paused
    [(executions, completed)] = at.rows(
        "SELECT count(*), sum(CASE status WHEN 5 THEN 1 ELSE 0 END) FROM executions"
    )
    findings, audit = examine(at.place.app.store, GRACE_S), at.place.app.verify_audit()
    return Report(
        size,
        paused_s,
        pauses,
        single_pauses,
        single_decisions,
        answers,
        decisions,
        resumptions,
        waves,
        empty,
        cpu,
        by_hand,
        single_by_hand,
        whole,
        idle,
        executions,
        completed,
        findings,
        audit,
    )


def _pause_all(at: World, size: Size) -> tuple[float, list[float]]:
    began = time.time()
    at.place.app.start_many("order", range(size.paused), by="bench")
    at.rest()
    times = at.rows(
        "SELECT e.created_at, a.created_at FROM approvals a JOIN executions e ON e.id = "
        "a.execution_id WHERE a.ended_at IS NULL"
    )
    assert len(times) == size.paused
    return max(paused for _, paused in times) / 1e6 - began, [
        (paused - started) / 1e6 for started, paused in times
    ]


def _singles(at: World, size: Size) -> tuple[list[float], list[float]]:
    """One after the other, beside all that are paused: starts, and what is decided about them."""
    pauses, decisions = list[float](), list[float]()
    for n in range(size.singles):
        [started] = at.settled(
            [Asked(f"{V1}/executions", at.operator, body={"workflow": "order", "inputs": n})]
        )
        [(id, us)] = at.rows(
            f"SELECT id, created_at FROM approvals WHERE execution_id = '{started.body['id']}'"
        )
        pauses.append(us / 1e6 - started.sent)
        [decided] = at.settled([_approve(at, id, n)])
        [(us,)] = at.rows(f"SELECT finished_at FROM executions WHERE id = '{started.body['id']}'")
        decisions.append(us / 1e6 - decided.sent)
    return pauses, decisions


def _nothing(size: Size) -> list[Asked]:
    """As many requests as come at once, which ask for nothing."""
    return [Asked("/healthz", method="GET")] * size.at_once


def _approve(at: World, id: str, n: int) -> Asked:
    return Asked(f"{V1}/approvals/{id}/approve", at.people[n % PEOPLE], body={"comment": "fine"})


def _decide_all(at: World, size: Size) -> tuple[list[float], list[float], list[float], list[float]]:
    """Everyone's approval over HTTP, in waves."""
    waves = _parts(at.open(), size.at_once)
    answers = {
        id: answer
        for wave in waves
        for id, answer in zip(
            wave, at.settled([_approve(at, id, n) for n, id in enumerate(wave)]), strict=True
        )
    }
    sent = {id: answer.sent for id, answer in answers.items()}
    executions = at.ends()
    ends = {id: executions[id.rpartition(".")[0]] for id in sent}
    decided = dict(at.rows("SELECT id, ended_at FROM approvals"))
    return (
        [answer.took for answer in answers.values()],
        [ends[id] - sent[id] for id in sent],
        [ends[id] - decided[id] / 1e6 for id in sent],
        [max(ends[id] for id in wave) - min(sent[id] for id in wave) for wave in waves],
    )


def _by_hand(at: World, at_once: int, times: int) -> ByHand:
    """Pauses of workflows that wait for a signal, which then comes and is kept; with the resume
    they end."""
    ids = [handle.id for handle in at.place.app.start_many("held", [None] * (at_once * times))]
    at.rest()
    paused = [
        answer
        for some in _parts(ids, at_once)
        for answer in at.settled([_act(at, id, "pause") for id in some])
    ]
    pauses = dict(at.rows("SELECT id, paused_at FROM executions WHERE paused_at IS NOT NULL"))
    for id in ids:
        at.place.app.signal(id, "go")
    at.rest()
    resumed = [
        answer
        for some in _parts(ids, at_once)
        for answer in at.settled([_act(at, id, "resume") for id in some])
    ]
    ends = at.ends()
    return ByHand(
        [pauses[id] / 1e6 - answer.sent for id, answer in zip(ids, paused, strict=True)],
        [ends[id] - answer.sent for id, answer in zip(ids, resumed, strict=True)],
    )


def _all_by_hand(at: World, size: Size, what: str) -> float:
    """With one request all that wait for people: then they wait for an operator, too, or no
    longer."""
    [answer] = at.settled(
        [
            Asked(
                f"{V1}/executions/{what}",
                at.operator,
                body={"workflow": "order", "status": "paused", "reason": "lunch"},
            )
        ]
    )
    assert answer.body["changed"] == size.paused, answer
    return answer.took


def _act(at: World, id: str, what: str) -> Asked:
    return Asked(f"{V1}/executions/{id}/{what}", at.operator, body={"reason": "lunch"})


def _parts(ids: list[str], size: int) -> list[list[str]]:
    return [ids[first : first + size] for first in range(0, len(ids), size)]


# idleness


def _idle(at: World, watch_s: float) -> Idle:
    """What a while costs in which nothing happens. As long before is left to what came before:
    PostgreSQL counts that late."""
    time.sleep(watch_s)
    before, asked, after = at.cpu(), at.place.asked_in(at.db, watch_s), at.cpu()
    return Idle(asked / watch_s, (after[0] - before[0]) / watch_s, (after[1] - before[1]) / watch_s)


def _cpu_s(pid: int) -> float:
    """Seconds that a process has used; nan where nobody tells."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return float("nan")
    after_name = stat.read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


# what is told


def people() -> None:
    """J5: 1,000 and 10,000 executions paused at once, and all of them decided over HTTP, 100 at
    once."""
    for where, make in (("SQLite", sqlite), ("PostgreSQL", postgres)):
        with closing(make()) as place, world(place) as at:
            before = _idle(at, max(size.idle_s for size in SIZES))
            for size in SIZES:
                limits = place.raw(raw.approvals, size.paused, size.at_once)
                report = measured(at, size)
                show(where, report, before, *limits)
                assert report.sound, (report.findings, report.audit.problems)


def decisions() -> None:
    """J5's decisions alone, in seconds: for whoever changes what a decision costs."""
    size = Size(1000)
    for where, make in (("SQLite", sqlite), ("PostgreSQL", postgres)):
        with closing(make()) as place, world(place) as at:
            _pause_all(at, size)
            empty = _server_cpu(at, lambda: at.ask(_nothing(size)), size.at_once)
            before = at.cpu()
            answers, completed, _, waves = _decide_all(at, size)
            worker, server = at.cpu()
            row(f"approve to completed, {size.at_once} at once, {where}", percentiles(completed))
            row("  … the request to its answer", percentiles(answers))
            row("  … until the last, best and median wave", spread_of(waves))
            row(
                "  … CPU for each",
                f"server {show_s((server - before[1]) / size.paused)}, "
                f"worker {show_s((worker - before[0]) / size.paused)}",
                f"server, asked for nothing: {show_s(empty)}",
            )
            assert place.app.verify_audit().intact


def spread_of(waves: Sequence[float]) -> str:
    ordered = sorted(waves)
    return f"{show_s(ordered[0])}, {show_s(ordered[len(ordered) // 2])}"


def _server_cpu(at: World, work: Callable[[], object], requests: int) -> float:
    """Seconds of a core that the server takes for each request of some work."""
    before, times = at.cpu()[1], 5
    for _ in range(times):
        work()
    return (at.cpu()[1] - before) / times / requests


def show(where: str, report: Report, before: Idle, pause_limit: float, decide_limit: float) -> None:
    size = report.size
    paused, many = f"{size.paused:,}", f"{size.at_once} at once"
    speed, limit = f"{size.paused / report.paused_s:,.0f}/s", f"{size.paused / pause_limit:,.0f}/s"
    tell(f"J5 {paused} paused", where, speed, limit, report.paused_s / pause_limit)
    row("  start to paused, all started in one call", percentiles(report.pauses))
    row(
        "  start to paused, alone",
        percentiles(report.single_pauses),
        "wanted, of one: under 100 ms",
    )
    ratio = min(report.waves) / decide_limit
    tell(
        f"J5 approve to completed, {many} of {paused}",
        where,
        percentiles(report.decisions),
        show_s(decide_limit),
        ratio,
    )
    row(
        "  … until the last, best and worst of all waves",
        f"{show_s(min(report.waves))}, {show_s(max(report.waves))}",
        "wanted: under 1 s",
    )
    row(
        "  … the request to its answer",
        percentiles(report.answers),
        f"{many}, asking for nothing: {show_s(max(report.empty))}",
    )
    row("  … the decision to the end, by the database", percentiles(report.resumptions))
    row("  … CPU for each", f"worker {show_s(report.cpu[0])}, server {show_s(report.cpu[1])}")
    row("  approve to completed, alone", percentiles(report.single_decisions), "wanted: under 1 s")
    for how, by_hand in ((many, report.by_hand), ("alone", report.single_by_hand)):
        row(f"  pause by hand, {how}", percentiles(by_hand.pauses), "wanted, of one: under 100 ms")
        row(
            f"  resume by hand to completed, {how}",
            percentiles(by_hand.resumes),
            "wanted: under 500 ms",
        )
    row(f"  one request that pauses {paused}, resumes them", ", ".join(map(show_s, report.whole)))
    if report.idle:
        row(f"  idle, {paused} paused", str(report.idle), f"nothing paused: {before}")
    ended = f"{report.completed / report.executions:.0%} of {report.executions:,} executions"
    found = (
        f"{len(report.findings)} findings of the doctor, {len(report.audit.problems)} of the "
        f"audit ({report.audit.rows:,} rows)"
    )
    row("  completed", ended, found)
