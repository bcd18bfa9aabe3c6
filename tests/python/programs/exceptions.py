"""`try`, `except`, `else`, `finally`, `raise`: exceptions of the workflow itself and of tasks."""

from __future__ import annotations

import asyncio
from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import (
    BadCard,
    OutOfStock,
    ShopError,
    echo,
    failed_with_code,
    fails,
    fails_bare,
    maybe,
)

KINDS = [
    "ValueError",
    "KeyError",
    "IndexError",
    "TypeError",
    "ZeroDivisionError",
    "RuntimeError",
    "OSError",
    "ConnectionError",
    "PermissionError",
    "ShopError",
    "OutOfStock",
    "BadCard",
]
EACH = [{"kind": kind} for kind in KINDS]


@given(*EACH)
@rhythm.workflow
async def caught_by_class(kind: str) -> Any:
    try:
        await fails(kind, "boom")
    except ValueError as e:
        return ["value", str(e)]
    except KeyError as e:
        return ["key", str(e)]
    except LookupError as e:
        return ["lookup", str(e)]
    except (TypeError, ArithmeticError) as e:
        return ["two", str(e)]
    except ConnectionError:
        return "connection"
    except OSError as e:
        return ["os", str(e)]
    except ShopError as e:
        return ["shop", str(e)]
    return "no"


@given(*EACH)
@rhythm.workflow
async def caught_as_task_failed(kind: str) -> Any:
    try:
        return await fails(kind)
    except rhythm.TaskFailed as e:
        return ["failed", str(e)]


@given(*EACH)
@rhythm.workflow
async def not_caught(kind: str) -> Any:
    return await fails(kind, "went wrong")


@given(*EACH)
@rhythm.workflow
async def not_caught_without_words(kind: str) -> Any:
    return await fails_bare(kind)


@given(*EACH)
@rhythm.workflow
async def caught_without_words(kind: str) -> Any:
    try:
        await fails_bare(kind)
    except Exception as e:
        return [str(e), f"{e}"]


@given(*EACH)
@rhythm.workflow
async def falls_through(kind: str) -> Any:
    try:
        await fails(kind)
    except ZeroDivisionError:
        return "zero"


@given({"x": 1}, {"x": 2})
@rhythm.workflow
async def else_and_finally(x: int) -> Any:
    log: list[Any] = []
    try:
        log.append("try")
        y = await maybe(x, bad=2)
    except ValueError as e:
        log.append(f"except {e}")
    else:
        log.append(["else", y])
    finally:
        log.append("finally")
    return log


@given({"x": 0}, {"x": 1})
@rhythm.workflow
async def else_is_not_covered(x: int) -> Any:
    try:
        y = 1
    except ZeroDivisionError:
        return "never"
    else:
        y = 1 // x
    return y


