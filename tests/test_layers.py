"""Who may import whom, and what starting up may cost."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from rhythm.vm import commands
from tests.modules import PAGE, first_line, page

SOURCE = Path(__file__).parents[1] / "src" / "rhythm"
FOUNDATION = {
    "build",
    "record",
    "limits",
    "errors",
    "durations",
    "ids",
    "paths",
    "permissions",
    "printable",
    "schedule_times",
    "settings",
    "suggest",
}
# a folder of src/rhythm: the parts of rhythm that it may import, besides itself and the foundation
MAY_IMPORT = {
    "filters": set(),  # pure, as what it is about: a text
    "ir": set(),
    "lang": {"ir"},
    "vm": {"ir"},
    "store": {"filters"},
    "engine": {"ir", "vm", "store"},
    # what people write Python workflows with
    "authoring": {"ir", "lang", "engine"},
    "worker": {"ir", "vm", "lang", "engine", "store", "authoring"},
    # of http only `Rhythm.server`, which hands itself over
    "app": {"filters", "ir", "lang", "engine", "worker", "store", "http", "authoring"},
    # no store: the application has what http and cli ask for, and opens databases
    "http": {"filters", "ir", "vm", "engine", "worker", "app"},
    "cli": {
        "filters",
        "ir",
        "vm",
        "lang",
        "engine",
        "worker",
        "app",
        "http",
        "remote",
        "authoring",
    },
    # an application that a server answers: no database, and nothing of the server's own code
    "remote": {"filters", "ir", "lang", "engine", "app"},
    # drives the real worker on a real store, for the tests of users
    "testing": {"ir", "vm", "engine", "worker", "app", "store", "authoring"},
}
IMPURE = {
    "asyncio", "io", "logging", "multiprocessing", "os", "pathlib", "queue", "random", "secrets",
    "selectors", "signal", "socket",
    "subprocess", "sys", "tempfile", "threading", "time", "uuid",
}  # fmt: skip
LATER = (
    "rhythm.vm rhythm.lang.languages rhythm.app.explain rhythm.app.aio rhythm.worker.loop "
    "asyncio sqlite3 psycopg fastapi"
).split()
HEAVY = (
    "argparse asyncio dataclasses fastapi http psycopg rich socket sqlite3 ssl subprocess "
    "typing_extensions urllib3 uvicorn"
).split()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(folder: str) -> list[Path]:
    return sorted((SOURCE / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """The modules a file imports when it runs; what only a type checker sees does not count."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (
                (f"{node.module}.{alias.name}" for alias in node.names)
                if node.module == "rhythm"
                else [node.module]
            )


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_layer_imports_only_what_is_below_it(folder: str) -> None:
    allowed = MAY_IMPORT[folder] | FOUNDATION | {folder}
    for path in modules(folder):
        for name in imports(path):
            parts = name.split(".")
            assert parts[0] != "rhythm" or parts[1] in allowed or name == "rhythm.__version__", (
                f"{path.name} imports {name}"
            )


@pytest.mark.parametrize("folder", ["engine", "worker"])
def test_engine_and_worker_see_no_database(folder: str) -> None:
    for path in modules(folder):
        assert not [
            name
            for name in imports(path)
            if name.startswith(
                ("rhythm.store.sqlite", "rhythm.store.postgres", "sqlite3", "psycopg")
            )
        ], path.name


@pytest.mark.parametrize("folder", ["http", "cli", "remote"])
def test_server_and_command_line_ask_the_application_and_not_its_store(folder: str) -> None:
    """A room of the application says what they want to know; whoever reaches past it must be
    changed with every store."""
    for path in modules(folder):
        asked = {node.attr for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)}
        assert not asked & {"store", "_store", "_context"}, path.name


