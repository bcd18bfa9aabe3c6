"""The workflows that are registered, in all their versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.schedules import Registered
from rhythm.store.triggers import Trigger


class Definition(Record):
    """One version of a workflow, as it is stored."""

    name: str
    version: str
    language: str
    source: str
    program: str
    file: str = ""
    # types of events that start it; like what follows, only told when it is registered
    on: tuple[str, ...] = ()
    queue: str = "default"
    timeout_s: float | None = None
    schedules: tuple[dict[str, Any], ...] = ()  # what its annotations say


class Listed(Record):
    """The current version of a workflow, without its text and its program, which may be large."""

    name: str
    version: str
    language: str
    file: str
    registered_at: int


def source_hashes(definitions: Iterable[Definition]) -> dict[str, str]:
    """The texts of these workflows, each once, and what names them: their SHA-256."""
    from hashlib import sha256

    return {
        text: sha256(text.encode()).hexdigest()
        for text in {definition.source for definition in definitions}
    }


class DefinitionStore(ABC):
    """The workflows that are registered, in all their versions."""

    @abstractmethod
    def register(
        self,
        definitions: Sequence[Definition],
        schedules: Registered | None = None,
        actor: Actor | None = None,
    ) -> None:
        """Stores versions that are new, and makes these the current ones of their names: all, or
        none.

        From then on events start these, and only by the types that they name now. `schedules` gets
        those that these workflows' annotations have made before, and says what becomes of which.
        With an `actor`, versions that become current are recorded.
        """

    @abstractmethod
    def get(self, name: str, version: str | None = None) -> Definition | None:
        """A version of a workflow; the current one if none is named."""

    @abstractmethod
    def program(self, name: str, version: str) -> str | None:
        """The program of a version of a workflow, as it is stored; its text is not read."""

    @abstractmethod
    def current(self, names: Sequence[str]) -> dict[str, Listed]:
        """The current versions of these workflows, as far as there are any."""

    @abstractmethod
    def after(self, after: str, limit: int) -> list[Listed]:
        """The current versions of so many workflows, by name: those that come after this one. No
        text and no program is read."""

    @abstractmethod
    def triggers(self) -> list[Trigger]:
        """Which events start which workflows, by type and name."""
