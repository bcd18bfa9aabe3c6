"""The HTTP interface: what `Rhythm` can do, under `/api/v1`, with tokens, problem+json, pages and a
stream.

A server is an ASGI application around one `Rhythm`.

*Access.* Every request passes one guard. Only paths on the list of public paths, compared letter by
letter, need no token; paths that do not exist need one, too. A route without a permission in the
table cannot be built. The permission is checked before a body is read. A role may be limited to
names (`viewer:order*`), so each line of the table also says what the route is about
(`http/objects`). Where the path names it, the name is looked up and checked in the same place,
before the body. For a list, or a route whose body names something, an answer is not sent unless the
route asked for the scope. Databases are never asked for patterns: one pure function
(`permissions.matches`) turns them into the set of names that exist, read along the index of roots
with one look-up for each name, and lists take as many of each name as are wanted.
`tests/http/matrix.txt` is every route × everyone who may ask, and a test asks them all;
schemathesis asks whatever the OpenAPI document allows, and every answer must be in it.

*State.* The server keeps none of its own: an `Idempotency-Key` becomes the key, signal id, event id
or decision key that the store already counts once.

*Load.* Routes are plain functions in the thread pool; only decisions, the stream, publishing and
the health checks are coroutines. What one caller may use (requests, threads, streams) is counted by
token in `sharing`, before anything is awaited. Callers are authenticated in separate threads, on a
connection for which they wait for nobody. Those who come at the same time are looked up together,
and decisions that come at the same time are made together (`gathering`, `deciding`). Most requests
take a short way to their function (`dispatch`); the others go FastAPI's. `connections` ends the
connections that keep `rhythm server` waiting. Streams are level-triggered, too: one watcher
compares a short stamp of every execution that is followed, and sends the whole view when the stamp
has changed.
"""

from rhythm.http.server import Server

__all__ = ["Server"]