def test_the_page_of_modules_is_theirs() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make modules`"
    assert not [path.name for path in SOURCE.rglob("*.py") if not first_line(path)], (
        "a module says in its first line what it owns"
    )


def test_every_folder_has_its_rule() -> None:
    assert {
        path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()
    } == MAY_IMPORT.keys()


def test_foundation_imports_nothing_above_itself() -> None:
    for name in FOUNDATION:
        for imported in imports(SOURCE / f"{name}.py"):
            parts = imported.split(".")
            assert (
                parts[0] != "rhythm"
                or parts[1] in FOUNDATION
                or imported in ("rhythm.lang.source", "rhythm.__version__")
            ), f"{name} imports {imported}"


@pytest.mark.parametrize("folder", ["vm", "ir"])
def test_pure_layers_have_no_clock_no_chance_and_no_files(folder: str) -> None:
    for path in modules(folder):
        text = path.read_text(encoding="utf-8")
        assert not IMPURE & {name.split(".")[0] for name in imports(path)}, path.name
        calls = {
            ast.unparse(node.func)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
        }
        assert not calls & {
            "open",
            "print",
            "input",
            "eval",
            "exec",
            "datetime.now",
            "datetime.utcnow",
            "date.today",
        }, path.name


PURE_ENGINE = (
    "backoff inputs levels payload planning recheck retry_plan rows said schedules".split()
)


@pytest.mark.parametrize("name", PURE_ENGINE)
def test_the_thinking_of_the_engine_knows_no_store_no_worker_and_no_clock(name: str) -> None:
    """It sees the records of a store, and never a store."""
    path = SOURCE / "engine" / f"{name}.py"
    assert not IMPURE & {imported.split(".")[0] for imported in imports(path)}
    names = {node.id for node in ast.walk(parsed(path)) if isinstance(node, ast.Name)}
    assert not [name for name in names if name.endswith("Store")]


RULES = (
    "acts approvals attributes audit_checks blobs events families lifecycle light_turns log_lines"
    " provenance triggers verdicts"
).split()


@pytest.mark.parametrize("name", RULES)
def test_the_rules_of_the_store_know_no_database_and_no_clock(name: str) -> None:
    path = SOURCE / "store" / f"{name}.py"
    drivers = {"sqlite3", "psycopg"}
    assert not (IMPURE | drivers) & {imported.split(".")[0] for imported in imports(path)}
    assert not [
        imported
        for imported in imports(path)
        if imported.startswith(("rhythm.store.sqlite", "rhythm.store.postgres"))
    ]


INTERFACES = sorted(
    path.stem
    for path in (SOURCE / "store" / "interfaces").glob("*.py")
    if path.stem not in ("__init__", "store")
)


def class_in(path: Path, end: str) -> ast.ClassDef:
    tree = parsed(path)
    (found,) = [
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith(end)
    ]
    return found


def test_a_store_has_these_roles_and_no_operation_beside_them() -> None:
    store = class_in(SOURCE / "store" / "interfaces" / "store.py", "Store")
    fields = {
        ast.unparse(node.target): ast.unparse(node.annotation)
        for node in store.body
        if isinstance(node, ast.AnnAssign)
    }
    roles = {
        role: class_in(SOURCE / "store" / "interfaces" / f"{role}.py", "Store").name
        for role in INTERFACES
    }
    assert {name: kind for name, kind in fields.items() if kind.endswith("Store")} == roles
    assert len([node for node in store.body if isinstance(node, ast.FunctionDef)]) <= 8


@pytest.mark.parametrize("role", INTERFACES)
def test_a_role_is_small_and_one_module_of_each_database(role: str) -> None:
    """In each database one class, of the common base and the interface: no tower, and no role
    inherits from another."""
    interface = class_in(SOURCE / "store" / "interfaces" / f"{role}.py", "Store")
    assert len([node for node in interface.body if isinstance(node, ast.FunctionDef)]) <= 12
    for database in ("sqlite", "postgres"):
        made = class_in(SOURCE / "store" / database / f"{role}.py", role.capitalize())
        assert [ast.unparse(base) for base in made.bases] == [
            f"{database.capitalize()}Role",
            interface.name,
        ]


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_database_puts_its_store_together_and_nothing_else(database: str) -> None:
    store = class_in(SOURCE / "store" / database / "store.py", "Store")
    assert [ast.unparse(base) for base in store.bases] == ["Store"]
    assert len([node for node in store.body if isinstance(node, ast.FunctionDef)]) <= 16


MIRRORED = {"lang/flow/nodes.py", "ir/instructions.py"}  # a tree and what it is lowered to
WIRE = "http/"  # the documents of the interface have its names


def test_no_public_class_name_is_there_twice() -> None:
    """Whoever reads a name knows which class is meant."""
    homes: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name)
    twice = {
        name: {home for home in found if not home.startswith(WIRE)} for name, found in homes.items()
    }
    assert {name: found for name, found in twice.items() if len(found - MIRRORED) > 1} == {}


def calls_of(name: str) -> set[str]:
    """The modules that call something of this name."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        tree = parsed(path)
        if any(
            isinstance(node, ast.Call) and ast.unparse(node.func) == name for node in ast.walk(tree)
        ):
            found.add(path.relative_to(SOURCE).as_posix())
    return found


def test_planning_knows_every_command_of_the_interpreter() -> None:
    """A new one is not dropped: it has a case, even if nothing is stored of it."""
    path = SOURCE / "engine" / "planning.py"
    cases = {
        node.cls.attr
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Attribute)
    }
    assert {command.__name__ for command in commands.Command.__subclasses__()} <= cases


def test_every_turn_commit_is_made_by_planning() -> None:
    assert calls_of("TurnCommit") == {"engine/planning.py"}


def test_a_worker_is_complete_when_it_is_made() -> None:
    """Everything comes in by the constructor: nobody sets anything of a worker, or of its parts,
    from outside."""
    parts = (
        "worker",
        "_worker",
        "heart",
        "ownership",
        "slots",
        "dispatcher",
        "claimer",
        "loader",
        "turns",
        "committer",
        "liveness",
    )
    for path in [*modules("worker"), *modules("app"), *modules("cli"), *modules("http")]:
        for node in ast.walk(parsed(path)):
            targets = node.targets if isinstance(node, ast.Assign) else []
            flat = [
                each
                for target in targets
                for each in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
            for target in flat:
                owner = target.value if isinstance(target, ast.Attribute) else None
                poked = isinstance(owner, ast.Attribute) and owner.attr in parts
                assert not poked or (path.name, ast.unparse(target)) in SET_FROM_OUTSIDE, (
                    f"{path.name}: {ast.unparse(target)}"
                )


# what one part of a worker sets of another, by design: both are in the thread that decides
SET_FROM_OUTSIDE = {
    ("loop.py", "self.ownership.unsure"),
    ("turns.py", "self.ownership.unsure"),
    ("loop.py", "self.slots.paused"),
    ("loop.py", "self.slots.draining"),
}


def alone(code: str) -> list[str]:
    """The lines that this prints in a process of its own, in which nobody measures what is run."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    return ran.stdout.splitlines()


def test_application_imports_no_compiler_no_interpreter_and_no_driver() -> None:
    """Most commands need none of them."""
    code = f"import sys, rhythm.app.application; print(sorted(set({LATER!r}) & set(sys.modules)))"
    assert alone(code) == ["[]"]


@pytest.mark.parametrize("args", [["--help"], ["check", "FILE"]])
def test_start_up_imports_no_network_and_no_database(args: list[str], tmp_path: Path) -> None:
    command = [flow_file(tmp_path) if arg == "FILE" else arg for arg in args]
    code = (
        f"import sys; from rhythm.cli.main import main; main({command!r}); "
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    assert alone(code)[-1] == "[]"


COUNT_CALLS = """
import sys
calls = 0

def count(frame, event, arg):
    global calls
    calls += event in ("call", "c_call")

sys.setprofile(count)
from rhythm.cli.main import main
main({command!r})
sys.setprofile(None)
print(calls)
"""


@pytest.mark.parametrize(("args", "most"), [(["--help"], 56_000), (["check", "FILE"], 61_000)])
def test_start_up_is_little_work(args: list[str], most: int, tmp_path: Path) -> None:
    """Counted in calls, imports included, which is the same on a busy machine. They take half of
    the 0.12 s of processor time that they may (`make bench ARGS=startup`)."""
    command = [flow_file(tmp_path) if arg == "FILE" else arg for arg in args]
    assert int(alone(COUNT_CALLS.format(command=command))[-1]) <= most


def flow_file(folder: Path) -> str:
    file = folder / "a.flow"
    file.write_text(
        'workflow a(inputs) {\n  let x = await task("t", { n: inputs.n })\n  return x\n}\n',
        encoding="utf-8",
    )
    return str(file)
