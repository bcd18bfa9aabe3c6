"""The short way of the group commit on PostgreSQL: a statement for each kind of light turns and
ends, and nothing is read before.

Each statement leaves out what is not as its owner knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rhythm.store.interfaces.turns import Committed, Done, TaskEnd, TurnCommit
from rhythm.store.light_turns import (
    FINISH_COLUMNS,
    LIGHT_COLUMNS,
    is_light,
    is_light_end,
    is_light_finish,
)
from rhythm.store.postgres.connection import Asked, Hints
from rhythm.store.postgres.wire import Row
from rhythm.store.rows import columns
from rhythm.store.verdicts import Ending, end_of_attempt


class LightCommit:
    """A group commit of nothing but light turns and ends, in one transaction and one round trip."""

    def __init__(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> None:
        self.steps = [turn for turn in turns if turn.end == "own"]
        self.firsts = first_turns(self.steps)
        self.finishes = [turn for turn in turns if turn.end != "own"]
        self.ends = ends

    @classmethod
    def of(cls, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> LightCommit | None:
        """Returns the commit of these; None if one of them must take the full way."""
        commit = cls(turns, ends)
        # Ends and finishes both lock ready rows, and two passes might lock them crosswise.
        fits = all(map(is_light, commit.steps)) and not (commit.finishes and ends)
        if fits and all(map(is_light_finish, commit.finishes)) and all(map(is_light_end, ends)):
            return commit
        return None

    @property
    def statements(self) -> list[Asked]:
        """The statements to send. What locks ready rows comes first."""
        asked = list[Asked]()
        if self.ends:
            asked.append(("light_ends", _end_columns(self.ends)))
        if self.finishes:
            asked.append(("light_finishes", _finish_columns(self.finishes)))
        if self.firsts:
            asked.append(("light_turns", step_columns(self.firsts)))
        if self.steps:
            asked.append(("light_turns", _turn_columns(self.steps, LIGHT_COLUMNS)))
        return asked

    @property
    def hints(self) -> Hints:
        """What others may want to hear of after the commit."""
        ended = {end.id for end in self.ends} | {turn.id for turn in self.finishes}
        return Hints(set(), ended)

    def answers(
        self, rows: Sequence[Sequence[Row]]
    ) -> tuple[list[Committed], set[str], list[TurnCommit]]:
        """Returns what became of the turns, which ends were accepted, and the turns that were left
        out and must take the full way."""
        found = iter(rows)
        accepted = {id for (id,) in next(found)} if self.ends else set()
        finished = {id for (id,) in next(found)} if self.finishes else set()
        if self.firsts:
            next(found)  # the answer to the step behind each says whether it still counts
        answers = [Committed(id, "finished") for id in sorted(finished)]
        if self.steps:
            answers += step_answers(self.steps, next(found))
        return answers, accepted, [turn for turn in self.finishes if turn.id not in finished]


def first_turns(turns: Sequence[TurnCommit]) -> list[TurnCommit]:
    """Returns the turns that are committed right before these."""
    return [turn.first for turn in turns if turn.first is not None]


def step_columns(turns: Sequence[TurnCommit]) -> dict[str, list[Any]]:
    """Returns the columns of light turns whose owners go on, as `light_turns` takes them."""
    return _turn_columns(turns, LIGHT_COLUMNS)


def step_answers(turns: Sequence[TurnCommit], rows: Sequence[Row]) -> list[Committed]:
    """Returns what became of light turns, from the answer to `light_turns`."""
    won = dict(rows)
    return [
        Committed(turn.id, "own", wakes)
        if (wakes := won.get(turn.id)) is not None
        else Committed(turn.id, "lost", written=turn.id in won)
        for turn in turns
    ]


def _finish_columns(turns: Sequence[TurnCommit]) -> dict[str, list[Any]]:
    """Returns the columns of last turns, with those of the turns that are committed with them."""
    firsts = [turn.first for turn in turns]
    of_first = {
        f"first_{name}": [first and getattr(first, name) for first in firsts]
        for name in ("status", "cause", "statement", "waited_us", "snapshot", "owned")
    }
    return _turn_columns(turns, FINISH_COLUMNS) | of_first


def _turn_columns(turns: Sequence[TurnCommit], names: Sequence[str]) -> dict[str, list[Any]]:
    done = {**columns([done for turn in turns for done in turn.done], *Done._fields)}
    done |= columns([turn for turn in turns for _ in turn.done], "id", "fence", "worker")
    return {
        **columns(turns, *names),
        **{f"done_{name}": column for name, column in done.items()},
    }


def _end_columns(ends: Sequence[TaskEnd]) -> dict[str, list[Any]]:
    """Returns the columns of light ends, as `light_ends` takes them: how each task ends, and how it
    does if it was asked to."""
    asked = [_final(end, cancelled=True) for end in ends]
    plain = [_final(end, cancelled=False) for end in ends]
    stands = [one == other for one, other in zip(plain, asked, strict=True)]
    instead = [None if same else ended for ended, same in zip(asked, stands, strict=True)]
    return {
        **columns(ends, "id", "fence", "worker", "took_us"),
        "status": [ended.status for ended in plain],
        "result": [ended.result for ended in plain],
        "error": [ended.error for ended in plain],
        "stands": stands,
        "cancelled_status": [ended and ended.status for ended in instead],
        "cancelled_result": [ended and ended.result for ended in instead],
        "cancelled_error": [ended and ended.error for ended in instead],
    }


def _final(end: TaskEnd, cancelled: bool) -> Ending:
    """Returns how a task ends that is not tried again."""
    ended = end_of_attempt(end, 0, cancelled)
    assert isinstance(ended, Ending)
    return ended
