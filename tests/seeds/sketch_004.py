"""The sketch's document on snapshots, versions and workers: its 12 code blocks."""

from __future__ import annotations

from tests.seeds.block import Legal, Table, gives

SQL, PYTHON, DRAWING = "SQL of a schema or a worker", "Python of a task", "a drawing of components"

V1 = 'workflow { task("foo") }'
V2 = 'workflow { task("foo"); task("bar") }'

BLOCKS: Table = {
    1: (
        Legal(
            "004-snapshot-at-every-await",
            """
            workflow(ctx, inputs) {
              let payment = await task("chargeCard", { amount: 100 })

              await task("shipOrder", { orderId: payment.orderId })
            }
            """,
            tasks={"chargeCard": gives({"orderId": "o-1"}), "shipOrder": gives(None)},
            started=(("chargeCard", {"amount": 100}), ("shipOrder", {"orderId": "o-1"})),
            waits=("task chargeCard", "task shipOrder"),
            lasts=2,
        ),
    ),
    2: (
        Legal(
            "004-version-one-starts-without-waiting",
            V1,
            started=(("foo", None),),
            warnings=("F102",),
        ),
        Legal(
            "004-version-two-starts-both-at-once",
            V2,
            started=(("foo", None), ("bar", None)),
            warnings=("F102", "F102"),
        ),
        Legal(
            "004-version-two-with-await-runs-one-after-the-other",
            'workflow { await task("foo"); await task("bar") }',
            tasks={"foo": gives(None), "bar": gives(None)},
            started=(("foo", None), ("bar", None)),
            waits=("task foo", "task bar"),
            lasts=2,
        ),
    ),
    3: DRAWING,
    4: SQL,
    5: SQL,
    6: SQL,
    7: SQL,
    8: PYTHON,
    9: SQL,
    10: SQL,
    11: SQL,
    12: SQL,
}
