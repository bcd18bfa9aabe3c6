"""What the rows stand on: a server, the sizes of this run, and empty databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench import jobs
from bench.places import Place, postgres_at, sqlite_at
from bench.servers import Server, Store, empty
from rhythm.record import Record

MIN_SIZE = 20
FLOW = (
    jobs.FLOW
    + f"""
workflow passes_on(inputs) {{
  let value = inputs
  for (i in range({jobs.STEPS})) {{
    let x = await task("same", {{ x: value }})
    value = x
  }}
  return value
}}
workflow asleep() {{
  await sleep("300d")
}}
"""
)


class Ground(Record):
    """One run of the benchmark."""

    postgres: Server
    scale: float = 1.0  # of all sizes
    rounds: int = 2  # of each job; the best counts

    def size(self, count: int) -> int:
        return max(MIN_SIZE, round(count * self.scale))

    def seconds(self, wanted: float) -> float:
        return wanted * min(self.scale, 1.0)

    @contextmanager
    def place(self, store: Store) -> Iterator[Place]:
        """An empty database that has our workflows, gone afterwards."""
        with empty(store, self.postgres) as url, closing(_place_at(url)) as place:
            place.app.register(FLOW)
            yield place


def _place_at(url: str) -> Place:
    path = url.removeprefix("sqlite:///")
    return postgres_at(url) if path == url else sqlite_at(Path(path))
