"""The rooms have the methods of the application's, with the same parameters: a command need not know
which it asks."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.remote.address import Address
from rhythm.remote.application import RemoteRhythm
from rhythm.remote.client import Client

CLI = Path(rhythm.__file__).parent / "cli"
REMOTE = RemoteRhythm(Client(Address("http", "localhost", 1, ""), None))
# what a server decides itself, or what only a process with the database has
NOT_SENT = {"scope", "connection", "most_bytes", "known", "unless_changed", "after", "limit"}
# what commands ask that have no --server, or only if they have a worker of their own
OF_A_DATABASE = {
    "tokens", "create_token", "change_token", "revoke_token", "worker", "settings", "tasks", "server",
    "export", "program", "places", "close",
}  # fmt: skip
ROOMS = [
    name
    for name, room in vars(REMOTE).items()
    if type(room).__module__.startswith("rhythm.remote") and not name.startswith("_")
]


def methods(room: object) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(type(room), inspect.isfunction)
        if not name.startswith("_") or name == "__call__"
    }


@pytest.mark.parametrize("name", [name for name in ROOMS if name not in ("changes",)])
def test_room_has_no_other_methods_and_parameters_than_the_application(
    name: str, tmp_path: Path
) -> None:
    with Rhythm(f"sqlite:///{tmp_path / 'a.db'}", (), environment={}) as app:
        local = methods(getattr(app, name))
    own = {"view", "handle", "all_children"}  # for the other rooms
    for method, signature in methods(getattr(REMOTE, name)).items():
        if method in own:
            continue
        there = local[method].parameters
        for parameter in signature.parameters.values():
            assert parameter.name in there, f"{name}.{method} has no {parameter.name}"
            same = there[parameter.name]
            assert (parameter.kind, parameter.default) == (same.kind, same.default), (
                f"{name}.{method}: {parameter.name}"
            )
        lacks = there.keys() - signature.parameters.keys() - NOT_SENT
        assert not lacks, f"{name}.{method} lacks {lacks}"


def test_everything_that_commands_ask_is_there() -> None:
    """Read from their code: `app.x` and `app.x.y`."""
    asked = set[tuple[str, ...]]()
    for path in CLI.rglob("*.py"):
        if "dev" in path.parts or path.name in ("serving.py", "supervisor.py", "worker.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            while isinstance(node, ast.Attribute):
                names.append(node.attr)
                node = node.value
            if isinstance(node, ast.Name) and node.id == "app" and names:
                asked.add(tuple(reversed(names)))
    missing = set()
    for names in asked:
        thing: object = REMOTE
        for name in names[:2]:
            if inspect.isroutine(thing) or name in OF_A_DATABASE:
                break
            if not hasattr(thing, name):
                missing.add(".".join(names))
                break
            thing = getattr(thing, name)
    assert missing == set()
