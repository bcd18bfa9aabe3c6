"""docs/testing.md names everything that a test may see. (What its blocks do is tested with the other
pages that are followed.)"""

from __future__ import annotations

import re

from rhythm.ir.awaiting import KINDS
from tests.examples.markdown import text_of


def test_every_text_of_what_a_run_waits_for_is_on_the_page() -> None:
    table = (
        text_of("docs/testing.md").partition("| text | it waits for |\n")[2].partition("\n\n")[0]
    )
    listed = [re.sub(r"\b[A-Z]+$", "{}", text) for text in re.findall(r"`([^`]+)`", table)]
    # nobody waits for what has ended
    assert sorted(listed) == sorted(kind.words for kind in KINDS.values() if kind.row != "none")
