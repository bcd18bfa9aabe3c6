"""`rhythm approve`, `reject` and `escalate`: what they decide about."""

from __future__ import annotations

import pytest

from rhythm.app import Rhythm
from rhythm.cli.main import main
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli import test_executions as executions
from tests.cli.test_executions import Command, until

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm
FLOW = 'workflow buy(inputs) { return await approval({ role: "boss", reason: "a lot" }) }'


@pytest.fixture
def asks(rhythm: Command, make_app: MakeApp) -> tuple[Rhythm, str]:
    """An application, and the id of an approval that is open in it."""
    app = make_app()
    app.register(FLOW)
    id = app.start_workflow("buy").id
    until(app, id, lambda seen: seen.status == "paused")
    (approval,) = app.approvals(execution=id)
    return app, approval.id


@pytest.mark.parametrize("name", ["--content-hash", "--shown"])
def test_what_has_changed_since_it_was_seen_is_not_decided(
    asks: tuple[Rhythm, str], rhythm: Command, name: str
) -> None:
    app, id = asks
    refused = rhythm(f"approve {id} --by ann {name} other")
    assert (refused.code, "has changed since" in refused.err) == (1, True)
    assert rhythm(f"approve {id} --by ann {name} {app.approval(id).content_hash}").code == 0
    assert app.approval(id).status == "approved"


@pytest.mark.parametrize("command", ["approve", "reject", "escalate"])
def test_the_older_name_of_the_content_hash_is_not_on_the_help_page(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    page = capsys.readouterr().out
    assert ("--content-hash HASH" in page, "--shown" in page) == (True, False)


WAITS = 'workflow waits(inputs) { return await signal("go") }'


def test_execution_that_asks_for_nothing_is_told_as_it_is(
    rhythm: Command, make_app: MakeApp
) -> None:
    app = make_app(flows=(WAITS,))
    app.start_workflow("waits", id="w")
    refused = rhythm("approve w --by ann")
    assert (refused.code, refused.err) == (
        1,
        "rhythm: w asks for no decision: it is pending; `rhythm why w` says what would help\n",
    )
    until(app, "w", lambda seen: seen.status == "suspended")
    for command in ("approve", "reject", "escalate"):
        assert rhythm(f"{command} w --by ann").err == (
            "rhythm: w asks for no decision: it waits for signal go; `rhythm why w` says what "
            "would help\n"
        )
    app.pause("w")
    assert "w asks for no decision: it is paused; `rhythm why w`" in rhythm("approve w").err
    app.terminate("w")
    assert rhythm("approve w").err == "rhythm: w asks for no decision: it is cancelled\n"
    assert "there is no approval 'nobody'; `rhythm approvals` lists" in rhythm("approve nobody").err


def test_execution_whose_approvals_have_ended_names_them(
    rhythm: Command, make_app: MakeApp
) -> None:
    twice = """workflow twice() {
  await approval({ role: "a" })
  await approval({ role: "a" })
}"""
    app = make_app(flows=(twice,))
    app.start_workflow("twice", id="t")
    for count in (1, 2):
        until(app, "t", lambda seen: len(app.approvals(status=None)) == count)  # noqa: B023 - called at once
        app.approve(app.approvals()[0], by="ann")
    until(app, "t", lambda seen: seen.ended)
    refused = rhythm("approve t --by ann")
    assert (refused.code, refused.err) == (
        1,
        "rhythm: t asks for no decision any more; `rhythm approvals --execution t --status all` "
        "lists those that were made\n",
    )
