"""What the tests know of a code block of the original sketch: the code, what it stands in, and what
must come of it.

A block that is workflow code is `Legal` or `Refused`, in one or more variants; a block that is
something else has the reason instead. The tables of the sketch's documents are in the modules
beside this one, under the documents' numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

from tests.support.world import TaskError

Handler = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Legal:
    """A program that runs. `before` defines the free names of a fragment, `after` returns what
    there is to look at."""

    id: str
    code: str
    before: str = ""
    after: str = ""
    inputs: Any = None
    tasks: Mapping[str, Handler] = field(default_factory=dict)
    signals: tuple[dict[str, Any], ...] = ()
    result: Any = None
    failure: tuple[str, int] | None = None  # code, and line within the block
    started: tuple[tuple[str, Any], ...] = ()  # tasks with their inputs, in order
    cancelled: tuple[tuple[int, int], ...] = ()  # children that are no longer wanted: first, last
    waits: tuple[str, ...] = ()  # what each suspension waits for
    lasts: float = 0  # seconds of the world's clock
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A program that does not pass: the one error, where it is in the block, and lines of its
    help."""

    id: str
    code: str
    problem: tuple[str, int, int]
    help: tuple[str, ...]
    before: str = ""


# by the number of the block in its document: why it is no case, or its cases
Table = dict[int, str | tuple[Legal | Refused, ...]]


def text_of(case: Legal | Refused) -> str:
    parts = (case.before, case.code, case.after if isinstance(case, Legal) else "")
    return "".join(dedent(part).strip("\n") + "\n" for part in parts if part)


def line_in_block(case: Legal | Refused, line: int) -> int:
    """The line of the program as a line of the block, from 1."""
    return line - len(dedent(case.before).strip("\n").splitlines())


def gives(value: Any) -> Handler:
    """A task that returns the same whatever it gets."""
    return lambda inputs: value


def fails(code: str, message: str = "no") -> Handler:
    """A task that fails for good."""

    def handler(inputs: dict[str, Any]) -> Any:
        raise TaskError(code, message)

    return handler
