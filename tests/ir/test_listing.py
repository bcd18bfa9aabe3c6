"""The listing: one instruction a line, the whole text for one program."""

from __future__ import annotations

from rhythm.ir import instructions as ir
from rhythm.ir.listing import listing, show, show_instruction
from tests.ir.samples import EXPRESSIONS, INSTRUCTIONS, OPERANDS, ORDER, compiled

SMALL = """\
@queue("q")
workflow small(inputs) {
  let total = 0
  for (item in inputs.items) {
    try {
      total += len(item) * 2
    } finally {
      log(`at ${item.id}`, { total, "a b": -total })
    }
  }
  let r = await all([task("a", { total }), branch { return total }], { settle: true })
  return total > 3 && !r ? r[0]?.status : [x for x in r if x != null]
}
"""

LISTING = """\
small  flow  version 000000000000  ir 1
@queue "q"
   0   set total = 0                                                          ; line 3
   1   iterate $for1 over inputs.items                                        ; line 4
   2 > next item of $for1, else 8                                             ; line 4
   3   set total = total + (len(item) * 2)                                    ; line 6
   4   finally 5 then 7 by $finally2                                          ; line 7
   5 > log(`at ${item.id}`, { total, "a b": -total })                         ; line 8
   6   end finally $finally2                                                  ; line 9
   7 > jump 2                                                                 ; line 10
   8 > await all([task("a", { total }), branch 0(total)], { settle: true }) -> r ; line 11
   9   return ((total > 3) && !r) ? r[0]?.status : [x for x in r if x != null] ; line 12
  10   return null                                                            ; line 13
branch 0:
  11   return total                                                           ; line 11
  12   return null                                                            ; line 11
finally 3..4 -> 5 with $finally2"""


def test_a_listing_shows_the_whole_program() -> None:
    program = compiled(SMALL, "small.flow").replace(version="0" * 64)
    assert listing(program) == LISTING


def test_every_line_of_a_listing_is_one_instruction() -> None:
    program = compiled(ORDER)
    body = [line for line in listing(program).splitlines() if " ; line " in line]
    assert [line.split()[0] for line in body] == [str(pc) for pc in range(len(program.code))]


def test_every_instruction_expression_and_operand_has_its_text() -> None:
    shown = [show_instruction(instruction) for instruction in INSTRUCTIONS] + [
        show(node) for node in (*EXPRESSIONS, *OPERANDS)
    ]
    assert all(text and "\n" not in text for text in shown)
    assert len(set(shown)) == len(shown)


def test_a_template_of_several_lines_is_shown_on_one() -> None:
    template = ir.Template((ir.Const('a\n"b" `c` ${d}'), ir.Local("x")))
    assert show(template) == '`a\\n"b" \\`c\\` \\${d}${x}`'
