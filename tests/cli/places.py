"""Where a command goes, in tests: to the database, or to a server on the same database. What it
prints, and its exit code, are the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from typing import Any, TypeVar

import pytest

from rhythm.app import Rhythm
from rhythm.app.actors import user
from rhythm.cli.remote import WITHOUT_SERVER
from rhythm.http import Server
from tests.support.serving import serving

PLACES = ("database", "server")
Test = TypeVar("Test", bound=Callable[..., Any])
BUSINESS = ("boss", "board", "finance", "manager", "chief", "lead", "sales_manager")


def on_database(why: str) -> Callable[[Test], Test]:
    """Marks a test that only means something on a database, and says why."""

    def marked(test: Test) -> Test:
        test.on_database = why  # type: ignore[attr-defined]  # read when tests are collected
        return test

    return marked


class There:
    """A database, and if that is the place a server on it, which begins to listen when it is
    needed.

    On the server `--by NAME` is the token of NAME, who may do everything: nobody else can act under
    that name.
    """

    def __init__(self, url: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._url, self._place, self._patch = url, place, monkeypatch
        self._secrets: dict[str, str] = {}
        self._stack = ExitStack()
        monkeypatch.setenv("RHYTHM_DATABASE_URL", url)

    @cached_property
    def _app(self) -> Rhythm:
        return self._stack.enter_context(Rhythm(self._url, (), environment={}))

    @cached_property
    def server(self) -> str:
        """The URL of the server."""
        return self._stack.enter_context(serving(Server(self._app)))

    def secret(self, name: str) -> str:
        """The token of somebody who may do everything."""
        if name not in self._secrets:
            made = self._app.create_token(name, roles=["admin"], business_roles=BUSINESS)
            self._secrets[name] = made.secret
        return self._secrets[name]

    def words(self, words: list[str]) -> list[str]:
        """The words of a command, as they are given here; what else it needs is in variables."""
        if self._place == "database":
            return words
        for name in ("RHYTHM_SERVER", "RHYTHM_TOKEN"):
            self._patch.delenv(name, raising=False)
        alone = {" ".join(words[:count]) for count in (1, 2)} & WITHOUT_SERVER.keys()
        if alone or {"--database", "--server", "--help"} & {*words}:
            self._patch.setenv("RHYTHM_DATABASE_URL", self._url)
            return words
        name = user()
        if "--by" in words:
            at = words.index("--by")
            name, words = words[at + 1], words[:at] + words[at + 2 :]
        self._patch.delenv("RHYTHM_DATABASE_URL", raising=False)
        self._patch.setenv("RHYTHM_SERVER", self.server)
        self._patch.setenv("RHYTHM_TOKEN", self.secret(name))
        return words

    def close(self) -> None:
        """Stops the server."""
        self._stack.close()
