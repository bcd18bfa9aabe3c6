"""What is started, sent or published on a connection of any library comes with its commit, or not
at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.store.access import Actor
from rhythm.store.postgres import connection as postgres
from rhythm.store.sqlite import session as sqlite
from tests.support import callers
from tests.support.callers import Open, call, drive
from tests.support.stores import migrated_file

HOLD = 'workflow hold(inputs) {\n  return await signal("go")\n}'
HEARS = 'workflow hears(inputs) {\n  let paid = await event("paid")\n  return paid.data\n}'
BEGINS = '@on("paid")\nworkflow begins(inputs) {\n  return inputs\n}'
WAIT = "120s"


on_postgres = pytest.mark.parametrize(
    "library",
    [(f"postgres: {name}", library) for name, library in callers.POSTGRES.items()],
    indirect=True,
    ids=lambda param: param[0],
)


@pytest.fixture(params=callers.KINDS, ids=lambda param: param[0])
def library(request: pytest.FixtureRequest) -> Open:
    return request.param[1]


@pytest.fixture
def place(
    library: Open, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[str, str]]:
    """The URL of an application, and what its library connects to: with a table of the user's."""
    if library in callers.SQLITE.values():
        path = tmp_path / "app.db"
        migrated_file(path)
        yield f"sqlite:///{path}", str(path)
        return
    schemas = request.getfixturevalue("schemas")
    schemas.empty_store().close()
    yield schemas.store_url, schemas.url


@pytest.fixture
def app(place: tuple[str, str]) -> Iterator[Rhythm]:
    with Rhythm(place[0], (), tasks=[], environment={}, worker_poll_interval="20ms") as made:
        made.register(HOLD, HEARS, BEGINS)
        made.start_workflow("hold", id="parked")
        yield made


@pytest.fixture
def run(library: Open, place: tuple[str, str]) -> Callable[[Callable[..., Any]], Any]:
    """Runs a scenario on an open connection of the library."""

    async def scene(scenario: Callable[..., Any]) -> Any:
        async with library(place[1]) as opened:
            return await scenario(opened)

    return lambda scenario: drive(library, scene(scenario))


def names(app: Rhythm) -> list[str]:
    return sorted(execution.id for execution in app.list())


def test_all_comes_with_the_commit_and_nothing_with_a_rollback(
    library: Open, app: Rhythm, run: Any
) -> None:
    async def scenario(opened: Any) -> None:
        for end in (opened.rollback, opened.commit):
            await call(
                library, app, "start_workflow", "hold", {"a": 1}, id="a", connection=opened.given
            )
            await call(library, app, "start_many", "hold", [1, 2], connection=opened.given)
            await call(library, app, "queue_task", "later", id="t", connection=opened.given)
            await call(library, app, "queue_many", "later", [3, 4], connection=opened.given)
            # to one that was started in the same transaction
            assert await call(library, app, "signal", "a", "go", 7, connection=opened.given)
            assert await call(
                library, app, "signal", "parked", "go", 8, signal_id="s", connection=opened.given
            )
            assert await call(
                library, app, "publish", "paid", {"n": 9}, event_id="e", connection=opened.given
            )
            assert names(app) == ["parked"]
            await end()

    run(scenario)
    found = {(each.name, each.id) for each in app.list()}
    assert len(found) == 8
    assert {name for name, _ in found} == {"hold", "later", "begins"}
    assert {("hold", "a"), ("hold", "parked"), ("later", "t")} <= found
    assert not app.signal("parked", "go", 8, signal_id="s")
    assert not app.publish("paid", {"n": 9}, event_id="e")
    with app.worker():
        assert [app.result(id, WAIT) for id in ("a", "parked")] == [7, 8]


def test_error_in_between_undoes_the_call_and_leaves_the_callers_own_work(
    library: Open, app: Rhythm, run: Any
) -> None:
    async def scenario(opened: Any) -> None:
        await call(library, app, "start_workflow", "hold", id="before", connection=opened.given)
        with pytest.raises(rhythm.Conflict):
            await call(
                library,
                app,
                "start_many",
                "hold",
                [rhythm.Start(id="new"), rhythm.Start(id="parked")],
                on_conflict="fail",
                connection=opened.given,
            )
        with pytest.raises(rhythm.UnknownExecution):
            await call(library, app, "signal", "nobody", "go", connection=opened.given)
        await call(library, app, "start_workflow", "hold", id="after", connection=opened.given)
        await opened.commit()

    run(scenario)
    assert names(app) == ["after", "before", "parked"]


