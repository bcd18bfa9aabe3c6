"""Fixed programs for the simulation: kinds of waiting that generated programs lack. No result
depends on any order."""

from __future__ import annotations

from typing import Any

RACES = """
workflow main() {
  let seen = []
  for (i in range(3)) {
    let first = await race({ quick: task("value", { value: i }), late: sleep("9d") })
    seen += [first.key]
    let either = await any([task("fail"), task("value", { value: 6 }), task("value", { value: 6 })])
    seen += [either.result]
  }
  let same = await race([task("value", { value: 1 }), task("value", { value: 1 }), branch { return 1 }])
  let total = 0
  for (r in completed([task("value", { value: n }) for n in range(5)], { concurrency: 2 })) { total += r.result }
  return { seen, same: same.result, total }
}
"""
SIGNALS = """
workflow main() {
  let got = []
  for (i in range(3)) {
    let mail = await signal("go")
    got += [mail.n]
    let t = await task("value", { value: mail.n })
    got += [t]
  }
  let none = await signal("never", { timeout: 40, default: "none" })
  let either = await race({ mail: signal("end"), late: sleep("20d") })
  return { got, none, either: either.key }
}
"""
FAMILIES = """
workflow main() {
  let found = await all([branch {
    let a = await workflow("child", { x: n, deep: 2 })
    await sleep(n)
    let b = await task("flaky", { x: n, fails: n })
    return a + b
  } for n in range(4)], { concurrency: 2 })
  let started = workflow("child", { x: 100, deep: 1 })
  let one = await task("value", { value: 1 })
  let late = await started
  let first = await race([workflow("child", { x: 5, deep: 0 }), branch {
    await sleep("30d")
    return 0
  }])
  return { found, one, late, first: first.result }
}
workflow child(inputs) {
  let own = await task("double", { x: inputs.x })
  if (inputs.deep > 0) {
    own += await workflow("child", { x: inputs.x, deep: inputs.deep - 1 })
  }
  return own
}
"""
CLEANUP = """
workflow main() {
  let log_of = []
  for (i in range(4)) {
    try {
      let both = await all([task("value", { value: i }), task("flaky", { x: i, fails: 2 }), sleep(1)])
      log_of += [both[0] + both[1]]
      await task("fail", { code: "Declined" })
    } catch (e) {
      log_of += [e.code]
      await sleep("10s")
    } finally {
      let f = await task("double", { x: i })
      log_of += [f]
    }
  }
  return log_of
}
"""
CHAIN = """
workflow main() {
  let sum = 0
  for (i in range(12)) {
    let x = await task("add", { a: sum, b: i })
    sum = x
    let many = await all([task("double", { x: i }), task("value", { value: 1 })])
    sum += many[0] + many[1]
  }
  return sum
}
"""
TIMEOUTS = """
workflow main() {
  let sum = 0
  for (i in range(3)) {
    let quick = await task("value", { value: i }, { timeout: "5s", retries: 1000 })
    let both = await all([task("double", { x: i }, { timeout: "5s", retries: 1000, backoff: 2 }), task("value", { value: quick })])
    let late = await race({ never: signal("never"), end: sleep("50s") })
    sum += quick + both[0] + both[1]
  }
  return sum
}
"""
LOOSE = """
workflow main() {
  for (i in range(3)) {
    let found = await all([workflow("child", { x: i }), task("value", { value: i }), branch {
      await sleep(30)
      let b = await task("double", { x: i })
      return b
    }, task("flaky", { x: i, fails: 3 })], { settle: true, concurrency: 1 + i })
    let more = await all([task("double", { x: i }), workflow("child", { x: i }), task("flaky", { x: i + 10, fails: 1 })], { settle: true })
  }
  return "done"
}
workflow child(inputs) {
  try {
    let both = await all([task("value", { value: inputs.x }), task("double", { x: inputs.x })])
    await sleep("1m")
  } finally {
    let f = await task("double", { x: 1 })
    await sleep(5)
  }
}
"""
LETTERS = """
workflow main(ctx, inputs) {
  let children = [workflow("child", { x: n, to: ctx.id }) for n in range(4)]
  let sum = 0
  for (i in range(4)) {
    let letter = await signal("done")
    sum += letter
    let seen = await task("value", { value: letter })
  }
  let results = await all(children)
  return { sum, results }
}
workflow child(inputs) {
  let v = await task("value", { value: inputs.x })
  send(inputs.to, "done", v)
  return v
}
"""

POISON = """
workflow main() {
  let seen = []
  for (i in range(2)) {
    try {
      await task("poison", { n: i })
    } catch (e) {
      seen += [e.code]
    }
    let v = await task("value", { value: i })
    try {
      await all([workflow("poison"), task("value", { value: 1 })])
    } catch (e) {
      seen += [e.data.error.code]
    }
    seen += [v]
  }
  return seen
}
workflow poison() {
  let v = await task("value", { value: 1 })
  return v
}
"""
# what it returns if nothing else is taken for poison
POISONED = ["Crashed", "Crashed", 0, "Crashed", "Crashed", 1]

FIXED: tuple[tuple[str, Any, tuple[tuple[str, Any], ...]], ...] = (
    (RACES, {"seen": ["quick", 6, "quick", 6, "quick", 6], "same": 1, "total": 10}, ()),
    (SIGNALS, {"got": [1, 1, 2, 2, 3, 3], "none": "none", "either": "mail"},
     (("go", {"n": 1}), ("go", {"n": 2}), ("go", {"n": 3}), ("end", None))),
    (FAMILIES, {"found": [0, 7, 14, 21], "one": 1, "late": 400, "first": 10}, ()),
    (CLEANUP, [0, "Declined", 0, 2, "Declined", 2, 4, "Declined", 4, 6, "Declined", 6], ()),
    (LETTERS, {"sum": 6, "results": [0, 1, 2, 3]}, ()),
    (TIMEOUTS, 12, ()),
    (LOOSE, "done", ()),
    (CHAIN, sum(range(12)) * 3 + 12, ()),
)  # fmt: skip