@given({"x": 0}, {"x": 2}, {"x": "a"})
@rhythm.workflow
async def finally_runs(x: Any) -> Any:
    out: list[Any] = []
    try:
        try:
            out.append(10 // x)
        finally:
            out.append(await echo("cleanup"))
    except ZeroDivisionError as e:
        out.append(str(e))
    return out


@given({"x": 1})
@rhythm.workflow
async def finally_returns(x: int) -> Any:
    try:
        raise ValueError("lost")
    finally:
        return x


@given({"x": 1})
@rhythm.workflow
async def finally_after_return(x: int) -> Any:
    out = [x]
    try:
        return out
    finally:
        await echo(1)
        out = [9]


@given({"n": 4})
@rhythm.workflow
async def finally_in_loops(n: int) -> Any:
    out: list[Any] = []
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            out.append(i)
        finally:
            out.append(-i)
    else:
        out.append("else")
    return out


@given({"x": 0})
@rhythm.workflow
async def raised_again(x: int) -> Any:
    try:
        try:
            1 // x
        except ZeroDivisionError:
            await echo(1)
            raise
    except ArithmeticError as e:
        return str(e)


@given({"x": 0})
@rhythm.workflow
async def raised_again_uncaught(x: int) -> Any:
    try:
        return 1 // x
    except ZeroDivisionError as e:
        await echo(1)
        raise e


@given({"kind": "OutOfStock"}, {"kind": "BadCard"})
@rhythm.workflow
async def task_raised_again(kind: str) -> Any:
    try:
        await fails(kind, "none left")
    except ShopError:
        await echo("note")
        raise


@given({"x": 1})
@rhythm.workflow
async def raised_from(x: int) -> Any:
    try:
        await fails("ValueError", "first")
    except ValueError as e:
        raise RuntimeError(f"second {x}") from e


@given({"x": 1})
@rhythm.workflow
async def raised_from_none(x: int) -> Any:
    try:
        [][x]
    except IndexError:
        raise KeyError("k") from None


@given({"k": "a"}, {"k": 5}, {"k": "it's"})
@rhythm.workflow
async def raises_key_error(k: Any) -> Any:
    try:
        raise KeyError(k)
    except KeyError as e:
        return [str(e), f"{e}"]


@given({"k": "a"}, {"k": "it's"})
@rhythm.workflow
async def key_error_of_dict(k: str) -> Any:
    d: dict[str, Any] = {}
    try:
        return d[k]
    except KeyError as e:
        return str(e)


@given({"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}, {"n": 5})
@rhythm.workflow
async def raises(n: int) -> Any:
    if n == 0:
        raise ValueError("plain")
    if n == 1:
        raise ValueError
    if n == 2:
        raise OutOfStock(f"item {n}")
    if n == 3:
        raise KeyError("key")
    if n == 4:
        raise BadCard()
    raise RuntimeError(n)


@given({"n": 1}, {"n": 2})
@rhythm.workflow
async def raises_own_and_catches(n: int) -> Any:
    try:
        if n == 1:
            raise OutOfStock("gone")
        raise BadCard("declined")
    except ValueError as e:
        return ["value", str(e)]
    except ShopError as e:
        return ["shop", str(e)]


@given({"x": None}, {"x": 1}, {"x": []}, {"x": "s"})
@rhythm.workflow
async def errors_of_expressions(x: Any) -> Any:
    out = []
    try:
        x + 1
    except TypeError as e:
        out.append(str(e))
    try:
        x["k"]
    except (TypeError, KeyError) as e:
        out.append(str(e))
    try:
        x[5]
    except (TypeError, IndexError) as e:
        out.append(str(e))
    try:
        for _ in x:
            pass
    except TypeError as e:
        out.append(str(e))
    try:
        x.upper()
    except AttributeError as e:
        out.append(str(e))
    try:
        out.append(str(len(x)))
    except TypeError as e:
        out.append(str(e))
    return out


@given({"x": "12"}, {"x": "zz"})
@rhythm.workflow
async def conversion_error(x: str) -> Any:
    try:
        return int(x)
    except ValueError as e:
        return str(e)


@given({"n": 3})
@rhythm.workflow
async def retries_by_hand(n: int) -> Any:
    attempts = 0
    while True:
        attempts += 1
        try:
            await maybe(attempts, bad=1 if attempts < n else None)
            if attempts < n:
                raise RuntimeError("again")
        except (ValueError, RuntimeError):
            if attempts > 5:
                raise
            continue
        break
    return attempts


@given({"code": "declined"}, {"code": "Other"})
@rhythm.workflow
async def codes_of_tasks(code: str) -> Any:
    try:
        await failed_with_code(code, {"card": 1})
    except rhythm.TaskFailed as e:
        if e.code == "declined":
            return [e.code, e.message, e.data["card"], str(e)]
        return [e.code]


@given({"n": 1})
@rhythm.workflow
async def nested_handlers(n: int) -> Any:
    out = []
    try:
        try:
            await fails("ValueError", "inner")
        except KeyError:
            out.append("wrong")
        finally:
            out.append("first")
    except ValueError as e:
        out.append(str(e))
        try:
            await fails("KeyError", "k")
        except KeyError as f:
            out.append(str(f))
            out.append(str(e))
    return out


@given({"n": 1})
@rhythm.workflow
async def error_in_handler(n: int) -> Any:
    try:
        try:
            raise ValueError("a")
        except ValueError:
            raise TypeError("b") from None
        finally:
            n += 1
    except TypeError as e:
        return [str(e), n]


@given({"n": 1})
@rhythm.workflow
async def error_in_finally(n: int) -> Any:
    try:
        try:
            raise ValueError("a")
        finally:
            1 // 0
    except ArithmeticError as e:
        return str(e)


@given({"n": 1})
@rhythm.workflow
async def bare_except(n: int) -> Any:
    try:
        await fails("OSError")
    except:
        return "caught"


@given({"xs": [1, 2, 3], "bad": 2}, {"xs": [1], "bad": 9})
@rhythm.workflow
async def collects_errors(xs: list[int], bad: int) -> Any:
    done, failed = [], []
    for x in xs:
        try:
            done.append(await maybe(x, bad))
        except ValueError as e:
            failed.append({"x": x, "why": str(e)})
    return {"done": done, "failed": failed}


@given({"n": 1})
@rhythm.workflow
async def name_is_free_again(n: int) -> Any:
    e = "before"
    try:
        await fails("ValueError", "m")
    except ValueError as error:
        e = str(error)
    return e


@given({"x": 0}, {"x": 1})
@rhythm.workflow
async def set_in_both(x: int) -> Any:
    try:
        y = 1 // x
    except ZeroDivisionError:
        y = -1
    return y


@given({"x": 2}, {"x": 1})
@rhythm.workflow
async def undo_steps(x: int) -> Any:
    undo: list[str] = []
    try:
        await echo(1)
        undo.append("first")
        await maybe(x, bad=2)
        undo.append("second")
    except ValueError:
        return [await echo(step) for step in reversed(undo)]
    return undo


@given(*EACH)
@rhythm.workflow
async def told_apart_in_one_handler(kind: str) -> Any:
    try:
        await fails(kind, "no")
    except Exception as e:
        known = [isinstance(e, ValueError), isinstance(e, (LookupError, ShopError))]
        return [type(e).__name__, known, isinstance(e, rhythm.TaskFailed)]


@given({"bad": 1}, {"bad": 9})
@rhythm.workflow
async def group_of_tasks_fails_as_a_group(bad: int) -> Any:
    log: list[str] = []
    try:
        async with asyncio.TaskGroup() as group:
            one = group.create_task(maybe(1, bad))
            group.create_task(maybe(2, bad))
        log.append("done")
    except ValueError:
        return "never: Python raises a group"
    except ExceptionGroup as e:
        return [log, str(e), type(e).__name__]
    return [log, one.result()]


@given()
@rhythm.workflow
async def group_whose_body_fails_fails_as_a_group() -> Any:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(rhythm.sleep(5))
            raise KeyError("x")
    except KeyError:
        return "never"
    except Exception as e:
        return str(e)


@given({"k": 0}, {"k": 1}, {"k": 2}, {"k": 3})
@rhythm.workflow
async def returns_in_each_part(k: int) -> Any:
    log: list[str] = []
    try:
        log.append("try")
        if k == 0:
            return ["try", list(log)]
        await maybe(k, 1)
    except ValueError:
        return ["except", list(log)]
    else:
        log.append("else")
        if k == 2:
            return ["else", list(log)]
    finally:
        log.append("finally")
        if k == 3:
            log.append("three")
    return log
