"""The sketch's document on the language and its implementation: its 38 code blocks."""

from __future__ import annotations

from tests.seeds.block import Legal, Refused, Table, fails, gives

RUST, SQL, PYTHON = "Rust of an implementation", "SQL of a schema", "Python around the engine"
JSON = "JSON of a state or a compiled form: see `test_state_is_one_flat_object`"
TREE, OUTPUT = "a tree of files", "the output of a run"

ORDER = {"orderId": "123"}

IF_PAID = """
    if (payment.success) {
      task("ship", { orderId })
    } else {
      task("refund", { orderId })
    }
"""
PAYMENT = """
    payment = inputs.payment
    orderId = inputs.orderId
"""
ECHOES = {name: gives(f"{name} done") for name in ("ship", "refund")}

STATUS_OBJECT = """
    result = task("charge", { amount })

    if (result.status == "failed") {
      task("handleFailure", { result.error })
    }
"""
CHARGE_99 = ("charge", {"amount": 99})

BLOCKS: Table = {
    1: JSON,
    2: (
        Legal(
            "003-oldest-syntax-awaits-task-and-sleep",
            """
            task("functionName", { "key": "value" })
            sleep(10)
            """,
            tasks={"functionName": gives(None)},
            started=(("functionName", {"key": "value"}),),
            waits=("task functionName", "sleep"),
            lasts=11,
        ),
    ),
    3: JSON,
    4: SQL,
    5: SQL,
    6: RUST,
    7: RUST,
    8: RUST,
    9: PYTHON,
    10: PYTHON,
    11: PYTHON,
    12: PYTHON,
    13: PYTHON,
    14: PYTHON,
    15: PYTHON,
    16: PYTHON,
    17: RUST,
    18: RUST,
    19: RUST,
    20: TREE,
    21: PYTHON,
    22: OUTPUT,
    23: SQL,
    24: RUST,
    25: PYTHON,
    26: PYTHON,
    27: RUST,
    28: (
        Legal(
            "003-variables-without-let",
            """
            orderId = inputs.orderId
            result = task("charge", { orderId })
            """,
            after="return result",
            inputs=ORDER,
            tasks={"charge": lambda inputs: {"charged": inputs["orderId"]}},
            result={"charged": "123"},
            started=(("charge", ORDER),),
            waits=("task charge",),
            lasts=1,
        ),
    ),
    29: (
        Legal(
            "003-conditional-true",
            IF_PAID,
            before=PAYMENT,
            inputs={**ORDER, "payment": {"success": True}},
            tasks=ECHOES,
            started=(("ship", ORDER),),
            waits=("task ship",),
            lasts=1,
        ),
        Legal(
            "003-conditional-false",
            IF_PAID,
            before=PAYMENT,
            inputs={**ORDER, "payment": {"success": False}},
            tasks=ECHOES,
            started=(("refund", ORDER),),
            waits=("task refund",),
            lasts=1,
        ),
    ),
    30: (
        Legal(
            "003-loop-runs-one-task-after-the-other",
            """
            for (item in inputs.items) {
              task("processItem", { item })
            }
            """,
            inputs={"items": ["a", "b", "c"]},
            tasks={"processItem": gives(None)},
            started=tuple(("processItem", {"item": item}) for item in "abc"),
            waits=("task processItem",) * 3,
            lasts=3,
        ),
    ),
    31: (
        Legal(
            "003-parallel-all-then-any",
            """
            // wait for all
            [payment, inventory] = all([
              task("charge", { orderId }),
              task("reserve", { orderId })
            ])

            // wait for the first
            winner = any([
              task("provider1", { request }),
              task("provider2", { request })
            ])
            """,
            before="""
            orderId = inputs.orderId
            request = "r"
            """,
            after="return { payment, inventory, winner: winner.result }",
            inputs=ORDER,
            tasks={
                "charge": gives("paid"),
                "reserve": gives("held"),
                "provider1": fails("Down"),
                "provider2": gives("two"),
            },
            result={"payment": "paid", "inventory": "held", "winner": "two"},
            started=(
                ("charge", ORDER),
                ("reserve", ORDER),
                ("provider1", {"request": "r"}),
                ("provider2", {"request": "r"}),
            ),
            # Both tasks of `all` end at once: the wake of the second finds nothing to do.
            waits=("all(task charge, task reserve)", *["any(task provider1, task provider2)"] * 2),
            lasts=2,
        ),
    ),
    32: (
        Refused(
            "003-nested-operation",
            """
            task("outer", {
              callback: task("inner")  // refused
            })
            """,
            problem=("F013", 2, 13),
            help=(
                "await it first, on a line of its own:",
                'inner = task("inner")',
                "callback: inner",
            ),
        ),
        Refused(
            "003-nested-await",
            """
            workflow w {
              await task("outer", { callback: await task("inner") })
            }
            """,
            problem=("F012", 2, 35),
            help=('let inner = await task("inner")', 'await task("outer", { callback: inner })'),
        ),
        Legal(
            "003-nested-operation-rewritten-as-its-help-says",
            """
            inner = task("inner")
            task("outer", {
              callback: inner
            })
            """,
            tasks={"inner": gives(7), "outer": gives(None)},
            started=(("inner", None), ("outer", {"callback": 7})),
            waits=("task inner", "task outer"),
            lasts=2,
        ),
    ),
    33: (
        Refused(
            "003-closure",
            """
            for (i in range) {
              task("process", {
                getValue: () => i  // refused
              })
            }
            """,
            before="range = inputs.range",
            problem=("F008", 3, 15),
            help=("compute the value first and pass it as data: getValue: i",),
        ),
        Legal(
            "003-closure-rewritten-as-its-help-says",
            """
            for (i in range) {
              task("process", {
                getValue: i
              })
            }
            """,
            before="range = inputs.range",
            inputs={"range": [0, 1]},
            tasks={"process": gives(None)},
            started=(("process", {"getValue": 0}), ("process", {"getValue": 1})),
            waits=("task process",) * 2,
            lasts=2,
        ),
        Refused(
            "003-loop-over-a-builtin-without-arguments",
            'for (i in range) { task("process", { i }) }',
            problem=("F020", 1, 11),
            help=("`range` is called with arguments: range(…)",),
        ),
    ),
    34: (
        Refused(
            "003-function",
            """
            function helper() {
              return task("something")  // refused
            }
            """,
            problem=("F009", 1, 1),
            help=(
                'workflow helper(inputs) { … }, started by: await workflow("helper", { … })',
                'await task("helper", { … })',
            ),
        ),
        Refused(
            "003-operation-returned-without-await",
            'workflow helper(inputs) { return task("something") }',
            problem=("F014", 1, 34),
            help=('write return await task("something")',),
        ),
        Legal(
            "003-function-rewritten-as-its-help-says",
            """
            workflow caller {
              return await workflow("helper", {})
            }
            workflow helper(inputs) {
              return await task("something")
            }
            """,
            tasks={"something": gives("else")},
            result="else",
            started=(("something", None),),
            waits=("workflow helper",),
            lasts=1,
        ),
    ),
    35: (
        Legal(
            "003-results-feed-the-next-task",
            """
            result1 = task("first", {})
            result2 = task("second", { result1 })
            result3 = task("third", { result2 })
            """,
            after="return result3",
            tasks={
                "first": gives(1),
                "second": lambda inputs: inputs["result1"] + 1,
                "third": lambda inputs: inputs["result2"] + 1,
            },
            result=3,
            started=(("first", {}), ("second", {"result1": 1}), ("third", {"result2": 2})),
            waits=("task first", "task second", "task third"),
            lasts=3,
        ),
    ),
    36: JSON,
    37: (
        Legal(
            "003-status-object-that-the-task-returns",
            STATUS_OBJECT,
            before="amount = 99",
            tasks={
                "charge": gives({"status": "failed", "error": "declined"}),
                "handleFailure": gives(None),
            },
            started=(CHARGE_99, ("handleFailure", {"error": "declined"})),
            waits=("task charge", "task handleFailure"),
            lasts=2,
        ),
        Legal(
            "003-task-that-fails-is-thrown",
            STATUS_OBJECT,
            before="amount = 99",
            tasks={"charge": fails("TaskFailed")},
            failure=("TaskFailed", 1),
            started=(CHARGE_99,),
            waits=("task charge",),
            lasts=1,
        ),
        Legal(
            "003-status-object-of-a-task-that-fails-is-settle",
            STATUS_OBJECT.replace("{ amount })", "{ amount }, { settle: true })"),
            before="amount = 99",
            tasks={"charge": fails("Declined", "no money"), "handleFailure": gives(None)},
            started=(
                CHARGE_99,
                (
                    "handleFailure",
                    {"error": {"code": "Declined", "message": "no money", "data": None}},
                ),
            ),
            waits=("task charge", "task handleFailure"),
            lasts=2,
        ),
        Legal(
            "003-result-without-the-status-that-is-asked-for",
            STATUS_OBJECT,
            before="amount = 99",
            tasks={"charge": gives({"success": True})},
            failure=("MissingProperty", 3),
            started=(CHARGE_99,),
            waits=("task charge",),
            lasts=1,
        ),
    ),
    38: (
        Legal(
            "003-one-line-is-a-workflow",
            'task("someTask", {})',
            tasks={"someTask": gives("ignored")},
            started=(("someTask", {}),),
            waits=("task someTask",),
            lasts=1,
        ),
    ),
}
