"""Programs that the tests of `ir` share: one flow that uses nearly all of the language, and one
instance of every class of the IR."""

from __future__ import annotations

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.record import Record

ORDER = """\
@queue("orders")
workflow order(inputs) {
  let payment = await task("charge", { id: inputs.id, amount: -inputs.total }, { retries: 2 })
  if (payment?.status == "declined") {
    return { ok: false, ...payment }
  } else if (!payment) {
    let answer = await approval({ role: "manager", reason: `Order ${inputs.id}`, timeout: "24h" })
    if (answer.decision != "approved") { throw "refused" }
  } else {
    log("paid")
  }
  let tries = { count: 0 }
  while (tries.count < 3) {
    tries.count += 1
    try {
      await signal("ready", { timeout: "1h" })
      break
    } catch (e) {
      if (e.code != "Timeout") { throw e }
      publish("order.late", { id: inputs.id })
      continue
    } finally {
      await task("tidy")
    }
  }
  for (i, item in inputs.items) {
    if (item.skip) { continue }
    await workflow("pack", { item, first: i == 0 ? "yes" : "no" })
    if (i > 10) { break }
  }
  let both = await all({ label: task("print"), mail: any([task("mail"), task("fax")]) })
  let parcels = await all([branch {
    let a = await task("fetch", { item })
    return await task("wrap", { a })
  } for item in inputs.items if item.big], { concurrency: 10 })
  await race([branch { await sleep("1d") }, branch { return await signal("<go>") }])
  for (r in completed([task("ship", { p }) for p in parcels])) { log(r.key) }
  let id = workflow("audit")
  let ids = [task("a"), task("b")]
  await id
  await all(ids)
  try { return [...parcels, len([x for x in ids]), ids[0] ?? "none", both] } finally { log("bye") }
}
"""


def compiled(text: str, name: str = "order.flow") -> Program:
    return compile_flow(text, name).programs_or_raise()[0]


_X, _ONE = ir.Local("x"), ir.Const(1)
_TASK = ir.Operation("task", (ir.Const("t"), _X), 1)

EXPRESSIONS: list[Record] = [
    # data that looks like a node stays data
    ir.Const({"is": "jump", "deep": [1, 2.5, None, True, "ü"]}),
    _X,
    ir.Unary("-", _X, 1),
    ir.Binary("+", _X, _ONE, 2),
    ir.Logic("??", _X, _ONE),
    ir.Choose(_X, _ONE, _X),
    ir.Member(_X, "name", True, 3),
    ir.Index(_X, _ONE, True, 4),
    ir.ListOf((_X, ir.Spread(_X, 5)), 5),
    ir.ObjectOf((("a", _X), (None, ir.Spread(_X))), 6),
    ir.Template((ir.Const("a"), _X), 7),
    ir.Call("len", (_X,), 8),
    ir.Comprehension(_X, ("a", "b"), _X, _X, 9),
]
OPERANDS: list[Record] = [
    _TASK,
    ir.Branch(0, ("x",), 2),
    ir.Group("all", ir.OperandList((_TASK, _X), 3), _X, 4),
    ir.OperandList((_TASK, ir.Spread(_X)), 5),
    ir.OperandObject((("a", _TASK), (None, ir.Spread(_X))), 6),
    ir.Comprehension(_TASK, ("a",), _X),
]
INSTRUCTIONS: list[ir.Instruction] = [
    ir.Set("x", _ONE, 1),
    ir.SetPath("x", (_ONE, _X), _X, 2),
    ir.Jump(3, 3),
    ir.JumpUnless(_X, 4, 4),
    ir.Iterate("$for1", _X, 2, 5),
    ir.Next("$for1", ("a", "b"), 6, 6),
    ir.Await(_TASK, "x", ("x", "y"), 7),
    ir.Start(_TASK, "x", 8),
    ir.Gather("$for2", ir.Group("completed", _X), 9),
    ir.Take("$for2", "r", 10, ("x",), 10),
    ir.Emit("log", (_X,), 11),
    ir.Return(_X, 12),
    ir.Throw(_X, 13),
    ir.Block(_X, _ONE, 14),
    ir.Pend("$finally1", 14, 15, 15),
    ir.EndFinally("$finally1", 16),
]
HANDLERS = (ir.Handler(0, 1, 2, "e", "catch"), ir.Handler(0, 1, 2, "$finally1", "finally"))
