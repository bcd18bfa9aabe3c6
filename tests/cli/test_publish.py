"""`rhythm publish`, on both databases."""

from __future__ import annotations

from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli import test_executions as executions
from tests.cli.test_executions import Command

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm
SHIP = '@on("order.paid") workflow ship(inputs) { return inputs }'


def test_publish_says_what_it_starts_and_an_id_counts_once(
    rhythm: Command, make_app: MakeApp
) -> None:
    app = make_app(flows=(SHIP,))
    assert (
        rhythm("publish order.paid -i order:=17 --event-id one --by Ada").out
        == "published order.paid: it starts ship\n"
    )
    assert (
        rhythm("publish order.paid --event-id one").out
        == "the event one was published before; nothing was done\n"
    )
    assert rhythm("publish order.sent").out == "published order.sent\n"
    (started,) = app.list()
    assert (started.inputs, started.attributes) == (
        {"order": 17},
        {"event_id": "one", "event_type": "order.paid"},
    )
    assert app.store.reading.get([started.id])[started.id].started_by == "Ada"


def test_workflows_tells_which_events_start_one(rhythm: Command, make_app: MakeApp) -> None:
    make_app(flows=(SHIP, "workflow other { return 1 }"))
    assert "started by  event order.paid\n" in rhythm("workflows ship").out
    assert "started by" not in rhythm("workflows other").out
    assert rhythm("workflows ship --output json").json["on"] == ["order.paid"]


def test_data_of_an_event_is_json(rhythm: Command, make_app: MakeApp) -> None:
    app = make_app(flows=(SHIP,))
    for given, data in (("[1]", [1]), ('"text"', "text"), (None, None)):
        assert rhythm("publish order.paid", *([given] if given else [])).code == 0
        assert next(iter(app.list())).inputs == data
    assert "; for the text write '\"yes\"'\n" in rhythm("publish order.paid yes").err
    both = rhythm("publish order.paid 1 -i a=1")
    assert (both.code, both.err) == (2, "rhythm: give the data as JSON or with -i, not with both\n")
    assert rhythm("publish '' 1").code == 2
