"""From the text of JSON steps to a program, or to a list of everything that is wrong."""

from __future__ import annotations

from contextlib import suppress

from rhythm.ir.program import Program
from rhythm.lang.flow.problems import TooManyProblems
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.report import Checked, Compilation
from rhythm.lang.source import Source, in_order
from rhythm.lang.steps.document import NoJson, read_document
from rhythm.lang.steps.lower import lower
from rhythm.lang.steps.problems import StepProblems
from rhythm.lang.steps.read import StepsDocument, read_workflow
from rhythm.lang.steps.routes import check_routes
from rhythm.lang.steps.surroundings import check_tasks
from rhythm.limits import DEFAULT_LIMITS, Limits


def check_steps(
    text: str,
    file: str = "workflow.steps.json",
    known: Surroundings | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Checked:
    """Checks a file. Never raises, whatever the text is: problems are returned as diagnostics."""
    return ParsedSteps(text, file, limits).check(known)


class ParsedSteps:
    """A file of JSON steps that is not checked yet.

    It is checked when it is known which tasks exist.
    """

    def __init__(self, text: str, file: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self.text, self.file, self.limits = text, file, limits

    @property
    def names(self) -> frozenset[str]:
        """The name of its workflow, as far as the file can be read."""
        try:
            name = read_document(self.text, self.limits).get("workflow_id")
        except NoJson:
            return frozenset()
        return frozenset({name.value} if name and isinstance(name.value, str) else ())

    def check(self, known: Surroundings | None = None) -> Compilation:
        """Returns everything that is wrong with the file, and its program if nothing is."""
        return compiled(self.text, self.file, known, self.limits)

    def compile(self, known: Surroundings | None = None) -> Compilation:
        """Returns its verified program, if nothing is wrong with the file."""
        from rhythm.lang.steps.compile import verified

        return verified(self.check(known))


def compiled(text: str, file: str, known: Surroundings | None, limits: Limits) -> Compilation:
    """Returns the program of a file, not verified yet, or what is wrong with the file."""
    source, problems = Source(file, text), StepProblems(limits.diagnostics)
    found: tuple[StepsDocument, Program] | None = None
    with suppress(TooManyProblems):
        found = _program(source, problems, known or Surroundings(), limits)
    if found is None or problems.errors:
        return Compilation(source, in_order(problems.found))
    workflow, program = found
    return Compilation(
        source, in_order(problems.found), ((workflow, workflow.options),), (program,)
    )


def _program(
    source: Source, problems: StepProblems, known: Surroundings, limits: Limits
) -> tuple[StepsDocument, Program] | None:
    size = len(source.text.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        help = "split it into several workflows"
        problems.report(
            "S002",
            f"the file has {size:,} bytes; the limit is {limits.source_bytes:,}",
            0,
            0,
            help=help,
        )
        return None
    try:
        workflow = read_workflow(read_document(source.text, limits), problems)
    except NoJson as wrong:
        related = ((*wrong.first, "the first"),) if wrong.first else ()
        problems.report(wrong.code, wrong.message, wrong.start, wrong.end, "", wrong.help, related)
        return None
    check_routes(workflow.steps, problems)
    if known.tasks is not None:
        check_tasks(workflow.steps, known, problems)
    # Lowering reports nothing new: `read_workflow` has checked all conditions and values.
    return None if problems.errors else (workflow, lower(source, workflow, problems))