def test_duplicates_change_nothing_and_say_so(library: Open, app: Rhythm, run: Any) -> None:
    app.signal("parked", "go", signal_id="s")
    app.publish("paid", event_id="e")
    before = names(app)

    async def scenario(opened: Any) -> None:
        given = opened.given
        assert not await call(
            library, app, "signal", "parked", "go", signal_id="s", connection=given
        )
        assert not await call(library, app, "publish", "paid", event_id="e", connection=given)
        again = await call(library, app, "start_workflow", "hold", id="parked", connection=given)
        assert not again.created
        await opened.commit()

    run(scenario)
    assert names(app) == before


def test_statement_of_the_caller_that_failed_is_the_callers_to_undo(
    library: Open, app: Rhythm, run: Any
) -> None:
    async def scenario(opened: Any) -> None:
        await call(library, app, "start_workflow", "hold", id="lost", connection=opened.given)
        with pytest.raises(Exception, match="no_such_table"):
            await opened.run("SELECT * FROM no_such_table")
        await opened.rollback()
        await call(library, app, "start_workflow", "hold", id="kept", connection=opened.given)
        await opened.commit()

    run(scenario)
    assert names(app) == ["kept", "parked"]


@on_postgres  # SQLite aborts no transaction
def test_aborted_transaction_is_refused_with_the_servers_words(
    library: Open, app: Rhythm, run: Any
) -> None:
    async def scenario(opened: Any) -> None:
        with pytest.raises(Exception, match="no_such_table"):
            await opened.run("SELECT * FROM no_such_table")
        with pytest.raises(Exception, match="current transaction is aborted"):
            await call(library, app, "start_workflow", "hold", connection=opened.given)
        await opened.rollback()

    run(scenario)
    assert names(app) == ["parked"]


@on_postgres
def test_connection_keeps_its_search_path(library: Open, app: Rhythm, run: Any) -> None:
    async def scenario(opened: Any) -> None:
        await opened.run("CREATE TEMPORARY TABLE own (path text)")
        await opened.run("SET LOCAL search_path = pg_temp")
        await call(library, app, "start_workflow", "hold", id="a", connection=opened.given)
        with pytest.raises(rhythm.UnknownExecution):
            await call(library, app, "signal", "nobody", "go", connection=opened.given)
        # fails anywhere but in the path that was set
        await opened.run(
            "INSERT INTO own SELECT 1 / (current_setting('search_path') = 'pg_temp')::int"
        )
        await opened.commit()

    run(scenario)
    assert names(app) == ["a", "parked"]


def test_actor_with_a_token_is_checked_in_the_callers_transaction(
    library: Open, app: Rhythm, run: Any
) -> None:
    token = app.create_token("ann", roles=["operator"]).view.id
    actor = Actor("ann", token=token)

    async def scenario(opened: Any) -> None:
        started = await call(
            library, app, "start_workflow", "hold", by=actor, connection=opened.given
        )
        await call(library, app, "signal", started, "go", by=actor, connection=opened.given)
        await call(library, app, "publish", "paid", by=actor, connection=opened.given)
        await opened.commit()

    run(scenario)
    assert [each.started_by for each in app.list("hold", limit=1)] == ["ann"]
    app.revoke_token(token)

    async def refused(opened: Any) -> None:
        with pytest.raises(rhythm.TokenRevoked):
            await scenario(opened)
        await opened.rollback()

    run(refused)


def test_columns_are_known_though_no_other_driver_has_read_them_before(
    library: Open, app: Rhythm, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns of a statement are worked out once in a process, by whoever comes first."""
    actor = Actor("ann", token=app.create_token("ann", roles=["operator"]).view.id)
    for named in (postgres.NAMED, sqlite.NAMED):
        monkeypatch.setattr(named, "_columns", {})

    async def scenario(opened: Any) -> None:
        given = {"by": actor, "connection": opened.given}
        started = await call(library, app, "start_workflow", "hold", **given)
        await call(library, app, "signal", started, "go", **given)
        await call(library, app, "publish", "paid", **given)
        await opened.commit()

    run(scenario)
    assert [each.started_by for each in app.list("hold", limit=1)] == ["ann"]


def test_other_database_is_refused_and_named(
    library: Open, app: Rhythm, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if library in callers.SQLITE.values():
        other, said = str(tmp_path / "other.db"), "other.db, the executions are in"
    else:
        schemas = request.getfixturevalue("schemas")
        with psycopg.connect(schemas.url, autocommit=True) as admin:
            admin.execute("CREATE DATABASE elsewhere")
        request.addfinalizer(lambda: _dropped(schemas.url))
        other = schemas.url.replace("/postgres", "/elsewhere")
        said = r"another database \(elsewhere\) than the executions are in \(postgres\)"

    async def scene() -> None:
        async with library(other) as opened:
            with pytest.raises(ValueError, match=said):
                await call(library, app, "start_workflow", "hold", connection=opened.given)
            await opened.rollback()

    drive(library, scene())


def _dropped(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("DROP DATABASE elsewhere WITH (FORCE)")
