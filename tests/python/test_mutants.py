"""Whatever is written, the compiler gives a program or advice, and a program does what CPython does.

Mutants of the corpus (a piece of one program in the place of a piece of another) and functions of
Python's own library are compiled: none may raise anything.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

import rhythm
from rhythm.authoring.workflow import Workflow
from rhythm.lang.report import Compilation
from rhythm.lang.source import render_all
from tests.python.corpus import PROGRAMS, load
from tests.python.given import GIVEN
from tests.support.length import sampled, sweep

CORPUS = load()
BATCHES = range(sampled(4, 60))
IN_A_BATCH = 60
NO_PLACE = {"annotation", "returns", "func", "type", "cls", "format_spec"}  # of a node
WHOLE = (ast.arguments, ast.JoinedStr, ast.MatchValue, ast.MatchMapping, ast.arg)
# Such as `True[0]`, or a coroutine that a mutated hint makes, and nobody awaits.
quiet = pytest.mark.filterwarnings(
    "ignore::SyntaxWarning",
    "ignore::RuntimeWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)
Function = tuple[ModuleType, ast.AsyncFunctionDef]


def functions() -> list[Function]:
    """Every program of the corpus, with the module that it is in."""
    found = []
    for path in sorted(PROGRAMS.glob("[!_]*.py")):
        module = sys.modules[f"tests.python.programs.{path.stem}"]
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.AsyncFunctionDef) and node.name in GIVEN:
                node.decorator_list = []
                found.append((module, node))
    return found


def is_read(node: object) -> bool:
    """Whether the node is an expression that another may replace."""
    plain = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    return plain and not isinstance(node, ast.Slice | ast.Starred | ast.JoinedStr)


FUNCTIONS = functions()
PIECES = [each for _, node in FUNCTIONS for each in ast.walk(node) if is_read(each)]


def places(tree: ast.AST) -> Iterator[Callable[[Any], None]]:
    """For each expression of the tree: how another one is put in its place."""
    for node in ast.walk(tree):
        if isinstance(node, WHOLE):
            continue
        for name, value in ast.iter_fields(node):
            if name in NO_PLACE:
                continue
            if is_read(value):
                yield lambda new, node=node, name=name: setattr(node, name, new)
            elif isinstance(value, list):
                for i, each in enumerate(value):
                    if is_read(each):
                        yield lambda new, value=value, i=i: value.__setitem__(i, new)


def mutant(random: Random) -> tuple[ModuleType, str]:
    """The text of a program in which a few expressions are those of others."""
    module, original = random.choice(FUNCTIONS)
    tree = copy.deepcopy(original)
    for _ in range(random.choice((1, 1, 2, 3))):
        random.choice(list(places(tree)))(copy.deepcopy(random.choice(PIECES)))
    return module, ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def compiled(text: str, space: dict[str, Any]) -> Compilation | None:
    """What the compiler says; None if Python itself refuses the text."""
    name = f"<mutant {abs(hash(text))}>"
    try:
        exec(compile(text, name, "exec"), space)
    except Exception:
        return None
    function = next(each for key, each in space.items() if key == function_name(text))
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    try:
        return Workflow(function, "mutant", {}).compilation
    finally:
        del linecache.cache[name]


def function_name(text: str) -> str:
    return text.split("def ", 1)[1].split("(", 1)[0]


def check(compilation: Compilation | None, text: str) -> None:
    """A program, or problems that can be shown, each with advice."""
    if compilation is None:
        return
    assert compilation.errors or compilation.programs, text
    assert render_all(compilation.source, compilation.errors) or not compilation.errors
    assert all(wrong.help for wrong in compilation.errors), (text, compilation.errors)


@sweep
@quiet
@pytest.mark.parametrize("batch", BATCHES)
def test_mutant_compiles_or_is_refused_with_advice(batch: int) -> None:
    random = Random(batch)
    for _ in range(IN_A_BATCH):
        module, text = mutant(random)
        check(compiled(text, dict(vars(module))), text)


def as_workflow(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The text of any function as an `async def` without hints and defaults."""
    made = ast.AsyncFunctionDef(
        "mutant", copy.deepcopy(node.args), node.body, [], None, lineno=1, col_offset=0
    )
    every = made.args
    for arg in (*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg):
        if arg is not None:
            arg.annotation = None
    every.defaults = [ast.Constant(None) for _ in every.defaults]
    every.kw_defaults = [ast.Constant(None) for _ in every.kw_defaults]
    return ast.unparse(ast.fix_missing_locations(made)) + "\n"


@sweep
@quiet
@pytest.mark.parametrize("batch", BATCHES)
def test_function_of_the_library_compiles_or_is_refused_with_advice(batch: int) -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in Random(batch).sample(sorted(library.glob("*.py")), 2):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                text = as_workflow(node)
                check(compiled(text, {"asyncio": asyncio, "rhythm": rhythm}), text)
