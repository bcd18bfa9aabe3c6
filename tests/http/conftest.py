"""A server on an empty database of each kind, and clients with the tokens of people in every
role."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from rhythm.app import Rhythm
from rhythm.http import Server
from tests.app.conftest import MakeApp, make_app, url
from tests.support.serving import serving

__all__ = ["make_app", "url"]

FLOWS = """
workflow wait() {
  return await signal("go")
}
workflow add(inputs) {
  return inputs.a + inputs.b
}
workflow fan() {
  return await all([task("nap") for i in range(5)])
}
"""


def until(what: Callable[[], object]) -> None:
    """Waits for something that will be so."""
    last = time.monotonic() + 120
    while not what():
        assert time.monotonic() < last
        time.sleep(0.005)  # those who make it so need the processor


class Client(httpx.Client):
    """Somebody who asks with a token, or without one."""

    def __init__(self, base: str, secret: str | None = None) -> None:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        super().__init__(base_url=base, headers=headers, timeout=30)

    def be(self, secret: str) -> None:
        """From now on, whoever has this token."""
        self.headers["Authorization"] = f"Bearer {secret}"

    def start(self, workflow: str, inputs: object = None) -> str:
        answer = self.post("/api/v1/executions", json={"workflow": workflow, "inputs": inputs})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    return make_app(flows=(FLOWS,))


@pytest.fixture
def base(app: Rhythm) -> Iterator[str]:
    with serving(Server(app)) as base:
        yield base


MakeClient = Callable[..., Client]


@pytest.fixture
def client(app: Rhythm, base: str) -> Iterator[MakeClient]:
    """Makes a client whose token has these roles."""
    made: list[Client] = []

    def make(*roles: str, name: str = "Ada", business: tuple[str, ...] = ()) -> Client:
        made.append(
            Client(base, app.create_token(name, roles=roles, business_roles=business).secret)
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def admin(client: MakeClient) -> Client:
    return client("admin", name="Root")
