"""An auditor reads and verifies the audit over HTTP, without the database."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.http.audit import MOST_ROWS
from tests.http.conftest import Client, MakeClient
from tests.store.test_audit import of_before, unguarded
from tests.support.stores import rows

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


@pytest.fixture
def auditor(app: Rhythm, client: MakeClient) -> Client:
    """Somebody who may read the audit, of which there are eight rows by then."""
    made = client("auditor", name="Aud")
    for i in range(7):
        app.pause_queue(f"q{i}", 'ünd \\ "so"\t\u2028', by="änn")
    return made


def verified(auditor: Client, **asked: Any) -> dict[str, Any]:
    answer = auditor.get("/api/v1/audit/verify", params=asked)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_an_auditor_verifies_the_whole_audit(app: Rhythm, auditor: Client) -> None:
    found = verified(auditor)
    assert found == {
        "intact": True,
        "rows": 8,
        "head": app.verify_audit().head,
        "problems": [],
        "broken": 0,
        "next": None,
    }
    assert verified(auditor, head=found["head"])["intact"]
    assert not verified(auditor, head=f"3:{'0' * 64}")["intact"]


def test_a_long_audit_is_verified_in_as_many_requests_as_it_takes(auditor: Client) -> None:
    read, after = 0, {}
    for expected in (3, 3, 2):
        found = verified(auditor, limit=3, **after)
        assert (found["intact"], found["rows"]) == (True, expected)
        read, after = read + found["rows"], {"after": found["next"]}
    assert (read, found["next"]) == (8, None)


def test_what_was_changed_or_put_beside_is_told(app: Rhythm, auditor: Client) -> None:
    head = verified(auditor)["head"]
    with unguarded(app.store):
        rows(app.store, "UPDATE audit SET actor = 'bob' WHERE n = 4")
    with of_before(app.store):
        rows(
            app.store,
            (
                "INSERT INTO audit VALUES (0, 1, 'bob', NULL, '', 'approval.approve', 'b', "
                "'{}', '', '')"
            ),
        )
    found = verified(auditor, head=head)
    assert (found["intact"], found["broken"], found["rows"]) == (False, 2, 9)
    assert found["problems"] == [
        "row 0 is none of the chain, which begins with row 1: somebody has put it there",
        "row 4 was changed after it was written",
    ]


@pytest.mark.parametrize(
    "asked",
    [{"head": "5"}, {"after": "x"}, {"limit": 0}, {"limit": MOST_ROWS + 1}, {"limit": "many"}],
)
def test_what_cannot_be_asked_is_refused(auditor: Client, asked: dict[str, Any]) -> None:
    assert auditor.get("/api/v1/audit/verify", params=asked).status_code == 422


def test_the_rows_that_are_read_can_be_verified_with_the_script_of_the_page(
    auditor: Client,
) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(text, names)  # what the page tells its readers to run
    items, cursor = list[dict[str, Any]](), dict[str, str]()
    while cursor is not None:
        page = auditor.get("/api/v1/audit", params={"limit": 3, **cursor}).json()
        items += page["items"]
        cursor = {"cursor": page["cursor"]} if page["cursor"] else None
    lines = [json.dumps(row) for row in reversed(items)]
    assert (len(lines), names["broken"](lines)) == (8, [])
    assert names["broken"]([line.replace("q3", "q9") for line in lines]) == [5]
    assert {row["n"]: json.loads(row["detail_text"]) for row in items} == {
        row["n"]: row["detail"] for row in items
    }
