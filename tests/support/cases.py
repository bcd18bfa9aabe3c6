"""Reads `tests/programs/*.flow`: many cases a file, each with what it must give written into it as
comments.

    === title of the case
    // inputs: {"n": 2}                    optional; JSON. Also: signals, decisions, cancel_at, limits, log
    return inputs.n + 1
    //=> 3                                 the result, as JSON

    === a failure is a comment on the line where it is reported, with its column
    return 1 / 0  //! DivisionByZero @10 division by zero

    === so is a diagnostic
    return x  //~ F020 @8 unknown variable

`//!` code @column part-of-message; `//~` likewise, any number of them, and no other error may be
reported. Warnings and notes are checked only if the case names them. A case whose code is cancelled
ends in `//=> cancelled`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent.parent / "programs"
_DIRECTIVE = re.compile(r"^// (inputs|signals|decisions|cancel_at|limits|log): (.*)$", re.MULTILINE)
_RESULT = re.compile(r"^\s*//=> (.*)$", re.MULTILINE)
_FAILURE = re.compile(r"//! (\w+) @(\d+) ?(.*)$", re.MULTILINE)
_DIAGNOSTIC = re.compile(r"//~ (F\d+) @(\d+) ?([^\n]*?)(?=//~|$)", re.MULTILINE)


@dataclass
class Case:
    file: str
    title: str
    line: int
    text: str
    settings: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    has_result: bool = False
    failure: tuple[str, int, int, str] | None = None
    diagnostics: list[tuple[str, int, int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.title}"


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def read_cases(path: Path) -> list[Case]:
    """The cases of one file."""
    cases, text = [], path.read_text(encoding="utf-8")
    starts = list(re.finditer(r"^=== (.*)\n", text, re.MULTILINE))
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        body = text[start.end() : following.start() if following else len(text)]
        case = Case(path.name, start[1].strip(), _line(text, start.start()), body)
        case.settings = {m[1]: json.loads(m[2]) for m in _DIRECTIVE.finditer(body)}
        if match := _RESULT.search(body):
            case.has_result = True
            case.result = "cancelled" if match[1].strip() == "cancelled" else json.loads(match[1])
        if match := _FAILURE.search(body):
            case.failure = (match[1], _line(body, match.start()), int(match[2]), match[3].strip())
        case.diagnostics = [
            (m[1], _line(body, m.start()), int(m[2]), m[3].strip())
            for m in _DIAGNOSTIC.finditer(body)
        ]
        assert (
            case.has_result
            + bool(case.failure)
            + bool([d for d in case.diagnostics if d[0] < "F1"])
            == 1
        ), f"{case}: one of //=>, //!, //~ F0…"
        cases.append(case)
    assert cases, f"{path.name} holds no case"
    return cases


def all_cases() -> list[Case]:
    return [case for path in sorted(PROGRAMS.glob("*.flow")) for case in read_cases(path)]
