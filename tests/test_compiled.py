"""The compiled build: what is compiled, that nothing is unless somebody asks for it, and what the
compiled modules must not hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hatch_build
import pytest
from hatch_build import MODULES, REQUIREMENTS, VARIABLE, CompiledModules
from packaging.requirements import Requirement

from rhythm import __version__
from rhythm.build import is_compiled, shown_version
from tests.support.compiled import COMPILED

ROOT = Path(__file__).parents[1]
PATHS = {name: ROOT / "src" / "rhythm" / f"{name}.py" for name in MODULES}
# Functions of compiled modules that call themselves, and what bounds that.
RECURSE = {
    ("engine/payload", "plain"): "asks for the depth before it goes deeper",
    ("store/postgres/turns", "commit"): "no recursion: the method of a connection has this name",
    ("vm/interpreter", "_suspended"): "once, to clean up what is over a limit",
    ("vm/interpreter", "_yielded"): "once, to clean up what is over a limit",
    ("vm/values", "with_element"): "as deep as the brackets of a source may be",
    ("worker/committer", "commit"): "once, for each turn alone",
    ("worker/committer", "_one_by_one"): "once, for each turn alone",
    ("worker/executor", "_keep_running"): "no recursion: a method and a function of this name",
}


def hook(root: Path = ROOT) -> CompiledModules:
    return CompiledModules(str(root), {}, None, None, "", "wheel")  # type: ignore[arg-type]


def build_data() -> dict[str, Any]:
    return {"force_include": {}, "pure_python": True, "infer_tag": False}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def called(function: ast.AST) -> Iterator[str]:
    """The names of what a function calls of its module and of self, and of the methods that it
    hands on."""
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            yield call.func.id
        for node in (call.func, *call.args) if isinstance(call, ast.Call) else ():
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls"):
                yield node.attr


def recursive(tree: ast.AST) -> set[str]:
    """The functions of a module from which a way leads back to themselves, by their names."""
    calls: dict[str, set[str]] = {}
    for function in functions(tree):
        calls.setdefault(function.name, set()).update(called(function))
    return {name for name in calls if name in _reached(name, calls)}


def _reached(name: str, calls: dict[str, set[str]]) -> set[str]:
    reached, left = set[str](), [name]
    while left:
        new = (calls[left.pop()] & calls.keys()) - reached
        reached |= new
        left += new
    return reached


def test_the_modules_that_are_compiled_exist() -> None:
    assert [name for name, path in PATHS.items() if not path.is_file()] == []
    assert len(MODULES) == len(set(MODULES))


def test_nothing_is_compiled_unless_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, "", "0"):
        monkeypatch.delenv(VARIABLE, raising=False)
        if value is not None:
            monkeypatch.setenv(VARIABLE, value)
        data = build_data()
        hook().initialize("standard", data)
        hook().initialize("editable", data)
        assert (data, hook().dependencies()) == (build_data(), [])


def test_what_was_compiled_is_put_beside_its_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = {"/made/rhythm/vm/values.so": "rhythm/vm/values.so"}
    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setattr(hatch_build, "compiled", lambda source, folder: made)
    data = build_data()
    build = hook(tmp_path)
    build.initialize("standard", data)
    build.finalize("standard", data, "rhythm.whl")
    assert data == {"force_include": made, "pure_python": False, "infer_tag": True}
    assert [Requirement(text).name for text in hook().dependencies()] == ["Cython", "setuptools"]


def refusal(capsys: pytest.CaptureFixture[str], version: str = "standard") -> str:
    build = hook()
    with pytest.raises(SystemExit):
        build.initialize(version, build_data())
    build.finalize(version, build_data(), "")
    told = capsys.readouterr()
    return told.out + told.err


def test_an_editable_install_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert "leave out RHYTHM_COMPILED, or `-e`" in refusal(capsys, "editable")


@pytest.mark.parametrize(
    ("problem", "advice"),
    [
        (ModuleNotFoundError("No module named 'Cython'"), f"pip install '{REQUIREMENTS[0]}'"),
        (OSError("no such file: gcc"), "no such file: gcc\nIt takes a C compiler"),
    ],
)
def test_a_failure_says_what_to_do(
    problem: Exception,
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(source: Path, folder: Path) -> dict[str, str]:
        raise problem

    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setattr(hatch_build, "compiled", fail)
    assert advice in refusal(capsys)


def test_the_version_says_which_build_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_compiled() is COMPILED
    monkeypatch.setattr("rhythm.build.is_compiled", lambda: True)
    assert shown_version() == f"{__version__} (compiled)"
    monkeypatch.setattr("rhythm.build.is_compiled", lambda: False)
    assert shown_version() == __version__


@pytest.mark.parametrize("name", MODULES)
def test_what_recurses_in_a_compiled_module_has_a_limit_of_its_own(name: str) -> None:
    """Compiled functions call each other past Python's limit of recursion: what is nested too deep
    would end the process, where Python raises RecursionError."""
    tree = ast.parse(PATHS[name].read_text(encoding="utf-8"))
    bounded = {function for module, function in RECURSE if module == name}
    assert recursive(tree) == bounded


@pytest.mark.parametrize("name", MODULES)
def test_a_compiled_module_has_no_match_that_cython_gets_wrong(name: str) -> None:
    """Cython 3.3.1 makes C that ends the process of alternatives inside of a pattern, and C that
    does not compile of functions that are defined in a branch."""
    for node in ast.walk(ast.parse(PATHS[name].read_text(encoding="utf-8"))):
        for case in node.cases if isinstance(node, ast.Match) else ():
            inside = {each for each in ast.walk(case.pattern) if each is not case.pattern}
            assert not [each for each in inside if isinstance(each, ast.MatchOr)], (
                case.pattern.lineno
            )
            assert not list(functions(case)), case.pattern.lineno
