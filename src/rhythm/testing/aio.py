"""`AsyncEnv`: the environment of a test as coroutines, for tests that are `async def`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from rhythm.app.aio import Proxy, coroutine
from rhythm.testing.env import Env

if TYPE_CHECKING:
    from rhythm.authoring.workflow import Workflow
    from rhythm.testing.trial import Trial

P = ParamSpec("P")
R = TypeVar("R")


class AsyncEnv(Proxy):
    """`Env`, with coroutines: `await env.aio.run(order, "A1")`."""

    _behind: Env

    if TYPE_CHECKING:  # the types of a workflow do not pass through `coroutine`

        @overload
        async def start(
            self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs
        ) -> Trial[R]: ...
        @overload
        async def start(self, workflow: str, inputs: Any = None, **more: Any) -> Trial[Any]: ...
        async def start(self, workflow: Any, *args: Any, **kwargs: Any) -> Trial[Any]:
            """Starts a workflow, and runs it until everything waits."""
            raise NotImplementedError

        @overload
        async def run(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        async def run(self, workflow: str, inputs: Any = None, **more: Any) -> Any: ...
        async def run(self, workflow: Any, *args: Any, **kwargs: Any) -> Any:
            """Starts a workflow, moves the clock until it has ended, and returns its result."""
            raise NotImplementedError

        async def start_workflow(
            self, workflow: str | Workflow[..., Any], inputs: Any = None, **options: Any
        ) -> Trial[Any]:
            """Starts a workflow with the options of `Rhythm.start_workflow`."""
            raise NotImplementedError

    else:
        start = coroutine(Env.start)
        run = coroutine(Env.run)
        start_workflow = coroutine(Env.start_workflow)
    signal = coroutine(Env.signal)
    publish = coroutine(Env.publish)
    decide = coroutine(Env.decide)
    cancel = coroutine(Env.cancel)
    advance = coroutine(Env.advance)
    settle = coroutine(Env.settle)
    crash = coroutine(Env.crash)
    result = coroutine(Env.result)
    crash_everywhere = coroutine(Env.crash_everywhere)
