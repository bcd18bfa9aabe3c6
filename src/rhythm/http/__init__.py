"""The HTTP interface: what `Rhythm` can do, under `/api/v1`, with tokens, problem+json, pages, a
stream.

A server is an ASGI application around one `Rhythm`. Everything goes through one guard: what is not
on the list of public paths, letter by letter, needs a token, also what does not exist, and a route
without a permission in the table cannot be built. The permission is asked for before a body is
read. A role may be limited to names (`viewer:order*`), so each line of the table says, too, what it
is about (`http/objects`): where the path names it, its name is looked up and checked in the same
place, before the body; an answer of a list, or of a route whose body names something, is not sent
unless the scope was asked for. Databases are never asked for patterns: one pure function
(`permissions.matches`) turns them into the set of names that there are, read along the index of
roots with one look-up for each, and lists take as many of each name as are wanted.
`tests/http/matrix.txt` is every route × everyone who may ask, and a test asks them all;
schemathesis asks whatever the OpenAPI document allows, and every answer must be in it. Routes are
plain functions in the thread pool; only the stream is a coroutine. It keeps nothing of its own: an
`Idempotency-Key` becomes the key, signal id, event id or decision key that the store already treats
as one. What one may take of it (requests, threads, streams) is counted by token in `sharing`,
before anything is awaited, and who asks is found out in threads of their own, on a connection for
which they wait for nobody. `connections` ends those that keep `rhythm server` waiting. Streams are
level-triggered, too: one watcher compares a short stamp of every execution that is followed, and
sends the whole view when it has changed.
"""

from rhythm.http.server import Server

__all__ = ["Server"]
