"""What the audit tells of events that are published and signals that are sent."""

from __future__ import annotations

import json

from rhythm.store.acts import MOST_ACTS, sending_acts
from rhythm.store.interfaces.messages import NewEvent, NewSignal


def test_one_is_told_as_it_is() -> None:
    (published,) = sending_acts([NewEvent("e", "paid", "1")], ())
    assert (published.action, published.object, json.loads(published.detail)) == (
        "event.publish",
        "e",
        {"type": "paid"},
    )
    (sent,) = sending_acts((), [NewSignal("s", "w", "go", "1")])
    assert (sent.action, sent.object, json.loads(sent.detail)) == (
        "execution.signal",
        "w",
        {"signal": "go", "id": "s"},
    )
    assert sending_acts((), ()) == []


def test_whatever_a_turn_does_its_rows_are_few_and_count_all_of_it() -> None:
    events = [NewEvent(f"e{i}", f"type{i % 300}", "1") for i in range(1000)]
    signals = [NewSignal(f"s{i}", f"w{i % 7}", "go", "1") for i in range(1000)]
    acts = sending_acts(events, signals)
    details = [json.loads(each.detail) for each in acts]
    assert len(acts) == MOST_ACTS
    assert sum(each.get("count", 1) + each.get("more", 0) for each in details) == 2000
    assert [each for each in details if "more" in each] == details[-1:]
