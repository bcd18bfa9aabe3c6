"""docs/http.md is true: its session runs against a live server, and it names every route and every
code."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any, get_args

from rhythm import errors
from rhythm.app import Rhythm
from rhythm.http.routes import ROUTES, V1
from rhythm.store.approvals import RefusalCode
from tests.support.serving import serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
SESSION = "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
EXAMPLES = re.findall(r"^\$ (curl .*)\n((?:(?!\$ ).*\n)*)", SESSION, re.MULTILINE)


def printed(command: str, shown: str, environment: dict[str, str]) -> str:
    """What a command prints. What only looks may have to look again: a worker is on its way."""
    last = time.monotonic() + 120
    while True:
        ran = subprocess.run(
            ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60
        )
        out = ran.stdout.rstrip("\n") + "\n"
        if out == shown or " -d " in command or "-X POST" in command or time.monotonic() > last:
            return out


def test_session_of_the_page(tmp_path: Path) -> None:
    (flow,) = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
    with (
        Rhythm(f"sqlite:///{tmp_path / 'rhythm.db'}", (), environment={}) as app,
        app.worker(),
        serving(app.server()) as base,
    ):
        app.register(flow)
        ada = app.create_token("ada", roles=["operator"]).secret
        grace = app.create_token("grace", roles=["approver"], business_roles=["finance"]).secret
        environment = {
            "URL": base,
            "ADA": ada,
            "GRACE": grace,
            "PATH": "/usr/bin:/bin:/usr/local/bin",
        }
        assert len(EXAMPLES) == 9
        for command, shown in EXAMPLES:
            assert printed(command, shown, environment) == shown, command


def test_application_of_the_page(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(code.replace("sqlite:///rhythm.db", f"sqlite:///{tmp_path / 'rhythm.db'}"), names)
    app = names["app"]
    assert isinstance(app, Rhythm)
    app.close()


def test_page_names_every_route() -> None:
    named = set(re.findall(r"`((?:GET|POST|PATCH|PUT|DELETE) [^`]*)`", PAGE))
    assert named == {
        f"{route.method} {route.path.removeprefix(V1).replace(':path', '')}" for route in ROUTES
    }


def test_page_names_what_every_route_takes() -> None:
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    rows = [row for row in PAGE.split("## Pages")[0].splitlines() if row.startswith("| `")]
    (above,) = [row for row in rows if row.startswith("| `POST /schedules`")]
    everywhere = {"limit", "cursor", "Idempotency-Key", "last-event-id"}
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            name = f"`{method.upper()} {path.removeprefix(V1)}`"
            (row,) = [row for row in rows if name in row]
            given = {one["name"] for one in route.get("parameters", ()) if one["in"] != "path"}
            taken = given - everywhere | fields_of(document, route)
            # what a schedule has stands in the row of those who make one
            words = set(re.findall(r"\w+", above + row if method == "patch" else row))
            assert taken <= words, (name, taken - words)


def fields_of(document: Any, route: Any) -> set[str]:
    """The fields of a route's JSON body."""
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    of = [schema, *schema.get("anyOf", ()), *schema.get("allOf", ())]
    names = [one["$ref"].rpartition("/")[2] for one in of if "$ref" in one]
    return {
        field for name in names for field in document["components"]["schemas"][name]["properties"]
    }


def test_page_names_every_code() -> None:
    source = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src" / "rhythm" / "http").glob("*.py")
    )
    ours = (
        set(re.findall(r'Refused\(\s*\d+, "(\w+)"', source))
        | set(re.findall(r'\d{3}: "(\w+)"', source))
        | set(errors_of_callers())
        | set(get_args(RefusalCode)) - {""}  # for which a decision is refused
    )
    named = set(re.findall(r"`(\w+)`", PAGE.split("## Problems")[1].split("## Streams")[0]))
    assert ours - {"text"} <= named


def errors_of_callers() -> list[str]:
    from rhythm.http.problems import BY_CODE, STATUS

    return [
        kind.code
        for kind in STATUS
        if issubclass(kind, errors.RhythmError) and "code" in vars(kind)
    ] + [*BY_CODE]
