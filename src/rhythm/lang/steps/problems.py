"""Every code that a diagnostic of JSON steps can have.

As in `.flow`, codes are permanent. docs/json-steps.md lists them.
"""

from __future__ import annotations

from rhythm.lang.flow.problems import Problems
from rhythm.lang.steps.document import Json
from rhythm.suggest import nearest

CODES: dict[str, str] = {
    "S001": "the file is no JSON",
    "S002": "over a limit: size, nesting, number of values, a number or name that is too long",
    "S003": "a key that stands twice",
    "S004": "a key that is not known here",
    "S005": "a key that is missing",
    "S006": "a value of the wrong kind, or one that cannot work",
    "S007": "a word that is none of those possible here",
    "S008": "an id that two steps have",
    "S009": "a step that does not exist",
    "S010": "steps that go round for ever",
    "S011": "a path or `${…}` that cannot be read",
    "S012": "keys that do not go together",
    "S101": "warning: a step that is never reached",
    "S102": "warning: steps that go round without a wait",
    "S103": "warning: a task that is not registered",
    "S104": "warning: inputs that do not fit the task",
    "S201": "note: a wait without a timeout",
}


class StepProblems(Problems):
    """Collects diagnostics. The label under the caret is the JSON pointer."""

    def at(
        self,
        code: str,
        message: str,
        place: Json,
        help: str = "",
        also: tuple[Json, str] | None = None,
    ) -> None:
        """Reports a problem at a value of the document. `also` is another place that matters."""
        related = ((also[0].start, also[0].end, also[1]),) if also else ()
        self.report(code, message, place.start, place.end, place.pointer, help, related)


def one_of(word: object, known: list[str]) -> str:
    """Returns help that names the word that may have been meant, or all that are possible."""
    near = nearest(word, known) if isinstance(word, str) else None
    return f'did you mean "{near}"?' if near else f"possible are {', '.join(known)}"
