"""Permissions by name: whoever may see `order*` sees all of that and nothing else, in every answer; what
is not theirs is not there."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.http import api as building
from rhythm.http import streaming
from rhythm.http.objects import (
    APPROVAL,
    BODY,
    EVERYTHING,
    EXECUTION,
    LIST,
    NAMED,
    QUEUE,
    SCHEDULE,
    WORKFLOW,
    check_about,
)
from rhythm.http.routes import ROUTES, Route
from rhythm.permissions import PERMISSIONS, READ
from rhythm.store.approvals import Decision
from rhythm.store.interfaces.workers import Beat
from tests.http.conftest import Client, MakeClient, until
from tests.http.scoped import ALL, BARE, NAMES, Thing, World, ask, model, refused
from tests.support.length import sampled, sweep

ASKED = sampled(100, 400)  # of generated tokens, routes and things, on each database
ON_MANY = ("pause", "resume", "cancel", "terminate", "retry")


@pytest.fixture
def world(app: Rhythm) -> World:
    return World(app)


@pytest.fixture
def somebody(base: str) -> Iterator[Client]:
    with Client(base) as client:
        yield client


def pages(client: Client, path: str, limit: int) -> list[dict[str, Any]]:
    """All items of a list. No page but the last is short: nobody is told how many there are in
    between."""
    items, cursor = list[dict[str, Any]](), None
    while True:
        page = client.get(
            path, params={"limit": limit, **({"cursor": cursor} if cursor else {})}
        ).json()
        items, cursor = items + page["items"], page["cursor"]
        assert len(page["items"]) == limit or cursor is None
        if cursor is None:
            return items


# nothing is told, nothing is refused


def roles_of(chance: random.Random) -> tuple[str, ...]:
    patterns = (
        "order",
        "order*",
        "*order",
        "o*",
        "*r*",
        "*_*",
        "payment",
        "Order",
        "order[1]",
        "ord%*",
        "order/*",
        "x",
        "nothing*",
    )
    some = [
        chance.choice(ALL) + chance.choice(["", *(f":{pattern}" for pattern in patterns * 2)])
        for _ in range(chance.randint(1, 3))
    ]
    return tuple(some)


def expected(route: Route, roles: tuple[str, ...], thing: Thing) -> str:
    """Past the guard, forbidden, or not there."""
    assert route.permission is not None
    has = any(model((role.partition(":")[0],), route.permission, None) for role in roles)
    if not has or (route.about == EVERYTHING and not model(roles, route.permission, None)):
        return "403"
    if route.about in (EVERYTHING, LIST) or route.path.endswith(
        tuple(f"/executions/{action}" for action in ON_MANY)
    ):
        return "in"
    if model(roles, route.permission, thing.queue if route.about == QUEUE else thing.name):
        return "in"
    return "403" if route.about == QUEUE or route.path.endswith("/workflows") else "404"


@sweep
def test_nothing_that_is_not_theirs_is_told_to_anybody_and_nothing_that_is_theirs_is_refused(
    world: World, app: Rhythm, somebody: Client
) -> None:
    chance, asked = random.Random(11), [route for route in ROUTES if route.permission is not None]
    for number in range(ASKED):
        roles, route, thing = (
            roles_of(chance),
            chance.choice(asked),
            chance.choice([*world.things.values()]),
        )
        if route.about not in (EXECUTION, LIST, EVERYTHING) and thing.name in BARE:
            thing = world.things["order"]
        world.mend(thing)
        told = f"case {number}: {route.method} {route.path} of {thing.name} by {roles}"
        somebody.be(app.create_token(f"p{number}", roles=roles, business_roles=["finance"]).secret)
        path = world.path(route, thing, child=chance.random() < 0.5)
        answer = ask(somebody, route, path, world.body(route, thing))
        assert answer.status_code < 500, told
        assert refused(answer) == expected(route, roles, thing), f"{told}: {answer.text}"
        leaks = (
            []
            if model(roles, READ, None)
            else [mark for mark in hidden_from(world, roles, path) if mark in answer.text]
        )
        assert not leaks, f"{told}: {leaks} in {answer.text}"


def hidden_from(world: World, roles: tuple[str, ...], path: str) -> list[str]:
    """What only those can know who may see it, but for what the path says itself."""
    marks = [
        thing.mark
        for thing in world.things.values()
        if not model(roles, READ, thing.name) and not model(roles, READ, thing.queue)
    ]
    texts = [f"of {name} alone" for name in NAMES if not model(roles, READ, name)]
    return [secret for secret in (*marks, *texts) if secret not in path]


def test_lists_have_all_that_is_theirs_and_nothing_else_in_whole_pages(
    world: World, app: Rhythm, somebody: Client
) -> None:
    chance, things = random.Random(12), [*world.things.values()]
    for number in range(40):
        roles, limit = roles_of(chance), chance.randint(1, 4)
        somebody.be(app.create_token(f"p{number}", roles=roles).secret)

        def sees(name: str, roles: tuple[str, ...] = roles) -> bool:
            return model(roles, READ, name)

        found = [item["id"] for item in pages(somebody, "/api/v1/executions", limit)]
        assert found == [view.id for view in app.list(limit=100) if sees(view.name)], (
            f"{roles}: in the same order as for everybody"
        )
        decided = [item["id"] for item in pages(somebody, "/api/v1/approvals", limit)]
        assert sorted(decided) == sorted(
            thing.approval for thing in things if thing.approval and sees(thing.name)
        ), roles
        workflows = [item["name"] for item in pages(somebody, "/api/v1/workflows", limit)]
        assert workflows == sorted(view.name for view in app.workflows() if sees(view.name)), roles
        schedules = [item["name"] for item in pages(somebody, "/api/v1/schedules", limit)]
        assert schedules == sorted(
            thing.schedule for thing in things if thing.schedule and sees(thing.name)
        ), roles
        queues = [item["name"] for item in pages(somebody, "/api/v1/queues", limit)]
        assert queues == sorted(queue.name for queue in app.queues() if sees(queue.name)), roles


def test_what_is_not_theirs_is_answered_exactly_like_what_does_not_exist(
    world: World, client: MakeClient
) -> None:
    somebody = client(*(f"{role}:order*" for role in ALL), business=("finance",))
    hidden = world.things["payment"]
    missing = Thing(
        *(part.replace("payment", "xayment").replace("mark", "nark") for part in hidden)
    )
    for route in (
        route for route in ROUTES if route.about in (EXECUTION, APPROVAL, WORKFLOW, SCHEDULE)
    ):
        answers = [
            ask(somebody, route, world.path(route, thing), world.body(route, thing))
            for thing in (hidden, missing)
        ]
        assert [answer.status_code for answer in answers] == [404, 404], route.path
        there, gone = (
            answer.text.replace("xayment", "payment").replace("nark", "mark") for answer in answers
        )
        assert there == gone


# by the root


def test_who_sees_an_order_sees_all_that_was_done_for_it(world: World, client: MakeClient) -> None:
    order, payment = world.things["order"], world.things["payment"]
    ann = client("viewer:order*")
    assert ann.get(f"/api/v1/executions/{order.child}").json()["name"] == "shared"
    assert [
        item["id"] for item in ann.get(f"/api/v1/executions/{order.id}/children").json()["items"]
    ] == [order.child]
    assert ann.get(f"/api/v1/executions/{payment.child}").status_code == 404
    # the name of a child alone gives no permission for the families in which it is
    shared = client("viewer:shared", name="Bob")
    assert shared.get(f"/api/v1/executions/{order.child}").status_code == 404
    assert shared.get("/api/v1/approvals").json()["items"] == []
    assert shared.get("/api/v1/workflows/shared").status_code == 200


def test_who_acts_on_a_part_acts_by_the_right_to_the_whole(
    world: World, client: MakeClient
) -> None:
    order, payment = world.things["order"], world.things["payment"]
    otto = client("operator:order*")
    assert otto.post(f"/api/v1/executions/{order.child}/pause").status_code == 200
    assert otto.post(f"/api/v1/executions/{payment.child}/pause").status_code == 404
    assert (
        otto.post(f"/api/v1/executions/{payment.child}/signals", json={"name": "go"}).status_code
        == 404
    )
    assert (
        client("operator:shared").post(f"/api/v1/executions/{order.child}/resume").status_code
        == 404
    )


# decisions


def test_a_decision_takes_the_role_the_business_role_and_the_workflow(
    world: World, client: MakeClient
) -> None:
    order, payment = world.things["order"], world.things["payment"]
    ann = client("approver:order*", "viewer", name="Ann", business=("finance",))
    assert ann.get(f"/api/v1/approvals/{payment.approval}").status_code == 200
    assert ann.post(f"/api/v1/approvals/{payment.approval}/approve").status_code == 404
    eve = client("approver:order*", name="Eve", business=("hr",))
    assert eve.post(f"/api/v1/approvals/{order.approval}/approve").json()["code"] == "wrong_role"
    assert ann.post(f"/api/v1/approvals/{order.approval}/approve").json()["status"] == "approved"


def test_a_pattern_that_was_taken_away_while_somebody_decides_counts_no_more(
    world: World, app: Rhythm
) -> None:
    """The roles are those of the transaction, not those of the page that was loaded before."""
    order = world.things["order"]
    made = app.create_token("Ann", roles=["approver:order*"], business_roles=["finance"])
    actor = made.view.actor()
    app.change_token(made.view.id, roles=["approver:payment"])
    verdict = app.store.people.decide(order.approval, Decision(actor, "approve"))
    assert verdict is not None
    assert verdict.refusal == "role_revoked"
    app.change_token(made.view.id, roles=["approver:order*"])
    assert app.store.people.decide(order.approval, Decision(actor, "approve")).ended == "approved"  # type: ignore[union-attr]


# acts that name something else in their bodies


def test_an_execution_is_started_and_replaced_only_of_what_is_theirs(
    world: World, app: Rhythm, client: MakeClient
) -> None:
    otto, both = client("operator:order*"), client("author", "operator:order*", name="Berta")
    assert otto.post("/api/v1/executions", json={"workflow": "order_eu"}).status_code == 201
    there = otto.post("/api/v1/executions", json={"workflow": "payment"})
    gone = otto.post("/api/v1/executions", json={"workflow": "paymemt"})
    assert (there.status_code, there.text) == (404, gone.text.replace("paymemt", "payment"))
    told = otto.post("/api/v1/executions", json={"workflow": "order_of_something_else"}).json()[
        "detail"
    ]
    assert ("order_eu" in told, "payment" in told) == (True, False), "what there is of theirs"
    replace = {"workflow": "payment", "on_conflict": "replace"}
    answer = both.post("/api/v1/executions", json=replace, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_missing")


def test_an_id_that_is_taken_does_not_tell_by_what(world: World, client: MakeClient) -> None:
    answer = client("operator:order*").post(
        "/api/v1/executions", json={"workflow": "order", "id": world.things["payment"].id}
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "payment" not in answer.text


def test_a_key_that_another_workflow_has_used_starts_and_tells_nothing_of_it(
    world: World, client: MakeClient
) -> None:
    """Keys are of one workflow each: whoever may not see that one cannot find out what was started
    with them."""
    key = {"Idempotency-Key": "k"}
    first = client("operator", name="Root").post(
        "/api/v1/executions", json={"workflow": "payment"}, headers=key
    )
    again = client("operator:order*").post(
        "/api/v1/executions", json={"workflow": "order"}, headers=key
    )
    assert (again.status_code, again.json()["created"]) == (201, True)
    assert first.json()["id"] not in again.text


@pytest.mark.parametrize("action", ON_MANY)
def test_many_are_only_those_that_are_theirs(
    world: World, app: Rhythm, client: MakeClient, action: str
) -> None:
    for thing in world.things.values():
        if action == "resume":
            app.pause(thing.id) if thing.approval else None
        elif action == "retry":
            app.terminate(thing.id)
    before = {name: app.get(thing.id) for name, thing in world.things.items()}
    answer = client("operator:order*").post(f"/api/v1/executions/{action}", json={"all": True})
    theirs = [
        name
        for name in world.things
        if name.startswith("order") and (name in NAMES or action not in ("pause", "resume"))
    ]
    assert answer.json()["matched"] == len(theirs), answer.text
    others = [name for name in world.things if name not in theirs]
    assert {name: app.get(world.things[name].id) for name in others} == {
        name: before[name] for name in others
    }
    counted = client("operator:order*", name="Cora").post(
        f"/api/v1/executions/{action}", json={"workflow": "payment", "dry_run": True}
    )
    assert counted.json()["matched"] == 0


def test_all_workflows_of_a_text_must_be_theirs(
    world: World, app: Rhythm, client: MakeClient
) -> None:
    arthur = client("author:order*")
    two = "workflow order_us() {\n  return 1\n}\nworkflow payment() {\n  return 1\n}"
    before = app.workflows()
    answer = arthur.post("/api/v1/workflows", json={"source": two})
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_missing")
    assert "`payment`" in answer.json()["detail"]
    assert app.workflows() == before
    assert (
        arthur.post(
            "/api/v1/workflows", json={"source": "workflow order_us() {\n  return 1\n}"}
        ).status_code
        == 201
    )


def test_what_is_wrong_with_a_text_tells_nothing_of_workflows_that_its_author_may_not_see(
    world: World, client: MakeClient
) -> None:
    def calling(name: str) -> dict[str, str]:
        return {
            "source": f'workflow order_us() {{\n  let x = await workflow("{name}")\n  return y\n}}'
        }

    arthur = client("author:order*")
    hidden, gone = (
        arthur.post("/api/v1/workflows", json=calling(name)) for name in ("payment", "paymemt")
    )
    assert (hidden.status_code, hidden.text) == (422, gone.text.replace("paymemt", "payment"))
    assert "`payment` is in these files" in hidden.text
    assert "preorder" not in arthur.post("/api/v1/workflows", json=calling("preordr")).text, (
        "no guess names what is hidden"
    )
    assert (
        "is in these files"
        not in client("author:order*", "viewer:payment")
        .post("/api/v1/workflows", json=calling("payment"))
        .text
    )


def test_of_a_file_with_workflows_of_others_only_the_own_text_is_shown(
    world: World, client: MakeClient
) -> None:
    source = client("viewer:order").get("/api/v1/workflows/order").json()["source"]
    assert source.startswith("workflow order(inputs)")
    assert "of order alone" in source
    assert "payment" not in source
    assert "payment" in client("viewer", name="Bob").get("/api/v1/workflows/order").json()["source"]


# schedules


def test_a_schedule_is_changed_only_from_what_is_theirs_to_what_is_theirs(
    world: World, app: Rhythm, client: MakeClient
) -> None:
    order, payment = world.things["order"], world.things["payment"]
    otto = client("operator:order*")
    assert (
        otto.patch(f"/api/v1/schedules/{payment.schedule}", json={"workflow": "order"}).status_code
        == 404
    )
    moved = otto.patch(f"/api/v1/schedules/{order.schedule}", json={"workflow": "payment"})
    assert (moved.status_code, moved.json()["code"]) == (404, "unknown_workflow")
    assert (
        otto.patch(f"/api/v1/schedules/{order.schedule}", json={"workflow": "order_eu"}).status_code
        == 200
    )
    taken = otto.post(
        "/api/v1/schedules", json={"name": payment.schedule, "workflow": "order", "every": "1d"}
    )
    assert (taken.status_code, taken.json()["code"]) == (409, "schedule_taken")
    assert {view.name: view.workflow for view in app.schedules()}[payment.schedule] == "payment"


@pytest.mark.parametrize("act", ["pause", "resume", "run", "delete"])
def test_a_schedule_that_starts_something_else_by_then_is_not_theirs(
    world: World, app: Rhythm, act: str
) -> None:
    """It is looked at in the transaction that changes it: between the guard and that, another may
    have changed its workflow."""
    payment = world.things["payment"]
    actor = app.create_token("Otto", roles=["operator:order*"]).view.actor()
    before = app.get_schedule(payment.schedule)
    with pytest.raises(Exception, match="there is no schedule"):
        getattr(app, f"{act}_schedule")(payment.schedule, by=actor)
    assert app.get_schedule(payment.schedule) == before
    getattr(app, f"{act}_schedule")(world.things["order"].schedule, by=actor)


def test_what_a_schedule_started_before_it_was_theirs_is_not_told(
    world: World, app: Rhythm, client: MakeClient
) -> None:
    app.schedule("shared plan", "payment", every="1d")
    hidden = app.run_schedule("shared plan").id
    app.schedule("shared plan", "order", every="1d")
    shown = app.run_schedule("shared plan").id
    answer = client("viewer:order*").get("/api/v1/schedules/shared plan")
    assert [fire["execution_id"] for fire in answer.json()["fires"]] == [shown]
    assert hidden not in answer.text


# queues, and what has no name


def test_queues_go_by_their_own_names(world: World, app: Rhythm, client: MakeClient) -> None:
    otto = client("operator:order*")
    assert otto.post("/api/v1/queues/order/x/pause").status_code == 200
    answer = otto.post("/api/v1/queues/payment/pause")
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_missing")
    assert (
        "for the queue `payment`, and the token has it for `order*` only" in answer.json()["detail"]
    )
    assert [row.object for row in app.audit(action="queue.pause")] == ["order/x"]
    listed = [queue["name"] for queue in otto.get("/api/v1/queues").json()["items"]]
    assert listed == sorted(
        [
            "order/x",
            *(thing.queue for name, thing in world.things.items() if name in ("order", "order_eu")),
        ]
    )


def test_how_many_others_wait_in_a_queue_is_told_to_those_who_may_see_it(
    app: Rhythm, world: World, client: MakeClient
) -> None:
    ids = [app.queue_task("order_", queue="busy").id for _ in range(3)]
    app.store.workers.beat(Beat("w", "here", 1, ("busy",), 1, 0, False, "1"), {}, 60.0)
    told = [
        client(*roles, name=roles[0])
        .get(f"/api/v1/executions/{ids[0]}/why")
        .json()["reasons"][0]["what"]
        for roles in (["viewer"], ["viewer:order*"], ["viewer:order*", "viewer:busy"])
    ]
    assert ["`busy`" in one for one in told] == [True, True, True]
    assert ["with 2 others" in one for one in told] == [True, False, True]


def test_what_is_about_nothing_in_particular_takes_a_role_without_a_pattern(
    client: MakeClient,
) -> None:
    somebody = client(*(f"{role}:*r*" for role in ALL))
    for route in (route for route in ROUTES if route.about == EVERYTHING):
        answer = somebody.request(
            route.method, route.path, json=None if route.method == "GET" else {}
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_missing"), (
            route.path
        )


# streams


def test_a_stream_ends_when_its_execution_is_theirs_no_more(
    world: World, app: Rhythm, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "BEAT_S", 0.05)
    made = app.create_token("Ann", roles=["viewer:order*"])
    path = f"/api/v1/executions/{world.things['order'].id}/stream"
    with Client(base, made.secret) as ann, ann.stream("GET", path) as answer:
        lines = answer.iter_lines()
        assert any(line.startswith("data: ") for line in lines)
        assert any(line == ": " for line in lines), "it goes on while it is theirs"
        app.change_token(made.view.id, roles=["viewer:payment"])
        assert len(list(islice(lines, 500))) < 500, "it has ended"
    with Client(base, made.secret) as ann:
        assert ann.get(path).status_code == 404


# nobody can forget to ask


def test_a_route_that_does_not_say_what_it_is_about_cannot_be_built() -> None:
    for route in ROUTES:
        check_about(route.about, route.permission, route.path)
    for about, permission, path in [
        (None, READ, "/x"),  # not public, and about nothing
        (LIST, None, "/x"),
        ("moon", READ, "/x"),
        (EXECUTION, READ, "/executions"),  # the path does not name one
        (SCHEDULE, READ, "/schedules/{id}"),
    ]:
        with pytest.raises(AssertionError):
            check_about(about, permission, path)
    with pytest.raises(TypeError):
        Route("GET", "/x", streaming.stream, READ)  # type: ignore[call-arg]


@pytest.mark.parametrize("about", [LIST, BODY])
def test_an_answer_that_was_made_without_asking_whom_it_is_for_is_not_sent(
    app: Rhythm, base: str, admin: Client, monkeypatch: pytest.MonkeyPatch, about: str
) -> None:
    """Also not to those who may see everything: whoever forgets it finds out with the first
    request."""
    route = building.TABLE["GET", "/api/v1/workers"].replace(about=about)
    monkeypatch.setitem(building.TABLE, ("GET", "/api/v1/workers"), route)
    building.api.cache_clear()
    try:
        from rhythm.http import Server
        from tests.support.serving import serving

        with serving(Server(app)) as other, Client(other) as somebody:
            answer = somebody.get("/api/v1/workers", headers=admin.headers)
        assert answer.status_code == 500
        assert "items" not in answer.text
    finally:
        building.api.cache_clear()


def test_every_kind_of_thing_is_asked_about() -> None:
    """A kind without a route would not be tested by anything here."""
    assert {route.about for route in ROUTES} - {None} == {*NAMED, LIST, BODY, EVERYTHING}
    assert {route.permission for route in ROUTES} - {None} == PERMISSIONS.keys() - {"admin"}


def test_a_role_that_is_not_there_is_refused_with_what_to_write(app: Rhythm) -> None:
    for role, words in {
        "viewer:": "viewer for everything, or a pattern such as viewer:order*",
        "admin:order*": "the role admin is for everything",
        "boss:order*": "there is no role 'boss'",
    }.items():
        with pytest.raises(ValueError, match=words.replace("*", r"\*")):
            app.create_token("Ann", roles=[role])
    view = app.create_token("Ann", roles=["viewer:order*", "viewer:refund"]).view
    assert view.roles == ("viewer:order*", "viewer:refund")
    assert json.loads(json.dumps(view.as_json()))["roles"] == ["viewer:order*", "viewer:refund"]
    until(lambda: view in app.tokens())
