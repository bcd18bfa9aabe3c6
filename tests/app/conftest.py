"""An application on an empty database of each kind, opened by its URL as a user would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.worker.handlers import Task
from tests.support.stores import KINDS, migrated_file

MakeApp = Callable[..., Rhythm]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without executions."""
    if request.param == "sqlite":
        migrated_file(tmp_path / "app.db")
        return f"sqlite:///{tmp_path / 'app.db'}"
    schemas = request.getfixturevalue("schemas")
    schemas.empty_store().close()
    return schemas.store_url


@pytest.fixture
def make_app(url: str) -> Iterator[MakeApp]:
    """Makes applications on that database, with these functions as their tasks."""
    made: list[Rhythm] = []

    def make(
        *functions: Callable[..., Any], flows: tuple[str, ...] = (), **settings: Any
    ) -> Rhythm:
        tasks = [
            Task(function, function.__name__, "default", 0, None, None) for function in functions
        ]
        app = Rhythm(
            url, (), tasks=tasks, environment={}, **{"worker_poll_interval": "20ms", **settings}
        )
        made.append(app)
        app.register(*flows)
        return app

    yield make
    for app in made:
        app.close()
