"""Who took part in something, and with which permissions it was asked for.

People start executions, send signals, publish events, give data with a resume, make schedules. What
they gave flows on: an event starts an execution, a turn publishes another event, a retry begins
anew. Their names flow with it, in the transaction that moves the data, so that the four-eyes check
needs to look nowhere else. Two things travel:

- *contributors*: everyone whose data may be in it. All executions of a family (a root and
  everything below it) share one set.
- *authority*: the roles of those who asked for it. A workflow may do to others only what each of
  them was allowed to do.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from rhythm.permissions import allows, allows_some, limited
from rhythm.record import Record
from rhythm.store.access import Actor

MAX_CONTRIBUTORS = 1000  # people of one family
# Stands for more people than are kept. It is nobody's name, since names are printable.
EVERYBODY = "\t*"
# Precedes the name of somebody who gave nothing but the comment of a decision.
COMMENTED = "\t"
MAX_AUTHORITY = 50  # different sets of roles
# Until nothing changes any more; three were enough for every name that was tried.
MAX_ROUNDS = 8
NO_ROLES: tuple[str, ...] = ()

# Letters and marks that are not visible.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


class Provenance(Record):
    """Everyone who took part in something, and the roles that each of them acted with.

    An empty `authority` stands for a caller with access to the database, who may do everything.
    """

    contributors: tuple[str, ...] = ()
    authority: tuple[tuple[str, ...], ...] = ()

    def joined(self, other: Provenance) -> Provenance:
        """Returns the provenance of something that comes from both."""
        if not other.contributors and not other.authority:
            return self
        return Provenance(
            bounded((*self.contributors, *other.contributors)),
            bounded_authority((*self.authority, *other.authority)),
        )

    def allows(self, permission: str, name: str | None = None) -> bool:
        """Returns whether everyone who asked for it was allowed to do this to executions whose root
        has this name.

        Without a name: to all executions.
        """
        return all(allows(roles, permission, name) for roles in self.authority)

    def allows_some(self, permission: str) -> bool:
        """Returns whether everyone who asked for it was allowed to do this to at least some
        executions."""
        return all(allows_some(roles, permission) for roles in self.authority)

    @property
    def limited(self) -> bool:
        """Whether the permissions depend on the name of a workflow or task."""
        return any(limited(roles) for roles in self.authority)


NOBODY = Provenance()


class Sender(Record):
    """Who publishes an event or sends a signal: an actor, or the turn of an execution that somebody
    started."""

    started_by: str | None = None  # of a turn: who started the root of its family
    root_id: str = ""  # of a turn
    provenance: Provenance = NOBODY

    @property
    def name(self) -> str | None:
        """The name that is stored as the starter of what this starts. None: nobody is named."""
        return self.started_by or (f"execution:{self.root_id}" if self.root_id else None)

    def actor(self, id: str) -> Actor | None:
        """Returns who the audit names for what a turn of this execution publishes and sends. None:
        it is not known who started it."""
        return Actor(self.started_by, source=f"execution:{id}") if self.started_by else None


def sender_of(actor: Actor | None) -> Sender:
    """Returns the actor of a call as a sender."""
    return Sender(actor.name if actor else None, provenance=provenance_of(actor))


class SendingFamily(Record):
    """What is stored about the family of an execution whose turn publishes or sends."""

    started_by: str | None
    root_id: str
    authority: str | None  # JSON, of the execution itself
    people: tuple[str, ...]


def sending_turn(family: SendingFamily) -> Sender:
    """Returns the turn of an execution as a sender, from what is stored about its family."""
    people = (each if each == EVERYBODY else each.removeprefix(COMMENTED) for each in family.people)
    provenance = Provenance(bounded(people), load_authority(family.authority))
    return Sender(family.started_by, family.root_id, provenance)


def commenter(actor: Actor) -> str:
    """Returns the contributor for somebody who decides with a comment.

    A workflow can read the comment and send it on, so the person counts as a contributor of
    everything that receives it. In the family itself they do not: one person may well decide twice
    there.
    """
    return f"{COMMENTED}{person(actor.name)}"


def provenance_of(actor: Actor | None) -> Provenance:
    """Returns the provenance of what an actor does now; `NOBODY` without an actor."""
    if actor is None:
        return NOBODY
    roles = () if actor.token_roles is None else (tuple(sorted(actor.token_roles)),)
    return Provenance((person(actor.name),), roles)


@lru_cache(maxsize=4096)
def person(name: str) -> str:
    """Returns the normal form of a person's name: ann, Ann and ANN are one person, and so are names
    that look the same because a part of them is invisible."""
    plain = name
    # Characters that become neighbours when something between them is removed must be composed,
    # too.
    for _ in range(MAX_ROUNDS):
        before, plain = plain, _plainer(plain)
        if plain == before:
            break
    return plain


def _plainer(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join("".join(each for each in folded if not _invisible(each)).split())


def _invisible(character: str) -> bool:
    return (
        character in _BLANKS
        or (unicodedata.category(character) in ("Cf", "Cc") and not character.isspace())
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )


def bounded(people: Iterable[str]) -> tuple[str, ...]:
    """Returns the people, each once, sorted.

    If they are too many to be kept, returns only `EVERYBODY`.
    """
    unique = sorted(set(people))
    return (EVERYBODY,) if EVERYBODY in unique or len(unique) > MAX_CONTRIBUTORS else tuple(unique)


def bounded_authority(authority: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Returns each set of roles once.

    If they are too many to be kept, nothing is allowed any more.
    """
    unique = sorted(set(authority))
    return (NO_ROLES,) if len(unique) > MAX_AUTHORITY else tuple(unique)


def is_contributor(name: str, contributors: Iterable[str]) -> bool:
    """Returns whether this person is one of the contributors, however the name is written.

    People who only commented do not count.
    """
    who = person(name)
    return any(person(each) == who for each in contributors if not each.startswith(COMMENTED))


def dump_authority(authority: tuple[tuple[str, ...], ...]) -> str | None:
    return json.dumps(authority) if authority else None


def load_authority(text: str | None) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, json.loads(text))) if text else ()


def dump_provenance(provenance: Provenance) -> str | None:
    """Returns the provenance as JSON, as an event or a schedule stores it; None if it is empty."""
    return json.dumps(provenance.astuple(), ensure_ascii=False) if provenance != NOBODY else None


def load_provenance(text: str | None) -> Provenance:
    if text is None:
        return NOBODY
    contributors, authority = json.loads(text)
    return Provenance(tuple(contributors), tuple(map(tuple, authority)))
