"""Every code that a `.flow` diagnostic can have, and the collector that the passes report to.

Codes are permanent: a code that is no longer used is not given to something else.
`docs/language.md` shows an example of each.
"""

from __future__ import annotations

from rhythm.lang.flow.nodes import Node
from rhythm.lang.source import Diagnostic

CODES: dict[str, str] = {
    "F001": "something else was expected here",
    "F002": "text, comment, template or bracket that never ends",
    "F003": "a character that does not belong in a program",
    "F004": "a number that cannot be written or held",
    "F005": "an escape that text does not know",
    "F006": "over a limit of the source: size, nesting, name, number of workflows",
    "F007": "an operator of another language",
    "F008": "a function value (lambda, closure)",
    "F009": "a function definition",
    "F010": "a statement of another language",
    "F011": "a method call",
    "F012": "`await` inside an expression, argument or condition",
    "F013": "an operation inside an expression, argument or condition",
    "F014": "an operation returned without `await`",
    "F015": "`await` of something that cannot be awaited",
    "F016": "a command used as a value",
    "F017": "`completed` outside the head of a `for`",
    "F020": "unknown variable",
    "F021": "name declared twice",
    "F022": "assignment to a constant, or to `inputs` or `ctx`",
    "F023": "unknown function",
    "F024": "wrong number of arguments",
    "F025": "unknown option",
    "F026": "an option, duration or argument that cannot work",
    "F027": "key written twice",
    "F028": "`break` or `continue` outside a loop",
    "F029": "assignment to an outer variable inside a branch",
    "F030": "a header or file that is not of one of the accepted shapes",
    "F031": "unknown annotation",
    "F032": "annotation with wrong arguments",
    "F033": "a pattern that cannot be taken apart this way",
    "F034": "comparisons that are chained",
    "F035": "a type that is not known",
    "F036": "a default that does not fit its type",
    "F101": "warning: statement that is never reached",
    "F102": "warning: operation started and never awaited",
    "F103": "warning: task that is not registered",
    "F104": "warning: arguments that do not fit the task",
    "F105": "warning: workflow that is not in these files",
    "F106": "warning: result of a task that is used against its hint",
    "F201": "note: wait without a timeout",
}


class TooManyProblems(Exception):
    """The file has so many problems that reading on would not help."""


class Problems:
    """Collects diagnostics: at one place only the first of each severity.

    What follows from a first error at the same place is not worth reading. Too many errors end the
    reading of a file. Too many warnings end only the warnings: they never prevent a registration.
    """

    def __init__(self, limit: int) -> None:
        self.found: list[Diagnostic] = []
        self._limit = limit
        self._starts: set[tuple[int, str]] = set()
        self._errors = 0
        # Where texts, templates and comments begin that never end: problems after them are
        # consequences.
        self.unended: set[int] = set()

    def never_ends(self, what: str, start: int, end: int, help: str) -> None:
        """Reports a text, template or comment that was opened and never closed."""
        self.unended.add(start)
        self.report("F002", f"this {what} never ends", start, end, "opened here", help)

    def report(
        self,
        code: str,
        message: str,
        start: int,
        end: int,
        label: str = "",
        help: tuple[str, ...] | str = (),
        related: tuple[tuple[int, int, str], ...] = (),
    ) -> None:
        """Adds a diagnostic; its severity follows from the code.

        It is dropped if the place has one already, or if there are too many. Raises
        `TooManyProblems` when the limit of errors is reached.
        """
        severity = {"0": "error", "1": "warning", "2": "note"}[code[1]]
        reported = self._errors if severity == "error" else len(self.found) - self._errors
        if (start, severity) in self._starts or reported >= self._limit:
            return
        self._starts.add((start, severity))
        lines = tuple(filter(None, [help])) if isinstance(help, str) else help
        self.found.append(
            Diagnostic(code, severity, message, start, max(end, start), label, lines, related)
        )
        self._errors += severity == "error"
        if self._errors >= self._limit:
            raise TooManyProblems

    def about(
        self,
        code: str,
        message: str,
        node: Node,
        label: str = "",
        help: tuple[str, ...] | str = (),
        related: tuple[tuple[int, int, str], ...] = (),
    ) -> None:
        """Reports a problem with the whole of a node."""
        self.report(code, message, node.start, node.end, label, help, related)

    def forget(self, start: int) -> None:
        """Removes what was reported at or after this place, because it will be read again."""
        self.found = [diagnostic for diagnostic in self.found if diagnostic.start < start]
        self._starts = {(diagnostic.start, diagnostic.severity) for diagnostic in self.found}
        self.unended = {opened for opened in self.unended if opened < start}
        self._errors = sum(diagnostic.severity == "error" for diagnostic in self.found)

    @property
    def errors(self) -> bool:
        """Whether any errors were reported."""
        return self._errors > 0
