"""The sketch's document on how workflows go on after an await: its 18 code blocks."""

from __future__ import annotations

from tests.seeds.block import Legal, Refused, Table, fails, gives

RUST, SQL = "Rust of an implementation", "SQL of a schema"

FIRST_SUCCESS = """
    fastest = await Task.any([
      Task.run("api1", inputs),
      Task.run("api2", inputs),
      Task.run("api3", inputs)
    ])
"""
THREE_APIS = (("api1", {"q": 1}), ("api2", {"q": 1}), ("api3", {"q": 1}))
ANY_OF_THREE = "any(task api1, task api2, task api3)"

AGAINST_A_TIMER = """
    result = await Task.race([
      Task.run("operation", inputs),
      Task.delay(30)  // the timeout
    ])

    if (result.item_id == timeout_timer) {
      return {error: "Operation timed out"}
    }
"""
TIMED_OUT = {"error": "Operation timed out"}
SLOW, QUICK = {"took": 100}, {"took": 2}
RACE = "race(task operation, sleep)"
SECOND_ITEM = "timeout_timer = `${ctx.id}.3`"  # the group is child 1, its items are 2 and 3

BLOCKS: Table = {
    1: (
        Legal(
            "000-await-in-a-headed-workflow",
            """
            workflow example(inputs) {
              result = await Task.run("process_data", inputs)
              // it goes on here
              return result
            }
            """,
            inputs={"rows": 3},
            tasks={"process_data": lambda inputs: {"processed": inputs["rows"]}},
            result={"processed": 3},
            started=(("process_data", {"rows": 3}),),
            waits=("task process_data",),
            lasts=1,
        ),
    ),
    2: RUST,
    3: RUST,
    4: SQL,
    5: SQL,
    6: RUST,
    7: RUST,
    8: RUST,
    9: RUST,
    10: (
        Legal(
            "000-result-of-a-task-is-assigned",
            'result = await Task.run("process", inputs)',
            after="return result",
            inputs={"x": 21},
            tasks={"process": lambda inputs: inputs["x"] * 2},
            result=42,
            started=(("process", {"x": 21}),),
            waits=("task process",),
            lasts=1,
        ),
        Legal(
            "000-failed-task-is-thrown-not-returned",
            'result = await Task.run("process", inputs)',
            after="return result",
            tasks={"process": fails("TaskFailed")},
            failure=("TaskFailed", 1),
            started=(("process", None),),
            waits=("task process",),
            lasts=1,
        ),
    ),
    11: (
        Legal(
            "000-all-waits-until-the-last-of-its-tasks",
            "results = await Task.all([task1, task2, task3])",
            before="""
            workflow w(inputs) {
              task1 = Task.run("value", { value: "a", took: 9 })
              task2 = Task.run("value", { value: "b", took: 4 })
              task3 = Task.run("value", { value: "c", took: 6 })
            """,
            after="return results }",
            result=["a", "b", "c"],
            started=tuple(
                ("value", {"value": value, "took": took})
                for value, took in (("a", 9), ("b", 4), ("c", 6))
            ),
            waits=("all(3 × child)",) * 3,
            lasts=9,
        ),
        Legal(
            "000-all-in-a-script-takes-tasks-started-as-a-list",
            "results = await Task.all([task1, task2, task3])",
            before="""
            [task1, task2, task3] = [
              Task.run("value", { value: "a" }),
              Task.run("value", { value: "b" }),
              Task.run("value", { value: "c" })
            ]
            """,
            after="return results",
            result=["a", "b", "c"],
            started=tuple(("value", {"value": value}) for value in "abc"),
            waits=("all(3 × child)",),
            lasts=1,
        ),
        Legal(
            "000-all-in-a-script-refuses-results-as-items",
            "results = await Task.all([task1])",
            before='task1 = Task.run("value", { value: "a" })',
            failure=("NotAChild", 1),
            started=(("value", {"value": "a"}),),
            waits=("task value",),
            lasts=1,
        ),
        Legal(
            "000-all-throws-the-first-failure-and-cancels-the-rest",
            (
                'results = await Task.all([Task.run("api1", { took: 9 }), Task.run("api2", { '
                "took: 2 })])"
            ),
            tasks={"api1": gives("late"), "api2": fails("Declined")},
            failure=("Declined", 1),
            started=(("api1", {"took": 9}), ("api2", {"took": 2})),
            cancelled=((2, 2),),
            waits=("all(task api1, task api2)",),
            lasts=2,
        ),
        Legal(
            "000-all-mixes-tasks-and-timers",
            'results = await Task.all([Task.run("api1", {}), Task.delay(30)])',
            after="return results",
            tasks={"api1": gives("done")},
            result=["done", None],
            started=(("api1", {}),),
            waits=("all(task api1, sleep)",) * 2,
            lasts=30,
        ),
    ),
    12: (Legal("000-delay-counts-seconds", "await Task.delay(30)", waits=("sleep",), lasts=30),),
    13: (
        Legal(
            "000-any-gives-the-first-success-with-its-id",
            FIRST_SUCCESS,
            after="return fastest",
            inputs={"q": 1},
            tasks={"api1": fails("Down"), "api2": gives("from 2"), "api3": gives("from 3")},
            result={"item_id": "run.3", "key": 1, "result": "from 2"},
            started=THREE_APIS,
            waits=(ANY_OF_THREE,),
            lasts=1,
        ),
        Legal(
            "000-any-cancels-what-is-slower",
            (
                'fastest = await Task.any([Task.run("value", { value: "a", took: 9 }), '
                'Task.run("value", { value: "b", took: 2 })])'
            ),
            after="return fastest.result",
            result="b",
            started=(("value", {"value": "a", "took": 9}), ("value", {"value": "b", "took": 2})),
            cancelled=((2, 2),),
            waits=("any(2 × task value)",),
            lasts=2,
        ),
        Legal(
            "000-any-of-failures-only-is-thrown",
            FIRST_SUCCESS,
            inputs={"q": 1},
            tasks={name: fails("Down") for name, _ in THREE_APIS},
            failure=("AllFailed", 1),
            started=THREE_APIS,
            waits=(ANY_OF_THREE,),
            lasts=1,
        ),
    ),
    14: (
        Legal(
            "000-race-is-won-by-the-timer",
            AGAINST_A_TIMER,
            before=SECOND_ITEM,
            after="return result",
            inputs=SLOW,
            tasks={"operation": gives("done")},
            result=TIMED_OUT,
            started=(("operation", SLOW),),
            cancelled=((2, 2),),
            waits=(RACE,),
            lasts=30,
        ),
        Legal(
            "000-race-is-won-by-the-task",
            AGAINST_A_TIMER,
            before=SECOND_ITEM,
            after="return result",
            inputs=QUICK,
            tasks={"operation": gives("done")},
            result={"item_id": "run.2", "key": 0, "status": "completed", "result": "done"},
            started=(("operation", QUICK),),
            cancelled=((3, 3),),
            waits=(RACE,),
            lasts=2,
        ),
        Legal(
            "000-race-is-won-by-a-failure",
            AGAINST_A_TIMER,
            before=SECOND_ITEM,
            after="return [result.status, result.error.code]",
            inputs=QUICK,
            tasks={"operation": fails("Down")},
            result=["failed", "Down"],
            started=(("operation", QUICK),),
            cancelled=((3, 3),),
            waits=(RACE,),
            lasts=2,
        ),
        Legal(
            "000-race-with-a-timer-that-has-a-name",
            AGAINST_A_TIMER.replace("Task.delay(30)", "timeout_timer"),
            before="workflow w(inputs) { timeout_timer = Task.delay(30)",
            after="return result }",
            inputs=SLOW,
            tasks={"operation": gives("done")},
            result=TIMED_OUT,
            started=(("operation", SLOW),),
            cancelled=((3, 3),),
            waits=("race(task operation, child)",),
            lasts=30,
        ),
        Legal(
            "000-race-told-apart-by-key",
            """
            result = await race({ done: task("operation", inputs), late: sleep(30) })
            if (result.key == "late") { return { error: "Operation timed out" } }
            """,
            inputs=SLOW,
            tasks={"operation": gives("done")},
            result=TIMED_OUT,
            started=(("operation", SLOW),),
            cancelled=((2, 2),),
            waits=(RACE,),
            lasts=30,
        ),
        Refused(
            "000-race-against-a-timer-nobody-named",
            AGAINST_A_TIMER,
            problem=("F020", 6, 23),
            help=("declare it first: let timeout_timer = …",),
        ),
    ),
    15: SQL,
    16: RUST,
    17: (
        Legal(
            "000-signal-wakes-the-one-that-waits",
            'approval = await wait_for_signal("approval")',
            after="return approval",
            signals=(
                {"name": "other", "payload": 1, "at": 3},
                {"name": "approval", "payload": {"ok": True}, "at": 5},
            ),
            result={"ok": True},
            waits=("signal approval",) * 2,
            lasts=5,
        ),
        Legal(
            "000-signal-that-came-before-the-wait-is-kept",
            'approval = await wait_for_signal("approval")',
            before="await Task.delay(60)",
            after="return approval",
            signals=({"name": "approval", "payload": "early", "at": 5},),
            result="early",
            waits=("sleep",) * 2,
            lasts=60,
        ),
    ),
    18: SQL,
}
