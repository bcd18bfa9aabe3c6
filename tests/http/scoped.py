"""A world with the workflows, executions, approvals, schedules and queues of two houses, and a tiny
model of who may see which."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import httpx

from rhythm.app import Rhythm
from rhythm.http import streaming
from rhythm.http.objects import APPROVAL, BODY, EXECUTION, QUEUE, SCHEDULE, WORKFLOW
from rhythm.http.routes import Route
from rhythm.permissions import ROLES
from tests.http.conftest import Client, until

NAMES = ("order", "order_eu", "Order", "payment", "preorder")
# tasks that were queued by themselves: any text may be their name
BARE = ("order[1]", "ord%r", "order_", "tell")
FLOWS = "\n".join(
    (
        f"workflow {name}(inputs) {{\n  // of {name} alone\n  return await "
        f'workflow("shared", inputs)\n}}'
    )
    for name in NAMES
) + (
    '\nworkflow shared(inputs) {\n  return await approval({ role: "finance", reason: '
    "inputs.mark })\n}\n"
)

ALL = ("viewer", "operator", "approver", "author")  # the roles that can be limited


def ask(client: Client, route: Route, path: str, body: Any = None) -> httpx.Response:
    """An answer, and of a stream its first event."""
    with client.stream(route.method, path, json=body) as answer:
        if answer.headers.get("Content-Type", "").startswith(streaming.KIND):
            return httpx.Response(
                200, text=next(line for line in answer.iter_lines() if line.startswith("data: "))
            )
        answer.read()
    return answer


def refused(answer: httpx.Response) -> str:
    """`403` and `404` for what is not theirs, else `in`."""
    code = "" if answer.status_code not in (403, 404) else answer.json()["code"]
    return (
        str(answer.status_code)
        if code == "permission_missing" or code.startswith("unknown_")
        else "in"
    )


class Thing(NamedTuple):
    """Something with the name of a workflow, by which permissions go, and a mark that only it has."""

    name: str
    mark: str
    id: str  # of the execution at its root
    child: str  # of the workflow that it called; of a bare task, its own
    approval: str
    schedule: str
    queue: str


class World:
    """One thing of each name. What is done to it is nobody's business: all of it stays where it
    is."""

    def __init__(self, app: Rhythm) -> None:
        self.app = app
        app.register(FLOWS)
        self.things = {name: self._workflow(name, f"mark-{i}-w") for i, name in enumerate(NAMES)}
        self.things |= {name: self._task(name, f"mark-{i}-t") for i, name in enumerate(BARE)}
        with app.worker(queues=["default"]):
            until(lambda: len(app.approvals().items) == len(NAMES))

    def _workflow(self, name: str, mark: str) -> Thing:
        id = self.app.start_workflow(
            name, {"mark": mark}, id=f"x-{mark}", attributes={"mark": mark}
        ).id
        thing = Thing(name, mark, id, f"{id}.1", f"{id}.1.1", f"plan of {mark}", f"{name}/{mark}")
        self.app.queue_task("idle", mark, id=f"idle-{mark}", queue=thing.queue)
        self.mend(thing)
        return thing

    def _task(self, name: str, mark: str) -> Thing:
        id = self.app.queue_task(name, mark, id=f"x-{mark}", queue="nowhere").id
        return Thing(name, mark, id, id, "", "", "")

    def mend(self, thing: Thing) -> None:
        """Makes its schedule again, which may have been deleted, or may start something else."""
        if thing.schedule:
            self.app.schedule(thing.schedule, thing.name, every="1d", inputs=thing.mark)

    def marks_outside(self, names: set[str]) -> set[str]:
        return {thing.mark for thing in self.things.values() if thing.name not in names}

    def path(self, route: Route, thing: Thing, child: bool = False) -> str:
        """The path of a route about this thing."""
        of = {
            EXECUTION: thing.child if child else thing.id,
            APPROVAL: thing.approval,
            WORKFLOW: thing.name,
            QUEUE: thing.queue,
        }
        value = {**of, SCHEDULE: thing.schedule}.get(route.about or "", "")
        return re.sub(r"\{\w+(:path)?\}", value.replace("%", "%25"), route.path)

    def body(self, route: Route, thing: Thing) -> Any:
        """A body that means this thing, where the body says it."""
        if route.about != BODY:
            return (
                None
                if route.method == "GET"
                else {"name": "go", "type": "nothing"}
                if route.path.endswith("signals")
                else {}
            )
        if route.path.endswith("workflows"):
            return {"source": f"workflow {thing.name}(inputs) {{\n  return inputs\n}}"}
        if route.path.endswith("schedules"):
            return {
                "name": thing.schedule,
                "workflow": thing.name,
                "every": "1d",
                "inputs": thing.mark,
            }
        if route.path.endswith("executions"):
            return {"workflow": thing.name, "id": thing.id}
        return {"all": True, "dry_run": True}


def model(roles: tuple[str, ...], permission: str, name: str | None) -> bool:
    """Whether these roles allow it for this name (None: for everything), in other words than the
    product's."""
    for role in roles:
        title, *pattern = role.split(":", 1)
        if permission in ROLES[title] and (
            not pattern or (name is not None and fits(pattern[0], name))
        ):
            return True
    return False


def fits(pattern: str, name: str) -> bool:
    return (
        re.fullmatch("".join(".*" if char == "*" else re.escape(char) for char in pattern), name)
        is not None
    )
