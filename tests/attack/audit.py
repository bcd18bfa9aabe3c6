"""Somebody with the privileges of a worker on the database forges an approval and its record: each way
must be refused, or be told by `audit verify` and the doctor."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from rhythm.app import Rhythm
from rhythm.engine.doctor import examine
from rhythm.errors import RhythmError
from rhythm.store.access import GENESIS
from tests.attack.places import KINDS
from tests.chaos.report import Figure, at_least, none
from tests.support.stores import rows

FLOW = 'workflow order() { return await approval({ role: "finance", reason: "over the limit" }) }'
ROWS = "INSERT INTO audit (n, at, actor, token, source, action, object, detail, prev, hash) VALUES "
ADMIN = '["admin"]'
FORGERIES = 200  # at full size, on each database

Forgery = Callable[[Rhythm, str, random.Random], None]


def _row(app: Rhythm, n: str, approval: str, prev: str, hash: str) -> None:
    rows(
        app.store,
        f"{ROWS}({n}, 1, 'bob', NULL, 'cli', 'approval.approve', ?, '{{}}', ?, ?)",
        [approval, prev, hash],
    )


def before_the_first(app: Rhythm, approval: str, rng: random.Random) -> None:
    _row(app, str(-rng.randint(0, 99)), approval, GENESIS, "f" * 64)


def beyond_the_head(app: Rhythm, approval: str, rng: random.Random) -> None:
    _row(app, f"(SELECT n + {rng.randint(2, 9)} FROM audit_head)", approval, GENESIS, "f" * 64)


def at_the_head_with_a_wrong_hash(app: Rhythm, approval: str, rng: random.Random) -> None:
    ((head,),) = rows(app.store, "SELECT hash FROM audit_head")
    _row(app, "(SELECT n + 1 FROM audit_head)", approval, head, f"{rng.getrandbits(256):064x}")


def over_a_row(app: Rhythm, approval: str, rng: random.Random) -> None:
    rows(app.store, "UPDATE audit SET actor = 'bob'")


def without_a_row(app: Rhythm, approval: str, rng: random.Random) -> None:
    rows(app.store, "DELETE FROM audit")


def by_the_head(app: Rhythm, approval: str, rng: random.Random) -> None:
    rows(app.store, "UPDATE audit_head SET n = n + 1")


def by_a_decision_alone(app: Rhythm, approval: str, rng: random.Random) -> None:
    decided = "(approval_id, n, actor, role, decision, comment, shown, key, token, at, stage)"
    values = "(?, 0, 'bob', 'finance', 'approve', '', '', NULL, NULL, 1, 0)"
    rows(app.store, f"INSERT INTO approval_decisions {decided} VALUES {values}", [approval])
    ended = "status = 5, decision = 'approved', decided_by = ?, ended_at = 1"
    rows(app.store, f"UPDATE approvals SET {ended} WHERE id = ?", ['["bob"]', approval])


def by_a_token(app: Rhythm, approval: str, rng: random.Random) -> None:
    columns = "(id, name, hash, roles, business_roles, taken_roles, created_at, created_by)"
    made = f"made{rng.getrandbits(32)}"
    rows(
        app.store,
        f"INSERT INTO api_tokens {columns} VALUES (?, 'bob', 'x', ?, '[]', '[]', 1, 'root')",
        [made, ADMIN],
    )


def by_more_roles(app: Rhythm, approval: str, rng: random.Random) -> None:
    app.create_token("sam", roles=("viewer",), by="root")
    rows(app.store, "UPDATE api_tokens SET roles = ? WHERE name = 'sam'", [ADMIN])


FORGED: tuple[Forgery, ...] = (
    before_the_first, beyond_the_head, at_the_head_with_a_wrong_hash, over_a_row, without_a_row,
    by_the_head, by_a_decision_alone,
    by_a_token, by_more_roles,
)  # fmt: skip


def unnoticed(url: str, forgery: Forgery, seed: int) -> str:
    """What got through; empty: it was refused, or is told."""
    with Rhythm(url, (), tasks=(), environment={}) as app:
        app.register(FLOW)
        app.create_token("ann", roles=("operator",), by="root")
        app.pause_queue("orders", by="ann")
        head = str(app.verify_audit().head)
        approval = _asked(app)
        try:
            forgery(app, approval, random.Random(seed))
        except Exception as refused:
            return (
                ""
                if not isinstance(refused, RhythmError) or "audit" in str(refused)
                else str(refused)
            )
        told = [
            *app.verify_audit(head).problems,
            *(finding.message for finding in examine(app.store, 60.0)),
        ]
        app.resume_queue("orders", by="ann")  # who comes later is not kept from acting
        return "" if told else forgery.__name__


def _asked(app: Rhythm) -> str:
    handle = app.start_workflow("order", by="sue")
    with app.worker():
        while not (found := app.approvals(execution=handle).items):
            pass
    return str(found[0].id)


def scenario(seed: int, scale: float) -> list[Figure]:
    figures = list[Figure]()
    count = max(int(FORGERIES * scale), len(FORGED))
    for kind, place in KINDS.items():
        with place() as fresh:
            tried: list[Any] = [
                (FORGED[i % len(FORGED)], unnoticed(fresh(), FORGED[i % len(FORGED)], seed + i))
                for i in range(count)
            ]
        figures += [
            at_least(f"forgeries, {kind}", len(tried), len(FORGED)),
            none(f"neither refused nor told, {kind}", [told for _, told in tried if told]),
        ]
    return figures
