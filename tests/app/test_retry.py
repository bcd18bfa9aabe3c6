"""A retry goes on from the last snapshot: what had completed is not run again, the rest is, and the
old one stays as it was."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from tests.app.conftest import MakeApp

WAIT = "120s"


class Bank:
    """A task that fails until it is repaired, and remembers who called."""

    def __init__(self) -> None:
        self.broken, self.calls = True, list[str]()

    def step(self, name: str) -> str:
        self.calls.append(name)
        return name

    def fragile(self, name: str) -> str:
        self.calls.append(name)
        if self.broken:
            raise rhythm.TaskFailed("out of order", code="Broken")
        return f"{name}!"


@pytest.fixture
def bank() -> Bank:
    return Bank()


def failed(app: Rhythm, flow: str, inputs: Any = None, name: str = "main") -> str:
    """The id of an execution of this workflow that has failed."""
    app.register(flow)
    handle = app.start_workflow(name, inputs)
    with pytest.raises(rhythm.ExecutionFailed, match="failed: "):
        handle.result(WAIT)
    return handle.id


def mended(app: Rhythm, bank: Bank, id: str) -> Any:
    """The result of a retry after the repair; only its calls are left in the bank."""
    bank.broken = False
    bank.calls.clear()
    handle = app.retry(id)
    assert (handle.created, handle.get().retry_of) == (True, id)
    return handle.result(WAIT)


@pytest.mark.parametrize("owner_run", [True, False])
def test_completed_task_is_not_run_again_and_the_failed_one_is(
    make_app: MakeApp, bank: Bank, owner_run: bool
) -> None:
    flow = """
    workflow main(inputs) {
      let a = await task("step", { name: "first" })
      let b = await task("fragile", { name: inputs.who })
      let c = await task("step", { name: "last" })
      return [a, b, c]
    }"""
    app = make_app(bank.step, bank.fragile, owner_run=owner_run)
    with app.worker():
        id = failed(app, flow, {"who": "second"})
        before = app.get(id)
        assert mended(app, bank, id) == ["first", "second!", "last"]
    assert bank.calls == ["second", "last"]
    assert app.get(id) == before


@pytest.mark.parametrize("owner_run", [True, False])
def test_of_all_only_those_that_had_not_completed_run_again(
    make_app: MakeApp, bank: Bank, owner_run: bool
) -> None:
    flow = """
    workflow main(inputs) {
      let first = await task("step", { name: "before" })
      let all3 = await all([task("step", { name: "a" }), task("fragile", { name: "b" }), task("step", { name: "c" })], { settle: false })
      return [first, ...all3]
    }"""
    app = make_app(bank.step, bank.fragile, owner_run=owner_run)
    with app.worker():
        id = failed(app, flow)
        done = {child.inputs: child.status for child in app.store.reading.children(id)}
        assert mended(app, bank, id) == ["before", "a", "b!", "c"]
    again = {name for name in ("a", "b", "c") if done.get(f'{{"name":"{name}"}}') != "completed"}
    assert sorted(bank.calls) == sorted(again)
    assert "b" in again


def test_child_workflow_goes_on_from_its_own_snapshot(make_app: MakeApp, bank: Bank) -> None:
    flow = """
    workflow main(inputs) {
      let a = await task("step", { name: "outer" })
      let b = await workflow("inner", { name: "deep" })
      return [a, b]
    }
    workflow inner(inputs) {
      let a = await task("step", { name: "inner" })
      let b = await task("fragile", { name: inputs.name })
      return [a, b]
    }"""
    app = make_app(bank.step, bank.fragile)
    with app.worker():
        assert mended(app, bank, failed(app, flow)) == ["outer", ["inner", "deep!"]]
    assert bank.calls == ["deep"]


@pytest.mark.parametrize("size", [5_000, 500_000])
def test_large_state_is_taken_along(make_app: MakeApp, bank: Bank, size: int) -> None:
    flow = """
    workflow main(inputs) {
      let kept = inputs.text
      let b = await task("fragile", { name: "b" })
      return [len(kept), b]
    }"""
    app = make_app(bank.fragile)
    with app.worker():
        assert mended(app, bank, failed(app, flow, {"text": "x" * size})) == [size, "b!"]


def test_caught_failure_and_loser_of_a_race_stay_what_they_were(
    make_app: MakeApp, bank: Bank
) -> None:
    flow = """
    workflow main(inputs) {
      let seen = "nothing"
      try {
        await task("fragile", { name: "caught" })
      } catch (e) {
        seen = e.code
      }
      let won = await race([task("step", { name: "fast" }), signal("never")])
      let b = await task("fragile", { name: "second" })
      return [seen, won.result, b]
    }"""
    app = make_app(bank.step, bank.fragile)
    with app.worker():
        assert mended(app, bank, failed(app, flow)) == ["Broken", "fast", "second!"]
    assert bank.calls == ["second"]


REPEATED = (
    "failed when what it had waited for was done, so going on from there would fail again: "
    "retry it from the start"
)


@pytest.mark.parametrize("owner_run", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        (
            'try { await task("fragile", { name: "pay" }) } catch (e) { await task("step", { '
            'name: "refund" }); throw e }'
        ),
        (
            'try { await task("fragile", { name: "pay" }) } finally { await task("step", { '
            'name: "unlock" }) }'
        ),
        'let a = await task("step", { name: "a" }); throw { code: "Odd", message: "odd", data: a }',
        'let a = await task("step", { name: "a" }); return 1 / (len(a) - 1)',
        (
            'let won = await race([task("step", { name: "fast" }), signal("never")]); throw { '
            'code: "Odd", message: won.result }'
        ),
        (
            'for (r in completed([task("step", { name: "a" })])) { throw { code: "Odd", '
            "message: r.result } }; return 1"
        ),
        (
            'await sleep("1ms"); throw { code: "Timeout", message: "too late", data: { '
            'execution: "me" } }'
        ),
    ],
)
def test_what_would_only_fail_again_is_refused_with_advice(
    make_app: MakeApp, bank: Bank, body: str, owner_run: bool
) -> None:
    app = make_app(bank.step, bank.fragile, owner_run=owner_run)
    with app.worker():
        id = failed(app, f"workflow main(inputs) {{ {body} }}".replace("; ", "\n"))
        bank.broken = False
        with pytest.raises(rhythm.NotRetryable, match=REPEATED) as refused:
            app.retry(id)
        assert f"(`rhythm retry {id} --from-start`; in Python `retry(id, from_start=True)`)" in str(
            refused.value
        )
        assert app.store.executions.retries(id) == []
        bank.calls.clear()
        app.register("workflow main(inputs) {\n  return 7\n}")
        assert app.retry(id, from_start=True).result(WAIT) == 7


def test_workflow_that_fails_before_it_waits_for_anything_is_refused_with_advice(
    make_app: MakeApp, bank: Bank
) -> None:
    app = make_app(bank.step)
    with app.worker():
        id = failed(
            app, 'workflow main(inputs) { throw { code: "Crashed", message: "so it says" } }'
        )
    with pytest.raises(
        rhythm.NotRetryable,
        match="was waiting for nothing when it failed, so going on from there would fail again",
    ):
        app.retry(id)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('let both = await all([task("step", { name: "a" }), task("fragile", { name: "b" '
                '})], { settle: true }); if (both[1].status == "failed") { throw "bad" }; '
                'return both[1].result', "b!"),
        ('let won = await race([task("fragile", { name: "b" }), sleep("1h")]); '
         'if (won.status == "failed") { throw "bad" }; return won.result', "b!"),
        (('let got = await any([task("fragile", { name: "a" }), task("fragile", { name: "b" '
                '})]); return len(got.result)'), 2),
        (('for (r in completed([task("fragile", { name: "b" })])) { if (r.status == '
                '"failed") { throw "bad" } }; return "ok"'), "ok"),
        ('return await workflow("inner")', "b!"),
    ],
)  # fmt: skip
def test_failure_of_something_awaited_is_worth_another_try_however_it_was_told(
    make_app: MakeApp, bank: Bank, body: str, expected: Any
) -> None:
    app = make_app(bank.step, bank.fragile)
    inner = 'workflow inner(inputs) { return await task("fragile", { name: "b" }) }'
    with app.worker():
        assert (
            mended(
                app,
                bank,
                failed(app, f"workflow main(inputs) {{ {body} }}\n{inner}".replace("; ", "\n")),
            )
            == expected
        )


@pytest.mark.parametrize("default", ["", ", default: 0"])
def test_signal_that_did_not_come_in_time_gets_that_time_again(
    make_app: MakeApp, bank: Bank, default: str
) -> None:
    app = make_app(bank.step)
    flow = f"""workflow main(inputs) {{
      let first = await signal("go", {{ timeout: inputs.wait{default} }})
      if (first == 0) {{ throw "nobody came" }}
      return first
    }}"""
    with app.worker():
        id = failed(app, flow, {"wait": "500ms"})
        again = app.retry(id)
        again.signal("go", 7)
        assert again.result(WAIT) == 7


def test_signal_that_the_last_turn_took_would_be_in_the_mailbox_again(
    make_app: MakeApp, bank: Bank
) -> None:
    flow = """
    workflow main(inputs) {
      let first = await signal("go")
      let second = await signal("go")
      if (second.bad) {
        throw { code: "Broken", message: "bad signal" }
      }
      return [first, second]
    }"""
    app = make_app(bank.step)
    app.register(flow)
    with app.worker():
        handle = app.start_workflow("main")
        handle.signal("go", {"n": 1})
        while handle.status() != "suspended":
            pass
        handle.signal("go", {"n": 2, "bad": True})
        with pytest.raises(rhythm.ExecutionFailed, match="bad signal"):
            handle.result(WAIT)
        with pytest.raises(rhythm.NotRetryable, match=REPEATED):
            app.retry(handle.id)


def test_fired_timer_stays_fired_and_ids_in_variables_lead_to_the_new_children(
    make_app: MakeApp, bank: Bank
) -> None:
    flow = """
    workflow main(inputs) {
      let kept = task("step", { name: "kept" })
      let both = await all([sleep("1ms"), sleep_until("2000-01-01T00:00:00Z"), task("fragile", { name: "second" })])
      let a = await kept
      return [a, both[2]]
    }"""
    app = make_app(bank.step, bank.fragile)
    with app.worker():
        assert mended(app, bank, failed(app, flow)) == ["kept", "second!"]
    assert "second" in bank.calls


def test_limit_of_concurrency_holds_in_the_retry_too(make_app: MakeApp) -> None:
    running, most, broken, lock = [0], [0], [True], threading.Lock()

    def counted(n: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        try:
            if broken[0] and n == 1:
                raise rhythm.TaskFailed("out of order", code="Broken")
            return n
        finally:
            with lock:
                running[0] -= 1

    flow = """
    workflow main(inputs) {
      return await all([task("counted", { n }) for n in range(6)], { concurrency: 1 })
    }"""
    app = make_app(counted)
    with app.worker():
        id = failed(app, flow)
        broken[0], most[0] = False, 0
        assert app.retry(id).result(WAIT) == [0, 1, 2, 3, 4, 5]
    assert most[0] == 1


def test_cancelled_execution_goes_on_where_it_was(make_app: MakeApp, bank: Bank) -> None:
    app = make_app(bank.step)
    app.register(
        'workflow main(inputs) {\n  let a = await task("step", { name: "a" })\n  let go = '
        'await signal("go")\n  return [a, go]\n}'
    )
    with app.worker():
        handle = app.start_workflow("main")
        handle.signal("ready")
        while handle.status() != "suspended" or not bank.calls:
            pass
        assert handle.cancel()
        with pytest.raises(rhythm.ExecutionFailed, match="cancelled"):
            handle.result(WAIT)
        again = app.retry(handle.id)
        again.signal("go", 7)
        assert again.result(WAIT) == ["a", 7]
    assert bank.calls == ["a"]


def test_workflow_that_has_cleaned_up_behind_itself_is_not_taken_up_again(
    make_app: MakeApp, bank: Bank
) -> None:
    app = make_app(bank.step)
    app.register("""
    workflow main(inputs) {
      try {
        await signal("go")
      } finally {
        await task("step", { name: "clean" })
      }
      return 1
    }""")
    with app.worker():
        handle = app.start_workflow("main")
        while handle.status() != "suspended":
            pass
        handle.cancel()
        with pytest.raises(rhythm.ExecutionFailed):
            handle.result(WAIT)
        with pytest.raises(
            rhythm.NotRetryable, match="cleaned up behind itself: retry it from the start"
        ) as refused:
            app.retry(handle.id)
        assert f"`rhythm retry {handle.id} --from-start`" in str(refused.value)
        again = app.retry(handle.id, from_start=True)
        again.signal("go")
        assert again.result(WAIT) == 1


def test_from_start_begins_anew_on_the_current_version(make_app: MakeApp, bank: Bank) -> None:
    app = make_app(bank.step, bank.fragile)
    with app.worker():
        id = failed(
            app,
            (
                'workflow main(inputs) {\n  await task("step", { name: "a" })\n  return await '
                'task("fragile", { name: inputs.x })\n}'
            ),
            {"x": "y"},
        )
        app.register('workflow main(inputs) {\n  return await task("step", { name: inputs.x })\n}')
        again = app.retry(id, from_start=True)
        assert again.result(WAIT) == "y"
    assert again.get().retry_of == id


def test_task_on_its_own_gets_all_its_attempts_again(make_app: MakeApp, bank: Bank) -> None:
    app = make_app(bank.fragile)
    with app.worker():
        handle = app.queue_task("fragile", {"name": "a"})
        with pytest.raises(rhythm.ExecutionFailed):
            handle.result(WAIT)
        assert mended(app, bank, handle.id) == "a!"


def test_retry_that_is_under_way_is_the_same_retry_also_when_two_ask_at_once(
    make_app: MakeApp, bank: Bank
) -> None:
    app, other = make_app(bank.fragile), make_app()
    with app.worker():
        id = failed(
            app, 'workflow main(inputs) {\n  return await task("fragile", { name: "a" })\n}'
        )
    found: list[tuple[str, bool]] = []
    start = threading.Barrier(2)

    def ask(asked: Rhythm) -> None:
        start.wait()
        handle = asked.retry(id)
        found.append((handle.id, handle.created))

    threads = [threading.Thread(target=ask, args=(one,)) for one in (app, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id for id, _ in found}) == 1
    assert sorted(created for _, created in found) == [False, True]
    first = app.retry(id)
    assert (first.id, first.created) == (found[0][0], False)
    with pytest.raises(
        rhythm.NotRetryable,
        match=f"a retry of {id} is under way: {first.id}; cancel that one first",
    ):
        app.retry(id, from_start=True)


def test_retries_follow_one_another_until_one_has_completed(make_app: MakeApp, bank: Bank) -> None:
    app = make_app(bank.fragile)
    with app.worker():
        id = failed(app, 'workflow main(inputs) { return await task("fragile", { name: "a" }) }')
        second = app.retry(id)
        with pytest.raises(rhythm.ExecutionFailed):
            second.result(WAIT)
        with pytest.raises(
            rhythm.NotRetryable,
            match=f"was retried as {second.id}, which failed in turn: retry {second.id} instead",
        ):
            app.retry(id)
        assert mended(app, bank, second.id) == "a!"
        (third,) = app.store.executions.retries(second.id)
        with pytest.raises(
            rhythm.NotRetryable, match=f"^{second.id} was retried as {third.id}, which completed$"
        ):
            app.retry(second.id)
        assert app.retry(second.id, from_start=True).result(WAIT) == "a!"
    assert app.store.executions.retries(second.id)[0] == third


def test_retry_that_was_cancelled_is_the_one_to_go_on_from(make_app: MakeApp, bank: Bank) -> None:
    app = make_app(bank.fragile)
    with app.worker():
        id = failed(app, 'workflow main(inputs) { return await task("fragile", { name: "a" }) }')
    second = app.retry(id)
    second.cancel()
    with app.worker(), pytest.raises(rhythm.ExecutionFailed, match="cancelled"):
        second.result(WAIT)
    with pytest.raises(
        rhythm.NotRetryable, match=f"which was cancelled: retry {second.id} instead"
    ):
        app.retry(id)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("nothing", "has not ended: cancel it, or wait"),
        ("completed", "has completed: start the workflow again"),
    ],
)
def test_what_has_not_failed_is_not_retried(make_app: MakeApp, end: str, message: str) -> None:
    app = make_app(flows=("workflow main(inputs) {\n  return 1\n}",))
    handle = app.start_workflow("main")
    if end == "completed":
        with app.worker():
            handle.result(WAIT)
    with pytest.raises(rhythm.NotRetryable, match=message):
        app.retry(handle.id)


def test_child_is_retried_with_its_root(make_app: MakeApp, bank: Bank) -> None:
    app = make_app(bank.fragile)
    with app.worker():
        id = failed(
            app, 'workflow main(inputs) {\n  return await task("fragile", { name: "a" })\n}'
        )
    with pytest.raises(rhythm.NotRetryable, match=f"is part of {id}: retry that one"):
        app.retry(f"{id}.1")
    with pytest.raises(rhythm.UnknownExecution, match="there is no execution 'nobody'"):
        app.retry("nobody")
