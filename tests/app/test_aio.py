"""The coroutines: the same methods with the same signatures, and waits that block nobody."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import rhythm
from rhythm import errors
from rhythm.app import Rhythm, default
from rhythm.store.access import AuditRow
from tests.app.conftest import MakeApp

WAIT = "120s"
HOLD = 'workflow hold(inputs) {\n  return await signal("go")\n}'


def test_handles_have_coroutines_too_alone_and_in_lists(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))

    async def work() -> list[Any]:
        first = await app.aio.start_workflow("hold", id="first")
        assert {first} == {await app.aio.start_workflow("hold", id="first")}
        others = await app.aio.start_many("hold", [1, 2])
        for handle in (first, *others):
            await handle.signal("go", handle.id)
        assert (
            str(first),
            first.created,
            await first.status() in ("pending", "suspended", "running", "completed"),
        ) == (
            "first",
            True,
            True,
        )
        return [await handle.result(timeout=WAIT) == handle.id for handle in (first, *others)]

    with app.worker():
        assert asyncio.run(work()) == [True, True, True]


def test_more_waits_than_threads_do_not_stop_other_calls(make_app: MakeApp) -> None:
    app, count = make_app(flows=(HOLD,)), 60  # more than the pool of asyncio has threads

    async def work() -> int:
        handles = await app.aio.start_many("hold", range(count))
        waits = [asyncio.create_task(handle.result(timeout=WAIT)) for handle in handles]
        await asyncio.sleep(0)
        for handle in handles:
            await handle.signal("go", 1)
        return sum(await asyncio.gather(*waits))

    with app.worker():
        assert asyncio.run(work()) == count


def test_wait_ends_in_time_and_can_be_cancelled(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))

    async def work() -> None:
        handle = await app.aio.start_workflow("hold")
        with pytest.raises(rhythm.ResultTimeout, match="had not ended after 20ms"):
            await handle.result(timeout="20ms")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle.result(), 0.02)
        with pytest.raises(rhythm.UnknownExecution):
            await app.aio.get("nobody")

    asyncio.run(work())
    assert app.changes._listeners == {}


def test_wait_is_woken_by_the_worker_of_this_process(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rhythm.app.waiting.FIRST_S", 3600.0)
    monkeypatch.setattr("rhythm.app.waiting.LONGEST_S", 3600.0)
    app = make_app(flows=(HOLD,))
    handle = app.start_workflow("hold")
    found: list[Any] = []
    plain = threading.Thread(target=lambda: found.append(handle.result("1h")), daemon=True)
    coroutine = threading.Thread(
        target=lambda: found.append(asyncio.run(app.aio.result(handle.id, "1h"))), daemon=True
    )  # type: ignore[arg-type]  # it is one
    with app.worker():
        plain.start()
        coroutine.start()
        while len(app.changes._listeners) < 2:
            pass
        handle.signal("go", 5)
        for waiting in (plain, coroutine):
            waiting.join(120)
    assert found == [5, 5]


def test_module_functions_work_on_the_default_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(default, "_app", None)

    async def work(app: Rhythm) -> Any:
        handle = await rhythm.start_workflow("hold", id="mine")
        assert await rhythm.signal("mine", "go", 7)
        assert [execution.id for execution in (await rhythm.list_executions()).items] == ["mine"]
        assert (await rhythm.get("mine")).name == "hold"
        return await handle.result(timeout=WAIT)

    with pytest.raises(
        rhythm.NotInitialised,
        match=r"rhythm.start_workflow needs an application: call rhythm.init\(…\) first",
    ):
        asyncio.run(rhythm.start_workflow("hold"))
    app = rhythm.init(f"sqlite:///{tmp_path / 'a.db'}", ())
    app.register(HOLD)
    with app, app.worker():
        assert asyncio.run(work(app)) == 7


def test_every_public_name_is_there_and_documented_by_its_type() -> None:
    for name in rhythm.__all__:
        assert getattr(rhythm, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        rhythm.nothing  # noqa: B018 - that it fails is the test


def test_every_error_is_a_name_of_the_module() -> None:
    """A caller that is to catch it must be able to name it."""
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    raised = {kind.__name__ for kind in kinds if issubclass(kind, rhythm.RhythmError)}
    assert raised <= set(rhythm.__all__)


def test_public_names_are_listed_and_a_misspelt_one_is_told() -> None:
    assert set(rhythm.__all__) <= set(dir(rhythm))
    with pytest.raises(
        AttributeError,
        match=(
            r"module 'rhythm' has no attribute 'strat_workflow'; did you mean "
            r"'start_workflow'\?$"
        ),
    ):
        rhythm.strat_workflow  # noqa: B018 - asking for it is the test
    with pytest.raises(AttributeError, match=r"module 'rhythm' has no attribute 'xyzzy'$"):
        rhythm.xyzzy  # noqa: B018


def test_type_checkers_know_the_functions_of_the_module_whatever_they_meet_first(
    tmp_path: Path,
) -> None:
    """They are inferred in a circle of imports: from the wrong side they were Any."""
    user = tmp_path / "user.py"
    user.write_text(
        "import rhythm\nreveal_type(rhythm.list_executions)\nreveal_type(rhythm.schedules)\n"
    )
    root = Path(__file__).parents[2] / "src"
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        f"--cache-dir={tmp_path}",
        str(user),
    ]
    checked = subprocess.run(
        command, capture_output=True, text=True, env={"MYPYPATH": str(root), "PATH": ""}
    ).stdout
    assert checked.count('Revealed type is "def (') == 2, checked


def test_strict_type_checkers_see_coroutines_and_their_results(tmp_path: Path) -> None:
    user = tmp_path / "user.py"
    user.write_text(
        "import rhythm\n"
        "async def main(app: rhythm.Rhythm) -> str:\n"
        "    handle = await rhythm.start_workflow('x', {'a': 1}, delay='1h')\n"
        "    many: list[rhythm.AsyncHandle] = await app.aio.start_many('x', [1])\n"
        "    await many[0].result(timeout='1s')\n"
        "    reveal_type(app.start_workflow('x').result)\n"
        "    reveal_type(await rhythm.list_executions())\n"
        "    rhythm.init(queues=['a'], claim_ttl='5m')\n"
        "    rhythm.init(quues=['a'])\n"
        "    await rhythm.start_workflow('x', dely=1)\n"
        "    app.approve('x.1', by='ann', shwn='y')\n"
        "    app.approvals.approve('x.1', by='ann', shwn='y')\n"
        "    await app.aio.approve('x.1', by='ann', shwn='y')\n"
        "    await app.aio.approvals.approve('x.1', by='ann', shwn='y')\n"
        "    app.schedules(brif=True)\n"
        "    await app.aio.schedules(brif=True)\n"
        "    await rhythm.schedules(brif=True)\n"
        "    await app.aio.result('x', timout=1)\n"
        "    await app.aio.executions.result('x', '1s', 2)\n"
        "    await handle.result(timout=1)\n"
        "    await rhythm.result(timeout='1s')\n"
        "    app.aio.nothing\n"
        "    views: list[rhythm.ScheduleView] = [*app.schedules(), *await "
        "app.aio.schedules(), app.schedules.get('s')]\n"
        "    assert views == await rhythm.schedules(limit=3, brief=True)\n"
        "    started: list[rhythm.Handle] = [*app.start_many('x', []), "
        "app.starts.task('x', retries=3)]\n"
        "    waited: list[rhythm.AsyncHandle] = [await app.aio.run_schedule('s'), await "
        "app.aio.starts.task('x')]\n"
        "    assert started and waited\n"
        "    return handle.id\n"
    )
    root = Path(__file__).parents[2] / "src"
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        f"--cache-dir={tmp_path}",
        str(user),
    ]
    checked = subprocess.run(
        command, capture_output=True, text=True, env={"MYPYPATH": str(root), "PATH": ""}
    ).stdout
    assert [
        line.partition(": ")[0].rpartition(":")[2]
        for line in checked.splitlines()
        if ": error: " in line
    ] == [str(line) for line in range(9, 23)], checked
    assert "-> Any" in checked
    assert "rhythm.app.views.Page" in checked


def test_the_audit_is_exported_without_reading_in_the_event_loop(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    for n in range(5):
        app.create_token(f"token {n}", roles=["viewer"])
    real, readers = app.store.access.audit_after, set[str]()

    def read(after: int, most: int) -> Any:
        readers.add(threading.current_thread().name)
        return real(after, 2)

    monkeypatch.setattr(app.store.access, "audit_after", read)

    async def exported() -> list[AuditRow]:
        return [row async for row in app.aio.audit.export(1)]

    rows = asyncio.run(exported())
    assert readers
    assert threading.main_thread().name not in readers
    assert rows == [*app.audit.export()][1:]
    assert [row.n for row in rows] == [2, 3, 4, 5]
