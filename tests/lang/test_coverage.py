"""Holds the case files to completeness: every function, runtime code and diagnostic of the language
is exercised by a case."""

from __future__ import annotations

import re

import pytest

from rhythm.ir.operations import ALIASES, BUILTINS, EMITS, GROUPS, OPERATIONS, PYTHON
from rhythm.lang.flow.problems import CODES
from rhythm.vm.builtins import FUNCTIONS
from tests.support.cases import PROGRAMS, all_cases

CASES = all_cases()
RUNTIME_CODES = (
    "TypeMismatch MissingProperty IndexOutOfRange DivisionByZero Overflow InvalidArgument "
    "NotAChild Timeout AllFailed TaskFailed ChildFailed Cancelled Error LimitExceeded"
).split()
ONLY_WITH_A_REGISTRY = {
    "F103",
    "F104",
    "F106",
}  # `Known` raises these; the cases compile without one
NEVER_FAIL = {
    *("now", "uuid", "random", "bool", "get"),
    *("py.truth", "py.eq", "py.ne", "py.str", "py.repr", "py.time"),
}

_COMMENT = re.compile(r"//.*")
_CALL = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)?(?=\()")


def calls(text: str) -> set[str]:
    """Every name that is followed by a parenthesis, outside line comments."""
    return set(_CALL.findall(_COMMENT.sub("", text)))


# a case that the compiler refuses runs nothing
CALLED = set().union(*(calls(case.text) for case in CASES if case.has_result or case.failure))
COMPLETED = set().union(*(calls(case.text) for case in CASES if case.has_result))
FAILED = {case.failure[0] for case in CASES if case.failure}
REPORTED = {code for case in CASES for code, *_ in case.diagnostics}


@pytest.mark.parametrize("name", sorted({*BUILTINS, *OPERATIONS, *GROUPS, *EMITS, *ALIASES}))
def test_every_function_is_called_by_a_case_that_runs(name: str) -> None:
    assert name in CALLED, f"no case in {PROGRAMS.name}/ calls {name}(…)"


# a `.flow` file cannot call those of Python
@pytest.mark.parametrize("name", sorted(BUILTINS.keys() - PYTHON.keys()))
def test_every_builtin_is_called_by_a_case_that_has_a_result(name: str) -> None:
    assert name in COMPLETED, f"no case in {PROGRAMS.name}/ calls {name}(…) and has a result"


@pytest.mark.parametrize("name", sorted(BUILTINS.keys() - NEVER_FAIL))
def test_every_builtin_that_can_fail_does_so_in_a_case(name: str) -> None:
    failing = [
        case
        for case in CASES
        if case.failure and name in calls(case.text.splitlines()[case.failure[1] - 1])
    ]
    assert failing, f"no case in {PROGRAMS.name}/ has a line with {name}(…) and //!"


@pytest.mark.parametrize("code", RUNTIME_CODES)
def test_every_runtime_code_ends_a_case(code: str) -> None:
    assert code in FAILED, f"no case in {PROGRAMS.name}/ has //! {code}"


@pytest.mark.parametrize("code", sorted(CODES.keys() - ONLY_WITH_A_REGISTRY))
def test_every_diagnostic_is_reported_in_a_case(code: str) -> None:
    assert code in REPORTED, f"no case in {PROGRAMS.name}/ has //~ {code}: {CODES[code]}"


def test_the_interpreter_has_every_builtin_of_the_table_and_no_other() -> None:
    assert FUNCTIONS.keys() == BUILTINS.keys()


def test_only_a_name_before_a_parenthesis_outside_comments_is_a_call() -> None:
    assert calls("let sort = len(xs) // then keys(xs)\nreturn await Task.run(x.upper)") == {
        "len",
        "Task.run",
    }
