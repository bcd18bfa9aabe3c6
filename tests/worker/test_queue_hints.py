"""Which queues are worth asking."""

from __future__ import annotations

from rhythm.worker.queue_hints import QueueHints

ALL = ("system", "mail", "default")


class Ears:
    """A clock, and whether everything is heard of."""

    def __init__(self) -> None:
        self.now, self.complete = 0.0, True
        self.hints = QueueHints(ALL, lambda: self.now, 1.0, lambda: self.complete)
        assert self.hints.take(ALL)  # nothing is known of what was there before


def test_nothing_is_asked_that_nobody_has_heard_of() -> None:
    ears = Ears()
    assert not ears.hints.take(ALL)
    ears.hints.heard({"mail"})
    assert ears.hints.take(ALL)
    assert not ears.hints.take(ALL)


def test_no_name_stands_for_all_queues_and_other_names_for_none_but_theirs() -> None:
    ears = Ears()
    ears.hints.heard(())
    assert [ears.hints.take([name]) for name in ALL] == [True, True, True]
    ears.hints.heard({"default"})
    assert [ears.hints.take([name]) for name in ALL] == [False, False, True]


def test_what_was_heard_of_a_queue_is_kept_until_it_is_asked() -> None:
    """A worker without a free slot asks only for workflows that go on."""
    ears = Ears()
    ears.hints.heard({"default"})
    assert not ears.hints.take(["system"])
    assert ears.hints.take(ALL)


def test_every_queue_is_asked_once_in_a_poll_interval_also_those_that_had_no_slot_then() -> None:
    ears = Ears()
    ears.now = 1.0
    assert ears.hints.take(["system"])
    assert ears.hints.take(ALL)
    assert not ears.hints.take(ALL)
    ears.now = 1.9
    assert not ears.hints.take(ALL)
    ears.now = 2.0
    assert ears.hints.take(ALL)


def test_while_not_everything_is_heard_of_every_question_is_worth_asking() -> None:
    ears = Ears()
    ears.complete = False
    assert [ears.hints.take(ALL) for _ in range(3)] == [True, True, True]
