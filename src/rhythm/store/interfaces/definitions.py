"""The registered workflows, in all their versions."""

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
    # Types of events that start it. This field and the three below are set only when it is
    # registered.
    on: tuple[str, ...] = ()
    queue: str = "default"
    timeout_s: float | None = None
    schedules: tuple[dict[str, Any], ...] = ()  # from its `@schedule` annotations
    inputs: str | None = None  # what it declares, as JSON Schema; None: anything may be given


class Listed(Record):
    """The current version of a workflow, without its text and its program, which may be large."""

    name: str
    version: str
    language: str
    file: str
    registered_at: int
    inputs: str | None = None


def source_hashes(definitions: Iterable[Definition]) -> dict[str, str]:
    """Maps the texts of these workflows, each once, to their SHA-256, which names them in the
    database."""
    from hashlib import sha256

    return {
        text: sha256(text.encode()).hexdigest()
        for text in {definition.source for definition in definitions}
    }


class DefinitionStore(ABC):
    """Stores and returns the registered workflows, in all their versions."""

    @abstractmethod
    def register(
        self,
        definitions: Sequence[Definition],
        schedules: Registered | None = None,
        actor: Actor | None = None,
    ) -> None:
        """Stores the versions that are new, and makes these versions the current ones: all of them,
        or none.

        From then on events start these versions, and only events of the types that they name now.
        `schedules` is called with the schedules that annotations of these workflows made before,
        and returns what becomes of each. With an `actor`, the audit records every version that
        becomes current.
        """

    @abstractmethod
    def get(self, name: str, version: str | None = None) -> Definition | None:
        """Returns a version of a workflow, or the current one without `version`. None: there is
        none."""

    @abstractmethod
    def program(self, name: str, version: str) -> str | None:
        """Returns the stored program of a version of a workflow, without reading its text. None:
        there is none."""

    @abstractmethod
    def current(self, names: Sequence[str]) -> dict[str, Listed]:
        """Returns the current versions of these workflows by name.

        Names without a workflow are left out.
        """

    @abstractmethod
    def after(self, after: str, limit: int) -> list[Listed]:
        """Returns the current versions of the next `limit` workflows by name, beginning after name
        `after`.

        Reads no text and no program.
        """

    @abstractmethod
    def versions(self, name: str, limit: int) -> list[str]:
        """Returns the versions of a workflow, that which became current last first."""

    @abstractmethod
    def triggers(self) -> list[Trigger]:
        """Returns which events start which workflows, sorted by event type and workflow name."""
