"""What happens between people and workflows, each time in an execution of its own: which acts, and
how it must end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from tests.chaos.acting import Act, Book, Person
from tests.chaos.load import Load
from tests.chaos.programs import Case
from tests.support.reference import Expected

FLOWS = """
workflow ask(inputs) {
  let answer = await approval({ role: "finance", reason: `about ${inputs.id}`, data: inputs, quorum: inputs.quorum, escalate: "board" })
  let kept = await task("value", { value: answer.decision })
  publish("decided", { id: inputs.id, decision: kept })
  return kept
}
workflow hurry(inputs) {
  let answer = await approval({ role: "finance", reason: "now or never", timeout: inputs.timeout })
  return answer.decision
}
workflow handed(inputs) {
  let answer = await approval({ role: "finance", reason: "nobody looks", escalate: { role: "board", after: "200ms" } })
  return answer.decision
}
workflow mail(inputs) {
  let got = []
  for (i in range(3)) {
    let letter = await signal("letter")
    let kept = await task("value", { value: letter })
    got += [kept]
  }
  return got
}
workflow hold(ctx, inputs) {
  await signal("end")
  return ctx.resume_data
}
workflow order(inputs) {
  let paid = await event("paid", { where: { "order.id": inputs.id } })
  return paid.data.amount
}
@on("decided")
workflow told(inputs) {
  return inputs
}
@on("made")
workflow made(inputs) {
  let kept = await task("value", { value: inputs.n })
  return kept
}
workflow beat(inputs) {
  let kept = await task("value", { value: inputs })
  return kept
}
"""
# schedules: one that is run by people, one that is paused and resumed by them
BY_HAND, TOGGLED = "by-hand", "toggled"
OUTCOMES = {"approve": "approved", "reject": "rejected"}


class Stories:
    """`people`: by their part. An operator starts, signals, publishes, pauses; two of finance and
    one of the board decide."""

    def __init__(self, load: Load, book: Book, people: dict[str, Person], seed: int) -> None:
        self.load, self.book, self.people, self.seed = load, book, people, seed
        self.operator, self.board = people["operator"], people["board"]
        self.finance = [people["finance 1"], people["finance 2"]]
        # of approvals: how they ended, and by whom
        self.outcomes = dict[str, tuple[str, set[str]]]()
        # what events must have started, and with which result
        self.told, self.made = dict[str, Any](), dict[str, Any]()
        self.runs = set[str]()  # of a schedule
        self.kinds: list[Callable[[str, Random], None]] = [
            self.one_decides,
            self.quorum,
            self.duel,
            self.escalated,
            self.hurry,
            self.handed,
            self.letters,
            self.held,
            self.lapsed,
            self.order,
            self.triggered,
            self.run_now,
            self.toggled,
        ]
        self.number, self.stopped = 0, threading.Event()
        self.done = Counter[str]()
        self._lock = threading.Lock()
        self._clerks = list[threading.Thread]()

    def begin(self, clerks: int) -> None:
        self._clerks = [threading.Thread(target=self._work) for _ in range(clerks)]
        for clerk in self._clerks:
            clerk.start()

    def end(self) -> None:
        """Everyone ends what they have begun."""
        self.stopped.set()
        for clerk in self._clerks:
            clerk.join()

    def _work(self) -> None:
        while not self.stopped.is_set():
            with self._lock:
                number = self.number
                self.number += 1
            kind = self.kinds[number % len(self.kinds)]
            try:
                kind(f"{kind.__name__}-{number}", Random(f"{self.seed} {number}"))
                with self._lock:
                    self.done[kind.__name__] += 1
            except Exception as problem:
                self.book.troubles.append(f"{kind.__name__}-{number}: {problem!r}")

    # approvals

    def one_decides(self, id: str, chance: Random) -> None:
        how, approval = chance.choice(["approve", "reject"]), self._ask(id)
        seen = self.operator.seen(f"/approvals/{approval}")["content_hash"]
        person = chance.choice(self.finance)
        self._counts(person.decide(approval, how, f"{id}-key", comment=id, content_hash=seen))
        self._ended(id, approval, OUTCOMES[how], {person.name})

    def quorum(self, id: str, chance: Random) -> None:
        approval = self._ask(id, quorum=2)
        answers = together(
            *[lambda one=one: one.decide(approval, "approve", f"{id}-key") for one in self.finance]
        )
        for answer in answers:
            self._counts(answer)
        self._ended(id, approval, "approved", {one.name for one in self.finance})

    def duel(self, id: str, chance: Random) -> None:
        """Two decide at once, each in their own way, with the same key of theirs: one wins, the
        other one is told."""
        approval, (yes, no) = self._ask(id), chance.sample(self.finance, 2)
        acts = ((yes, "approve"), (no, "reject"))
        answers = together(
            *[lambda who=who, how=how: who.decide(approval, how, f"{id}-key") for who, how in acts]
        )
        won = [act for act, answer in zip(acts, answers, strict=True) if answer.status == 200]
        lost = [answer.code for answer in answers if answer.status != 200]
        assert (len(won), lost) == (1, ["already_decided"]), answers
        self._ended(id, approval, OUTCOMES[won[0][1]], {won[0][0].name})

    def escalated(self, id: str, chance: Random) -> None:
        how, approval = chance.choice(["approve", "reject"]), self._ask(id)
        self._counts(chance.choice(self.finance).decide(approval, "escalate", f"{id}-up"))
        refused = chance.choice(self.finance).decide(approval, how, f"{id}-late")
        assert refused.code == "wrong_role", refused
        self._counts(self.board.decide(approval, how, f"{id}-key"))
        self._ended(id, approval, OUTCOMES[how], {self.board.name})

    def hurry(self, id: str, chance: Random) -> None:
        """A decision at about the time when it is too late."""
        self.operator.start(id, "hurry", {"timeout": 0.3})
        approval = f"{id}.1"
        self.operator.seen(f"/approvals/{approval}")
        self.stopped.wait(chance.choice([0.0, 0.2, 0.25, 0.3, 0.6]))
        answer = self.finance[0].decide(approval, "approve", f"{id}-key")
        assert answer.status == 200 or answer.code in ("approval_expired", "already_decided"), (
            answer
        )
        decision, by = (
            ("approved", {self.finance[0].name})
            if answer.status == 200
            else ("expired", set[str]())
        )
        self.outcomes[approval] = (decision, by)
        self._expect(id, "hurry", Expected("completed", decision))

    def handed(self, id: str, chance: Random) -> None:
        """Escalated by its time."""
        self.operator.start(id, "handed", None)
        approval = f"{id}.1"
        self.board.seen(f"/approvals/{approval}", lambda view: view["role"] == "board")
        self._counts(self.board.decide(approval, "approve", f"{id}-key"))
        self.outcomes[approval] = ("approved", {self.board.name})
        self._expect(id, "handed", Expected("completed", "approved"))

    def _ask(self, id: str, quorum: int = 1) -> str:
        self.operator.start(id, "ask", {"id": id, "quorum": quorum})
        approval = f"{id}.1"
        self.operator.seen(f"/approvals/{approval}")
        return approval

    def _counts(self, answer: Any) -> None:
        assert answer.status == 200, answer

    def _ended(self, id: str, approval: str, decision: str, by: set[str]) -> None:
        self.outcomes[approval] = (decision, by)
        self.told[id] = {"id": id, "decision": decision}
        self._expect(id, "ask", Expected("completed", decision))

    # signals, pauses, events

    def letters(self, id: str, chance: Random) -> None:
        """They arrive in the order in which they were acknowledged, also those that come during a
        pause."""
        self.operator.start(id, "mail", None)
        paused = chance.randrange(4)
        for i in range(3):
            if paused == i:
                assert self.operator.pause(id, f"{id} {i}")
            self.operator.signal(id, "letter", i, f"letter-{i}")
        if paused < 3:
            self._resume(id, f"{id} {paused}", None)
        self._expect(id, "mail", Expected("completed", [0, 1, 2]))

    def held(self, id: str, chance: Random) -> None:
        """Paused and resumed again and again; what it was given last is what it has in the end."""
        self.operator.start(id, "hold", None)
        times = chance.randint(1, 3)
        for i in range(times):
            assert self.operator.pause(
                id,
                f"{id} {i}",
                **({} if chance.random() < 0.5 else {"timeout": "1h", "then": "cancel"}),
            )
            if i == times - 1:
                self.operator.signal(id, "end", None, "end")
            self._resume(id, f"{id} {i}", {"n": i})
        self._expect(id, "hold", Expected("completed", {"n": times - 1}))

    def lapsed(self, id: str, chance: Random) -> None:
        """A pause that ends by itself."""
        then = chance.choice(["resume", "cancel"])
        self.operator.start(id, "hold", None)
        assert self.operator.pause(id, id, timeout=0.3, then=then) or any(
            act.object == id for act in self.book.unanswered
        )
        if then == "resume":
            self.operator.signal(id, "end", None, "end")
        self._expect(
            id,
            "hold",
            Expected("completed", None) if then == "resume" else Expected("cancelled", "Cancelled"),
        )

    def _resume(self, id: str, mark: str, data: Any) -> None:
        """A pause without an answer may come after its resume: whoever paused looks whether it goes
        on."""
        self.operator.resume(id, mark, data)
        tries = 0
        while (
            any(act.object == id for act in self.book.unanswered)
            and self._is_held(id)
            and tries < 20
        ):
            tries += 1
            self.operator.resume(id, f"{mark} again {tries}", data)

    def _is_held(self, id: str) -> bool:
        self.stopped.wait(0.2)
        return self.operator.ask(f"/executions/{id}/status").body["paused_at"] is not None

    def order(self, id: str, chance: Random) -> None:
        """The event comes when it is waited for, or before."""
        self.operator.start(id, "order", {"id": id})
        if chance.random() < 0.5:
            self.operator.seen(f"/executions/{id}/status", lambda view: view["status"] == "paused")
        self.operator.publish(f"{id}-paid", "paid", {"order": {"id": id}, "amount": len(id)})
        self._expect(id, "order", Expected("completed", len(id)))

    def triggered(self, id: str, chance: Random) -> None:
        self.operator.publish(id, "made", {"n": id})
        self.made[id] = id

    # schedules

    def run_now(self, id: str, chance: Random) -> None:
        """Two ask for the same run at once: it is one."""
        first, second = together(*[lambda: self.operator.run(BY_HAND, id)] * 2)
        assert first == second
        self.runs.add(first)
        self.book.acknowledged.append(Act(self.operator.name, "schedule.run", BY_HAND, first))

    def toggled(self, id: str, chance: Random) -> None:
        self.operator.toggle(TOGGLED, id)

    def _expect(self, id: str, workflow: str, how: Expected) -> None:
        self.load.started[id] = Case(workflow, "", [], how, ())


def together(*acts: Callable[[], Any]) -> list[Any]:
    """Done at once; what each gave."""
    answers = dict[int, Any]()
    gate = threading.Barrier(len(acts))

    def do(number: int) -> None:
        gate.wait()
        try:
            answers[number] = acts[number]()
        except Exception as problem:
            answers[number] = problem

    threads = [threading.Thread(target=do, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    problems = [answer for answer in answers.values() if isinstance(answer, Exception)]
    if problems:
        raise problems[0]
    return [answers[number] for number in range(len(acts))]
