"""An application that is asked over HTTP: the rooms of `rhythm.app`, answered by a server.

What asks an application need not know which it has: the rooms here have the same methods, return
the same views and raise the same errors. They know no database, and nothing of an application but
its views, its errors and its checks of what callers give. The standard library speaks HTTP: no
package is needed, and a command that asks a server starts no slower than one that opens a database.

- `address`, `token`: where the server is, and who asks; both are checked before anything is sent
- `transport`: one connection that is kept, with limits of time and size
- `problems`: what an answer that is no success means, as an exception
- `decoding`: JSON to views
- `client`: these together; says what may be asked again after an answer was lost
- the other modules are the rooms, named as in `rhythm.app`
"""
